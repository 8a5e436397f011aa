import { ApiProblem, wordsOf } from "./api.ts";
import { type Child, element, fill } from "./element.ts";
import { exactText } from "./exact_json.ts";
import type { Fields } from "./fields.ts";
import { dayOf } from "./text.ts";
import type { PageParts } from "./view.ts";

/** One record that is looked at. */
export interface WatchedOptions {
  readonly load: () => Promise<Fields>;
  readonly show: (record: Fields) => readonly Child[];
}

const EVERY_MS = 2_000;

/** Shows a record and keeps it fresh; what is shown is made anew only when the record has changed. */
export class Watched {
  readonly #parts: PageParts;
  readonly #place: HTMLElement;
  readonly #options: WatchedOptions;
  #shown = "";
  #round = 0;
  #isClosed = false;
  #cancel = () => {};

  constructor(parts: PageParts, place: HTMLElement, options: WatchedOptions) {
    this.#parts = parts;
    this.#place = place;
    this.#options = options;
    this.refresh();
  }

  /** Asks again now. */
  refresh(): void {
    void this.#load(++this.#round);
  }

  /** Ends it. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  async #load(round: number): Promise<void> {
    this.#cancel();
    let isGone = false;
    try {
      const record = await this.#options.load();
      if (this.#isClosed || round !== this.#round) return;
      const text = `${dayOf(this.#parts.clock.now())} ${exactText(record)}`;
      if (text !== this.#shown) this.#show(record);
      this.#shown = text;
    } catch (error) {
      if (this.#isClosed || round !== this.#round) return;
      isGone = error instanceof ApiProblem && error.status === 404;
      this.#shown = "";
      fill(this.#place, [element("p", { class: "problem", role: "alert" }, wordsOf(error))]);
    }
    if (!isGone) this.#cancel = this.#parts.clock.after(EVERY_MS, () => this.#again());
  }

  #show(record: Fields): void {
    const focused = document.activeElement;
    const label = focused !== null && this.#place.contains(focused)
      ? focused.getAttribute("aria-label")
      : null;
    fill(this.#place, this.#options.show(record));
    if (label === null) return;
    const again = this.#place.querySelectorAll<HTMLElement>("[aria-label]");
    [...again].find((one) => one.getAttribute("aria-label") === label)?.focus({ preventScroll: true });
  }

  #again(): void {
    // A text that someone marks to copy it stays marked.
    const marked = globalThis.getSelection();
    const isMarked = marked?.isCollapsed === false && marked.containsNode(this.#place, true);
    if (!document.hidden && !isMarked) return this.refresh();
    this.#cancel = this.#parts.clock.after(EVERY_MS, () => this.#again());
  }
}
