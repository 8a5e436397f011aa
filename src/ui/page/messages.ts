import type { Clock } from "../../base/clock.ts";
import { button, element } from "./element.ts";

const SHOWN_MS = 7_000;
/** Messages cover the page: only the newest success is shown. */
const MAX_SHOWN = { good: 1, bad: 4 } as const;

/** Short messages in a corner of the page. Problems stay until they are closed. */
export class Messages {
  readonly #good: HTMLElement;
  readonly #bad: HTMLElement;
  readonly #clock: Pick<Clock, "after">;

  constructor(place: HTMLElement, clock: Pick<Clock, "after">) {
    this.#clock = clock;
    this.#good = element("div", { role: "status", "aria-live": "polite" });
    this.#bad = element("div", { role: "alert" });
    place.append(this.#bad, this.#good);
  }

  say(text: string): void {
    const message = this.#show(this.#good, text, "good");
    this.#clock.after(SHOWN_MS, () => message.remove());
  }

  warn(text: string): void {
    this.#show(this.#bad, text, "bad");
  }

  clear(): void {
    this.#good.replaceChildren();
    this.#bad.replaceChildren();
  }

  #show(place: HTMLElement, text: string, look: keyof typeof MAX_SHOWN): HTMLElement {
    const message = element("div", { class: `message ${look}` }, element("span", {}, text));
    message.append(button("Close", () => message.remove(), { look: "small", spoken: "Close this message" }));
    place.append(message);
    while (place.childElementCount > MAX_SHOWN[look]) place.firstElementChild?.remove();
    return message;
  }
}
