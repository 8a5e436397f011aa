import { wordsOf } from "./api.ts";
import { button, element, setText } from "./element.ts";
import { type Fields, recordsOf, textOf } from "./fields.ts";
import { type Column, LiveTable } from "./table.ts";
import { dayOf, momentText } from "./text.ts";
import type { PageParts } from "./view.ts";

/** How a list of the administration is shown. */
export interface RecordListOptions {
  readonly path: string;
  readonly caption: string;
  readonly columns: readonly Column<Fields>[];
  readonly empty: string;
  /** What it is narrowed by; none when absent. */
  readonly query?: () => Readonly<Record<string, string>>;
}

const PAGE = "25";
const EVERY_MS = 3_000;

/** A list of the administration, page by page, which keeps itself fresh while it is looked at. */
export class RecordList {
  readonly node: HTMLElement;
  readonly #parts: PageParts;
  readonly #options: RecordListOptions;
  readonly #table: LiveTable<Fields>;
  readonly #told = element("p", { class: "note", role: "status" }, "Asking the service…");
  readonly #problem = element("p", { class: "problem", role: "alert" });
  readonly #newer = button("Newer", () => this.#turn(-1));
  readonly #older = button("Older", () => this.#turn(1));
  /** The cursor of each page up to this one. */
  #cursors: string[] = [""];
  #next = "";
  #day = "";
  #round = 0;
  #cancel = () => {};
  #isClosed = false;

  constructor(parts: PageParts, options: RecordListOptions) {
    this.#parts = parts;
    this.#options = options;
    const { caption, columns, empty } = options;
    this.#table = new LiveTable({ caption, columns, empty, key: (item) => textOf(item, "id") });
    const feet = element("div", { class: "feet" }, this.#newer, this.#older, this.#told);
    this.node = element("div", { class: "list" }, this.#problem, this.#table.node, feet);
    this.#older.hidden = this.#newer.hidden = true;
    this.refresh();
  }

  /** Shows the first page, for another question. */
  restart(): void {
    this.#cursors = [""];
    this.refresh();
  }

  /** Asks again now. */
  refresh(): void {
    void this.#load(++this.#round);
  }

  /** Makes every cell anew. */
  redraw(): void {
    this.#table.redraw();
  }

  /** Ends it. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #turn(by: 1 | -1): void {
    if (by === 1 && this.#next === "") return;
    if (by === 1) this.#cursors.push(this.#next);
    else if (this.#cursors.length > 1) this.#cursors.pop();
    // The one of the page that is asked for is not known yet, however fast someone presses.
    this.#next = "";
    this.refresh();
  }

  async #load(round: number): Promise<void> {
    this.#cancel();
    const { api, clock } = this.#parts;
    const { path, query } = this.#options;
    const cursor = this.#cursors.at(-1) ?? "";
    try {
      const page = await api.administer(path, { query: { ...query?.(), limit: PAGE, cursor } });
      if (this.#isClosed || round !== this.#round) return;
      this.#show(page);
      setText(this.#problem, "");
    } catch (error) {
      if (this.#isClosed || round !== this.#round) return;
      setText(this.#problem, wordsOf(error));
      setText(this.#told, "");
    }
    this.#cancel = clock.after(EVERY_MS, () => this.#again());
  }

  /** Nobody looks at a hidden page, so nothing is asked for it. */
  #again(): void {
    if (!document.hidden) return this.refresh();
    this.#cancel = this.#parts.clock.after(EVERY_MS, () => this.#again());
  }

  #show(page: Fields): void {
    const now = this.#parts.clock.now();
    this.#table.update(recordsOf(page, "items"));
    // What was today a moment ago wants its day now.
    if (this.#day !== dayOf(now)) this.#table.redraw();
    this.#day = dayOf(now);
    this.#next = textOf(page, "nextCursor");
    this.#older.disabled = this.#next === "";
    this.#newer.disabled = this.#cursors.length === 1;
    this.#older.hidden = this.#newer.hidden = this.#older.disabled && this.#newer.disabled;
    this.#told.title = `As of ${momentText(now, now)}, fresh every ${EVERY_MS / 1_000} s`;
    setText(this.#told, `Page ${this.#cursors.length}`);
    this.#told.hidden = this.#newer.hidden;
  }
}
