import { button, element, setText } from "./element.ts";
import { countText } from "./text.ts";

/** The part of a list that is shown. */
interface ShownPage {
  /** The position of its first record, from 1. */
  readonly first: number;
  readonly count: number;
  readonly hasMore: boolean;
}

/** Turns the pages of a list and tells which of its records are shown. */
export class Pager {
  readonly node: HTMLElement;
  readonly #newer: HTMLButtonElement;
  readonly #older: HTMLButtonElement;
  readonly #status = element("span", { class: "note" });

  constructor(look: string, turn: (by: 1 | -1) => void) {
    this.#newer = button("Newer", () => turn(-1), { look: "small" });
    this.#older = button("Older", () => turn(1), { look: "small" });
    this.node = element("div", { class: look }, this.#status, this.#newer, this.#older);
    this.node.hidden = true;
  }

  show({ first, count, hasMore }: ShownPage): void {
    const last = first + count - 1;
    setText(
      this.#status,
      `${countText(first)}–${countText(last)} of ${countText(last)}${hasMore ? "+" : ""}`,
    );
    this.#newer.disabled = first === 1;
    this.#older.disabled = !hasMore;
    this.#newer.hidden = this.#older.hidden = first === 1 && !hasMore;
    this.node.hidden = count === 0 && first === 1;
  }
}
