import type { Fields as Described } from "../../webhooks/resources/field.ts";
import { wordsOf } from "./api.ts";
import { button, type Child, element, fill, setText } from "./element.ts";
import { type FormatName, formatOf } from "./field_display.ts";
import { exactText, type Fields, recordsOf, textOf } from "./fields.ts";
import { Polling } from "./polling.ts";
import { Pager } from "./pager.ts";
import { firstStep } from "./pieces.ts";
import { actionButton, actionMenu, type RecordAction, type Row } from "./record_action.ts";
import { type LoadChoices, RecordFilters } from "./record_filters.ts";
import { type BulkAction, RecordSelection } from "./record_selection.ts";
import { type Column, LiveTable } from "./table.ts";
import { shortId } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** A list of records of the administration API, as data. */
interface RecordListOptions {
  readonly resource: ListedResource;
  readonly title: string;
  readonly about: string;
  /** The way to the first record, and the command for it, if any. */
  readonly next: readonly [text: string, command?: string];
  readonly columns: readonly RecordColumn[];
  /** Filters with choices that are loaded. */
  readonly loads?: Readonly<Record<string, LoadChoices>>;
  /** True if records can be filtered by their time. */
  readonly hasTimes?: boolean;
  readonly bulk?: BulkAction;
  /** The actions on a record, in a menu with the name of the record. */
  readonly actions?: (row: Row) => readonly RecordAction[];
  /** The button that adds a record. */
  readonly add?: { readonly label: string; readonly open: (parts: PageParts, added: () => void) => void };
  /** Actions on all records that the filters select, whose parameters of the API `query` returns. */
  readonly tools?: (
    parts: PageParts,
    query: () => Readonly<Record<string, string>>,
  ) => readonly RecordAction[];
  readonly above?: (page: Fields) => readonly Child[];
  /** The view of one record; `label` is the noun for a record, and `name` its link if not the start of its id. */
  readonly record?: {
    readonly label: string;
    readonly name?: (record: Fields) => string;
    readonly open: (parts: PageParts, id: string) => OpenedView;
  };
}

interface ListedResource {
  /** In the address of the page and in the path of the API. */
  readonly list: string;
  readonly fields: Described;
  readonly filters: Described;
  readonly items?: string;
}

/** A field as its description says, in another format or under another label, or cells with their own content. */
type RecordColumn =
  | string
  | { readonly field: string; readonly as?: FormatName; readonly label?: string; readonly isAside?: boolean }
  | Omit<Column<Row>, "order">;

const PAGE_SIZE = 25;
const REFRESH_MS = 3_000;

/** A view that shows a list of records, or one of them where its address has an id. */
export function recordListView(options: RecordListOptions): View {
  const { resource, title, about, record } = options;
  return {
    name: resource.list,
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
  readonly #empty = element("div");
  readonly #problem = element("p", { class: "problem", role: "alert" });
  readonly #pagers = ["pager first", "pager"].map((look) => new Pager(look, (by) => this.#turn(by)));
  readonly #polling: Polling<Fields>;
  /** The cursor of each page up to this one. */
  #cursors: string[] = [""];
  #nextCursor = "";

  constructor(parts: PageParts, options: RecordListOptions) {
    this.#parts = parts;
    this.#options = options;
    const { resource, title, add, bulk, loads = {}, hasTimes = false } = options;
    const { list: name, filters } = resource;
    this.#selection = bulk === undefined || parts.session.isReadOnly
      ? undefined
      : new RecordSelection(parts, name, bulk, () => this.#polling.read());
    const columns = this.#columns();
    const empty = [this.#empty];
    this.#table = new LiveTable({ caption: title, columns, empty, key: (one) => textOf(one, "id") });
    this.#filters = new RecordFilters(parts, {
      list: name,
      filters,
      loads,
      hasTimes,
      onChange: () => this.#restart(),
      onLabels: () => this.#table.redraw(),
    });
    const [above, below] = this.#pagers.map(({ node }) => node);
    const bar = element("div", { class: "bar" }, ...this.#filters.nodes, this.#status, above);
    if (add !== undefined && !parts.session.isReadOnly) {
      const open = () => add.open(parts, () => this.#restart());
      bar.append(button(add.label, open, { look: "primary" }));
    }
    if (options.tools !== undefined && !parts.session.isReadOnly) {
      const tools = options.tools(parts, () => this.#filters.query(parts.clock.now()));
      bar.append(...tools.map((tool) => actionButton(parts, tool)));
    }
    const list = element(
      "div",
      { class: "list" },
      this.#problem,
      this.#selection?.node,
      this.#table.node,
      below,
    );
    this.nodes = [bar, this.#result, this.#above, list];
    this.#polling = new Polling({
      clock: parts.clock,
      everyMs: REFRESH_MS,
      read: () => this.#read(),
      show: (page) => this.#show(page),
      fail: (error) => this.#fail(error),
    });
    this.#polling.read();
  }

  close(): void {
    this.#polling.close();
  }

  #columns(): Column<Fields>[] {
    const { columns, actions, record } = this.#options;
    const shown = columns.map((column) => this.#column(column));
    if (record !== undefined) {
      const cell = (one: Fields) => {
        const link = this.#link(one, record);
        const box = this.#selection?.box(one, `${record.label.toLowerCase()} ${link.textContent}`);
        return box === undefined ? [link] : [element("span", { class: "filter" }, box, link)];
      };
      shown.unshift({ label: record.label, ...record.name === undefined ? {} : { look: "name" }, cell });
    }
    if (actions !== undefined && !this.#parts.session.isReadOnly) {
      const nameOf = record?.name ?? ((one) => textOf(one, "name"));
      const cell = (one: Fields) => [actionMenu(this.#parts, nameOf(one), actions(this.#row(one)))];
      shown.push({ label: "Actions", look: "menu", cell });
    }
    return shown;
  }

  #column(column: RecordColumn): Column<Fields> {
    if (typeof column === "string") return this.#column({ field: column });
    if ("cell" in column) return { ...column, cell: (one) => column.cell(this.#row(one)) };
    const { field: name, as, label, isAside = false } = column;
    const field = this.#options.resource.fields[name];
    const { content, ...look } = formatOf(field, as);
    const cell = (one: Fields) => content(one, name, this.#parts.clock.now());
    return { label: label ?? field?.label ?? name, ...look, isAside, cell };
  }

  #link(record: Fields, { label, name }: NonNullable<RecordListOptions["record"]>): HTMLElement {
    const id = textOf(record, "id");
    const text = name?.(record) ?? shortId(id);
    const open = () => this.#parts.go(this.#options.resource.list, id);
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
      path: `/${this.#options.resource.list}/${encodeURIComponent(textOf(record, "id"))}`,
      now: this.#parts.clock.now(),
      refresh: () => this.#polling.read(),
      show: (...children) => fill(this.#result, children),
      labelOf: (value) => this.#filters.labelOf(value),
    };
  }

  #restart(): void {
    this.#selection?.clear();
    this.#cursors = [""];
    this.#polling.read();
  }

  #turn(by: 1 | -1): void {
    if (by === 1 && this.#nextCursor === "") return;
    if (by === 1) this.#cursors.push(this.#nextCursor);
    else if (this.#cursors.length > 1) this.#cursors.pop();
    // Unknown until the next page is loaded: a second click must not skip a page.
    this.#nextCursor = "";
    this.#polling.read();
  }

  #read(): Promise<Fields> {
    const { api, clock } = this.#parts;
    const paging = { limit: String(PAGE_SIZE), cursor: this.#cursors.at(-1) ?? "" };
    const query = { ...this.#filters.query(clock.now()), ...paging };
    return api.administer(`/${this.#options.resource.list}`, { query });
  }

  #fail(error: unknown): boolean {
    setText(this.#problem, wordsOf(error));
    setText(this.#status, "");
    return false;
  }

  /** Rebuilt only where it has changed, so that a selection in it stays. */
  #showAbove({ items: _, ...page }: Fields): void {
    const text = exactText(page);
    if (text !== this.#shownAbove) fill(this.#above, this.#options.above?.(page) ?? []);
    this.#shownAbove = text;
  }

  #show(page: Fields): void {
    const items = recordsOf(page, "items");
    setText(this.#problem, "");
    setText(this.#status, "");
    this.#table.update(items);
    if (items.length === 0) this.#showEmpty();
    this.#showAbove(page);
    this.#selection?.update();
    this.#nextCursor = textOf(page, "nextCursor");
    const first = (this.#cursors.length - 1) * PAGE_SIZE + 1;
    for (const pager of this.#pagers) {
      pager.show({ first, count: items.length, hasMore: this.#nextCursor !== "" });
    }
  }

  /** Says how to get the first record, unless the filters exclude all. */
  #showEmpty(): void {
    const { resource: { list, items = list.replaceAll("-", " ") }, next: [text, command] } = this.#options;
    if (this.#filters.isSet) return setText(this.#empty, `No matching ${items}.`);
    if (this.#empty.childElementCount > 0) return;
    fill(this.#empty, firstStep(`No ${items} yet.`, text, command));
  }
}
