import { button, element, setAttribute, setText } from "./element.ts";
import type { LiveState, LiveStream } from "./live_stream.ts";

const WORDS = {
  connecting: "Connecting",
  live: "Live",
  hidden: "Paused: page is hidden",
  stopped: "Stopped",
  refused: "Token required",
} as const;

/** Shows the state of the live stream, with a button that stops or starts it. */
export class LiveLine {
  readonly node: HTMLElement;
  readonly #word = element("span", { class: "word", role: "status" });
  readonly #button: HTMLButtonElement;
  #isOn = true;

  constructor(stream: () => LiveStream) {
    this.#button = button("Stop", () => this.#isOn ? stream().stop() : stream().start(), {
      look: "small",
      action: "live",
    });
    this.node = element("div", { class: "live" }, element("span", { class: "dot", "aria-hidden": "true" }));
    this.node.append(this.#word, this.#button);
  }

  show(state: LiveState, now: number): void {
    setAttribute(this.node, "data-state", state.kind);
    this.#isOn = state.kind !== "stopped" && state.kind !== "reconnecting";
    setText(
      this.#button,
      state.kind === "stopped" ? "Start" : state.kind === "reconnecting" ? "Now" : "Stop",
    );
    this.#button.hidden = state.kind === "refused" || state.kind === "hidden";
    if (state.kind !== "reconnecting") return setText(this.#word, WORDS[state.kind]);
    const seconds = Math.max(1, Math.round((state.at - now) / 1_000));
    setText(this.#word, `Reconnecting in ${seconds} s: ${state.why}`);
  }
}
