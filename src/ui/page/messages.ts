import { button, element } from "./element.ts";
import type { PageClock } from "./clock.ts";

const SHOWN_MS = 7_000;
/** They lie over what stands below: of what went well the newest is enough. */
const MOST_SHOWN = { good: 1, bad: 4 } as const;

/** Short messages in a corner of the page: read out, gone after a while unless they tell of a problem. */
export class Messages {
  readonly #good: HTMLElement;
  readonly #bad: HTMLElement;
  readonly #clock: PageClock;

  constructor(place: HTMLElement, clock: PageClock) {
    this.#clock = clock;
    this.#good = element("div", { role: "status", "aria-live": "polite" });
    this.#bad = element("div", { role: "alert" });
    place.append(this.#bad, this.#good);
  }

  /** Something was done. */
  say(text: string): void {
    const message = this.#show(this.#good, text, "good");
    this.#clock.after(SHOWN_MS, () => message.remove());
  }

  /** Something could not be done. */
  warn(text: string): void {
    this.#show(this.#bad, text, "bad");
  }

  /** Takes everything away. */
  clear(): void {
    this.#good.replaceChildren();
    this.#bad.replaceChildren();
  }

  #show(place: HTMLElement, text: string, look: keyof typeof MOST_SHOWN): HTMLElement {
    const message = element("div", { class: `message ${look}` }, element("span", {}, text));
    message.append(button("Close", () => message.remove(), { look: "small", spoken: "Close this message" }));
    place.append(message);
    while (place.childElementCount > MOST_SHOWN[look]) place.firstElementChild?.remove();
    return message;
  }
}
