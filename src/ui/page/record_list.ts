import { wordsOf } from "./api.ts";
import { button, type Child, element, fill, setText } from "./element.ts";
import { exactText, type Fields, flagOf, numberOf, recordsOf, textOf, textsOf, timeOf } from "./fields.ts";
import { badge, code, moment } from "./pieces.ts";
import { actionButton, type RecordAction, type Row } from "./record_action.ts";
import { type RecordFilter, RecordFilters } from "./record_filters.ts";
import { type BulkAction, RecordSelection } from "./record_selection.ts";
import { type Column, LiveTable } from "./table.ts";
import { dayOf, momentText, NOTHING, shortId } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** A list of records of the administration API, as data. */
export interface RecordListOptions {
  /** In the address of the page and in the path of the API. */
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly empty: string;
  readonly columns: readonly RecordColumn[];
  readonly filters?: readonly RecordFilter[];
  /** Whether records can be filtered by their time. */
  readonly hasTimes?: boolean;
  /** What can be done with several records. */
  readonly bulk?: BulkAction;
  readonly actions?: (row: Row) => readonly RecordAction[];
  /** The button that adds a record. */
  readonly add?: { readonly label: string; readonly open: (parts: PageParts, added: () => void) => void };
  /** What is shown above the list, from the fields of the page. */
  readonly above?: (page: Fields) => readonly Child[];
  /** The view of one record; `label` is the noun for a record, and `name` its link if not the start of its id. */
  readonly record?: {
    readonly label: string;
    readonly name?: (record: Fields) => string;
    readonly open: (parts: PageParts, id: string) => OpenedView;
  };
}

/** A column: a field in one of the known formats, or cells with their own content. */
export type RecordColumn =
  | { readonly label: string; readonly field: string; readonly as: keyof typeof FORMATS }
  | {
    readonly label: string;
    readonly look?: string;
    readonly cell: (row: Row) => string | readonly Child[];
  };

interface Format {
  readonly look?: string;
  readonly cell: (record: Fields, field: string, now: number) => string | readonly Child[];
}

const FORMATS = {
  text: { look: "name", cell: textOf },
  code: { look: "name", cell: (record, field) => [code(textOf(record, field))] },
  codes: { look: "name", cell: (record, field) => [code(textsOf(record, field).join(" "))] },
  prose: { look: "prose", cell: (record, field) => textOf(record, field) || NOTHING },
  number: { look: "number", cell: (record, field) => String(numberOf(record, field) ?? "") },
  badge: { cell: (record, field) => [badge(textOf(record, field))] },
  switch: { cell: (record, field) => [badge(flagOf(record, field) ? "enabled" : "disabled")] },
  moment: { cell: (record, field, now) => [moment(timeOf(record, field), now)] },
} as const satisfies Readonly<Record<string, Format>>;

const PAGE_SIZE = "25";
const REFRESH_MS = 3_000;

/** A view that shows a list of records, or one of them where its address has an id. */
export function recordListView(options: RecordListOptions): View {
  const { name, title, about, record } = options;
  return {
    name,
    title,
    about,
    isAdministration: true,
    open: (parts, id) =>
      id !== "" && record !== undefined ? record.open(parts, id) : new RecordList(parts, options),
  };
}

/** A list that is shown page by page and refreshes itself while the page is visible. */
class RecordList implements OpenedView {
  readonly nodes: readonly HTMLElement[];
  readonly #parts: PageParts;
  readonly #options: RecordListOptions;
  readonly #table: LiveTable<Fields>;
  readonly #filters: RecordFilters;
  readonly #selection: RecordSelection | undefined;
  readonly #result = element("div", { role: "status" });
  readonly #above = element("div");
  #shownAbove = "";
  readonly #status = element("p", { class: "note", role: "status" }, "Loading…");
  readonly #problem = element("p", { class: "problem", role: "alert" });
  readonly #newer = button("Newer", () => this.#turn(-1));
  readonly #older = button("Older", () => this.#turn(1));
  /** The cursor of each page up to this one. */
  #cursors: string[] = [""];
  #nextCursor = "";
  #day = "";
  #round = 0;
  #cancel = () => {};
  #isClosed = false;

  constructor(parts: PageParts, options: RecordListOptions) {
    this.#parts = parts;
    this.#options = options;
    const { name, title, empty, add, bulk, filters = [], hasTimes = false } = options;
    this.#selection = bulk === undefined || parts.session.isReadOnly
      ? undefined
      : new RecordSelection(parts, name, bulk, () => this.#refresh());
    const columns = this.#columns();
    this.#table = new LiveTable({ caption: title, columns, empty, key: (one) => textOf(one, "id") });
    this.#filters = new RecordFilters(parts, {
      ...{ list: name, filters, hasTimes },
      onChange: () => this.#restart(),
      onLabels: () => this.#table.redraw(),
    });
    const bar = element("div", { class: "bar" }, ...this.#filters.nodes);
    if (add !== undefined && !parts.session.isReadOnly) {
      const open = () => add.open(parts, () => this.#restart());
      bar.append(button(add.label, open, { look: "primary" }));
    }
    const feet = element("div", { class: "feet" }, this.#newer, this.#older, this.#status);
    const list = element(
      "div",
      { class: "list" },
      this.#problem,
      this.#selection?.node,
      this.#table.node,
      feet,
    );
    this.nodes = [bar, this.#result, this.#above, list];
    this.#older.hidden = this.#newer.hidden = true;
    this.#refresh();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #columns(): Column<Fields>[] {
    const { columns, actions, record } = this.#options;
    const shown: Column<Fields>[] = columns.map((column) => {
      if ("cell" in column) return { ...column, cell: (one) => column.cell(this.#row(one)) };
      const { cell, ...look }: Format = FORMATS[column.as];
      const { label, field } = column;
      return { label, ...look, cell: (one) => cell(one, field, this.#parts.clock.now()) };
    });
    if (record !== undefined) {
      const cell = (one: Fields) => {
        const link = this.#link(one, record);
        const box = this.#selection?.box(one, `${record.label.toLowerCase()} ${link.textContent}`);
        return box === undefined ? [link] : [element("span", { class: "filter" }, box, link)];
      };
      shown.unshift({ label: record.label, look: record.name === undefined ? "actions" : "name", cell });
    }
    if (actions !== undefined && !this.#parts.session.isReadOnly) {
      const cell = (one: Fields) => {
        const buttons = actions(this.#row(one)).map((action) => actionButton(this.#parts, action));
        return [element("div", { class: "acts" }, ...buttons)];
      };
      shown.push({ label: "Actions", look: "actions", cell });
    }
    return shown;
  }

  #link(record: Fields, { label, name }: NonNullable<RecordListOptions["record"]>): HTMLElement {
    const id = textOf(record, "id");
    const text = name?.(record) ?? shortId(id);
    const open = () => this.#parts.go(this.#options.name, id);
    return button(text, open, {
      look: "link",
      action: "open",
      spoken: `Open ${label.toLowerCase()} ${text}`,
    });
  }

  #row(record: Fields): Row {
    return {
      parts: this.#parts,
      record,
      path: `/${this.#options.name}/${encodeURIComponent(textOf(record, "id"))}`,
      now: this.#parts.clock.now(),
      refresh: () => this.#refresh(),
      show: (...children) => fill(this.#result, children),
      labelOf: (value) => this.#filters.labelOf(value),
    };
  }

  #restart(): void {
    this.#selection?.clear();
    this.#cursors = [""];
    this.#refresh();
  }

  #refresh(): void {
    void this.#load(++this.#round);
  }

  #turn(by: 1 | -1): void {
    if (by === 1 && this.#nextCursor === "") return;
    if (by === 1) this.#cursors.push(this.#nextCursor);
    else if (this.#cursors.length > 1) this.#cursors.pop();
    // Unknown until the next page is loaded: a second click must not skip a page.
    this.#nextCursor = "";
    this.#refresh();
  }

  async #load(round: number): Promise<void> {
    this.#cancel();
    const { api, clock } = this.#parts;
    const paging = { limit: PAGE_SIZE, cursor: this.#cursors.at(-1) ?? "" };
    const query = { ...this.#filters.query(clock.now()), ...paging };
    try {
      const page = await api.administer(`/${this.#options.name}`, { query });
      if (this.#isClosed || round !== this.#round) return;
      this.#show(page);
      setText(this.#problem, "");
    } catch (error) {
      if (this.#isClosed || round !== this.#round) return;
      setText(this.#problem, wordsOf(error));
      setText(this.#status, "");
    }
    this.#cancel = clock.after(REFRESH_MS, () => this.#refreshVisible());
  }

  #refreshVisible(): void {
    if (!document.hidden) return this.#refresh();
    this.#cancel = this.#parts.clock.after(REFRESH_MS, () => this.#refreshVisible());
  }

  /** Rebuilt only where it has changed, so that a selection in it stays. */
  #showAbove({ items: _, ...page }: Fields): void {
    const text = exactText(page);
    if (text !== this.#shownAbove) fill(this.#above, this.#options.above?.(page) ?? []);
    this.#shownAbove = text;
  }

  #show(page: Fields): void {
    const now = this.#parts.clock.now();
    this.#table.update(recordsOf(page, "items"));
    this.#showAbove(page);
    // Times without a date are those of today: they get one at midnight.
    if (this.#day !== dayOf(now)) this.#table.redraw();
    this.#day = dayOf(now);
    this.#selection?.update();
    this.#nextCursor = textOf(page, "nextCursor");
    this.#older.disabled = this.#nextCursor === "";
    this.#newer.disabled = this.#cursors.length === 1;
    this.#older.hidden = this.#newer.hidden = this.#older.disabled && this.#newer.disabled;
    this.#status.title = `As of ${momentText(now, now)}, refreshed every ${REFRESH_MS / 1_000} s`;
    setText(this.#status, `Page ${this.#cursors.length}`);
    this.#status.hidden = this.#newer.hidden;
  }
}
