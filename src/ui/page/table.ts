import { type Child, element, fill, focusHeading, isPressed, setText } from "./element.ts";
import { NOTHING } from "./text.ts";

/** The widths of columns whose texts may be longer than their place: names come before prose. */
const LONG: ReadonlyMap<string, string> = new Map([
  ["name", "minmax(5rem, auto)"],
  ["prose", "minmax(9rem, 1fr)"],
  ["wrap", "minmax(18rem, 1fr)"],
]);

/** One column of a table. */
export interface Column<T> {
  readonly label: string;
  /** The class of its cells: `number`, `name`, `prose`, `wrap`, `menu`. */
  readonly look?: string;
  /** The content of a cell; rebuilt when the item has changed. */
  readonly cell: (item: T) => string | readonly Child[];
  /** Hides the column while all of several rows say the same in it. */
  readonly isAside?: boolean;
  /** Makes the column sortable. */
  readonly order?: (a: T, b: T) => number;
}

/** Options of a table. */
interface TableOptions<T> {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly key: (item: T) => string;
  readonly empty: string | readonly Child[];
  /** True if its rows fit into a narrow window; others become blocks there. */
  readonly isNarrow?: boolean;
}

interface Row<T> {
  readonly node: HTMLTableRowElement;
  readonly cells: readonly HTMLTableCellElement[];
  shown: string;
  item: T;
}

/**
 * A table that is updated in place: unchanged cells are not rebuilt, a focused button stays focused, and rows do not
 * move while the pointer or the focus is on them.
 */
export class LiveTable<T> {
  readonly node: HTMLElement;
  readonly #options: TableOptions<T>;
  readonly #table: HTMLTableElement;
  readonly #body: HTMLElement;
  readonly #empty: HTMLElement;
  readonly #heads: readonly HTMLElement[];
  readonly #rows = new Map<string, Row<T>>();
  #items: readonly T[] = [];
  #order: { readonly column: number; readonly sign: 1 | -1 } | undefined;

  constructor(options: TableOptions<T>) {
    this.#options = options;
    this.#heads = options.columns.map((column, index) => this.#head(column, index));
    this.#body = element("tbody", { role: "rowgroup" });
    const { empty } = options;
    this.#empty = element("div", { class: "empty" }, ...typeof empty === "string" ? [empty] : empty);
    this.#table = element(
      "table",
      { role: "table" },
      element("caption", { class: "spoken" }, options.caption),
      element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...this.#heads)),
      this.#body,
    );
    this.node = element(
      "div",
      { class: `table ${options.isNarrow === true ? "" : "rows"}` },
      this.#table,
      this.#empty,
    );
    // Hidden until the items are known.
    this.node.hidden = true;
  }

  /** Shows these items; while something in it is pressed, it waits for the next ones. */
  update(items: readonly T[]): void {
    if (isPressed(this.#body)) return;
    this.#items = items;
    this.node.hidden = false;
    const { key } = this.#options;
    const kept = new Set(items.map(key));
    for (const [name, row] of this.#rows) {
      if (kept.has(name)) continue;
      const hadFocus = row.node.contains(document.activeElement);
      row.node.remove();
      this.#rows.delete(name);
      if (hadFocus) focusHeading();
    }
    const nodes = this.#sorted(items).map((item) => this.#rowOf(item).node);
    if (!this.#isInUse() || nodes.some(({ parentNode }) => parentNode === null)) this.#place(nodes);
    this.#fit();
    this.#table.hidden = items.length === 0;
    this.#empty.hidden = items.length > 0;
  }

  /** Rebuilds every cell: for a change of something other than the items. */
  redraw(): void {
    if (this.node.hidden) return;
    for (const row of this.#rows.values()) row.shown = "";
    this.update(this.#items);
  }

  /** Hides columns that tell nothing; long texts take what others leave. */
  #fit(): void {
    const rows = [...this.#rows.values()];
    const isShown = this.#heads.map((head, index) => {
      const cells = rows.flatMap(({ cells }) => cells[index] ?? []);
      const isSame = new Set(cells.map(({ textContent }) => textContent)).size === 1;
      const isAside = this.#options.columns[index]?.isAside === true && cells.length > 1;
      const isHidden = isSame && (cells.every(isNothing) || isAside);
      for (const node of [head, ...cells]) node.hidden = isHidden;
      return !isHidden;
    });
    const shown = this.#options.columns.filter((_, index) => isShown[index]);
    const isLong = ({ look = "" }: Column<T>) => LONG.has(look);
    const width = shown.some(isLong) ? "max-content" : "minmax(max-content, auto)";
    const widths = shown.map((one) => LONG.get(one.look ?? "") ?? width);
    this.#table.style.gridTemplateColumns = widths.join(" ");
  }

  #isInUse(): boolean {
    return this.#body.matches(":hover, :focus-within");
  }

  /** Leaves nodes that are in place: a moved one loses the focus. */
  #place(nodes: readonly HTMLElement[]): void {
    let next = this.#body.firstChild;
    for (const node of nodes) {
      if (node === next) next = next.nextSibling;
      else this.#body.insertBefore(node, next);
    }
  }

  #rowOf(item: T): Row<T> {
    const { key, columns } = this.#options;
    const row = this.#rows.get(key(item)) ?? this.#newRow(item);
    const shown = JSON.stringify(item);
    row.item = item;
    if (row.shown === shown) return row;
    row.shown = shown;
    columns.forEach(({ cell, look }, index) => {
      const node = row.cells[index];
      if (node === undefined) return;
      show(node, cell(item));
      node.classList.toggle("none", isNothing(node));
      // A long text may be cut.
      if (LONG.has(look ?? "")) node.title = node.textContent;
    });
    return row;
  }

  #newRow(item: T): Row<T> {
    const { key, columns } = this.#options;
    const cells = columns.map(({ label, look }) =>
      element("td", { role: "cell", class: look, "data-label": label })
    );
    const row: Row<T> = { node: element("tr", { role: "row" }, ...cells), cells, shown: "", item };
    this.#rows.set(key(item), row);
    return row;
  }

  #head({ label, look, order }: Column<T>, index: number): HTMLElement {
    const attributes = { role: "columnheader", scope: "col", class: look };
    if (order === undefined) return element("th", attributes, label);
    const sort = element("button", { type: "button", class: "sort" }, label);
    sort.addEventListener("click", () => this.#sortBy(index));
    return element("th", { ...attributes, "aria-sort": "none" }, sort);
  }

  #sortBy(column: number): void {
    const sign = this.#order?.column === column && this.#order.sign === -1 ? 1 : -1;
    this.#order = { column, sign };
    this.#heads.forEach((head, index) => {
      if (!head.hasAttribute("aria-sort")) return;
      const way = index === column ? sign === 1 ? "ascending" : "descending" : "none";
      head.setAttribute("aria-sort", way);
    });
    this.#place(this.#sorted(this.#items).map((item) => this.#rowOf(item).node));
  }

  #sorted(items: readonly T[]): readonly T[] {
    if (this.#order === undefined) return items;
    const { column, sign } = this.#order;
    const order = this.#options.columns[column]?.order;
    return order === undefined ? items : items.toSorted((a, b) => sign * order(a, b));
  }
}

function isNothing(cell: HTMLElement): boolean {
  return cell.textContent === NOTHING || cell.textContent === "" && cell.querySelector("svg, input") === null;
}

function show(cell: HTMLElement, content: string | readonly Child[]): void {
  if (typeof content === "string") return setText(cell, content);
  const focused = document.activeElement;
  const action = focused !== null && cell.contains(focused) ? focused.getAttribute("data-action") : null;
  fill(cell, content);
  if (action === null) return;
  const again =
    [...cell.querySelectorAll<HTMLElement>("[data-action]")].find((one) =>
      one.dataset["action"] === action
    ) ??
      cell.querySelector("button") ?? cell.closest("tr")?.querySelector("button");
  if (again === null || again === undefined) focusHeading();
  else again.focus();
}
