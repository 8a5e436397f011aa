import { TABLE_KEYS } from "../schema.ts";
import { StoreError } from "../store.ts";
import { text, whole } from "../rows.ts";
import { storedText } from "../stored_text.ts";
import { all, get, type Parameter, type Row, type Sql, type Work } from "../work.ts";

/** What a table holds: a number, a text, octets. */
export type ColumnKind = "whole" | "text" | "octets";

/** A column that is written; those that the database makes of others are none. */
export interface StoreColumn {
  readonly name: string;
  readonly kind: ColumnKind;
}

/** A table whose rows are the same in each database. */
export interface StoreTable {
  readonly name: string;
  /** The columns whose values no two rows share. */
  readonly key: readonly string[];
  readonly columns: readonly StoreColumn[];
  /** What rows are read from. */
  readonly from: string;
  /** Whether the database numbers the rows in the order in which they come. */
  readonly isNumbered: boolean;
}

/** The names of all tables. */
export const TABLE_NAMES: readonly string[] = Object.keys(TABLE_KEYS);

/** Where a name may have several rows, they stand for their sum. */
const SUMMED: Readonly<Record<string, Pick<StoreTable, "columns" | "from">>> = {
  tally: {
    columns: [{ name: "count", kind: "whole" }, { name: "name", kind: "text" }],
    from: "(SELECT name, CAST(sum(count) AS BIGINT) AS count FROM tally GROUP BY name)",
  },
};

const COLUMNS: Sql = {
  sqlite: "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden = 0",
  postgres: `SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
    WHERE attrelid = CAST(? AS regclass) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
};

const KINDS: Readonly<Record<string, ColumnKind>> = {
  integer: "whole",
  bigint: "whole",
  text: "text",
  blob: "octets",
  bytea: "octets",
};

/** The tables of a store and their columns, in an order in which they can be filled. */
export function* storeTables(): Work<readonly StoreTable[]> {
  const tables: StoreTable[] = [];
  for (const [name, key] of Object.entries(TABLE_KEYS)) {
    const plain = { name, key, isNumbered: key[0] === "seq", from: `"${name}"` };
    tables.push({ ...plain, columns: yield* columnsOf(name), ...SUMMED[name] });
  }
  return tables;
}

function* columnsOf(table: string): Work<readonly StoreColumn[]> {
  const columns = (yield* all(COLUMNS, table)).map((row) => {
    const [name, type] = [text(row, "name"), text(row, "type").toLowerCase()];
    const kind = KINDS[type];
    if (kind === undefined) {
      throw new StoreError("failed", `Cannot read column "${name}" of ${table}: it is of type ${type}`);
    }
    return { name, kind };
  });
  return columns.toSorted((one, other) => one.name < other.name ? -1 : 1);
}

/** How many rows a table has. */
export function* countOf({ from }: Pick<StoreTable, "from">): Work<number> {
  return whole(yield* get(`SELECT count(*) AS count FROM ${from} AS rows`), "count");
}

/** Most rows that are read at once. */
export const PORTION_ROWS = 256;

/** Where the texts and octets that are read at once come to more, it is one row less. */
const PORTION_BYTES = 4 * 1_024 * 1_024;

/** Reads a table in portions, each as large as may be kept in memory, and its texts as both databases hold them. */
export class TableReader {
  readonly #key: readonly string[];
  readonly #texts: readonly string[];
  readonly #first: ReaderTexts;
  readonly #next: ReaderTexts;
  #last: readonly Parameter[] | undefined;
  #replaced = 0;

  constructor(table: StoreTable) {
    this.#key = table.key;
    this.#texts = table.columns.filter(({ kind }) => kind === "text").map(({ name }) => name);
    this.#first = readerTexts(table, "");
    const marks = table.key.map(() => "?").join(", ");
    this.#next = readerTexts(table, `WHERE (${quoted(table.key)}) > (${marks})`);
  }

  /** In how many texts a character was replaced. */
  get replaced(): number {
    return this.#replaced;
  }

  /** The rows that come next; none at the end. */
  *next(): Work<readonly Row[]> {
    const after = this.#last ?? [];
    const texts = this.#last === undefined ? this.#first : this.#next;
    const sizes = yield* all(texts.sizes, ...after, PORTION_ROWS);
    const count = fitting(sizes.map((row) => whole(row, "size")));
    if (count === 0) return [];
    const rows = yield* all(texts.rows, ...after, count);
    const last = rows.at(-1);
    if (last !== undefined) this.#last = this.#key.map((name) => keyOf(last[name]));
    return rows.map((row) => this.#readable(row));
  }

  #readable(row: Row): Row {
    const odd = this.#texts.filter((name) => row[name] instanceof Uint8Array);
    if (odd.length === 0) return row;
    this.#replaced += odd.length;
    const texts = odd.map((name) => [name, storedText(DECODER.decode(row[name] as Uint8Array))]);
    return { ...row, ...Object.fromEntries(texts) };
  }
}

function keyOf(value: Row[string] | undefined): Parameter {
  if (value instanceof Uint8Array) return DECODER.decode(value);
  return typeof value === "bigint" ? String(value) : value;
}

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

interface ReaderTexts {
  readonly sizes: string;
  readonly rows: Sql;
}

function readerTexts({ from, key, columns }: StoreTable, where: string): ReaderTexts {
  const large = columns.filter(({ kind }) => kind !== "whole");
  const size = large.map(({ name }) => `coalesce(octet_length("${name}"), 0)`).join(" + ");
  // By the columns themselves, and not by what is read of them under their names.
  const order = key.map((name) => `rows."${name}"`).join(", ");
  const rest = `FROM ${from} AS rows ${where} ORDER BY ${order} LIMIT ?`;
  return {
    sizes: `SELECT ${size === "" ? "0" : size} AS size ${rest}`,
    rows: {
      // The client reads a text to its first U+0000 only, octets to their end.
      sqlite: `SELECT ${columns.map(sqliteColumn).join(", ")} ${rest}`,
      postgres: `SELECT ${quoted(columns.map(({ name }) => name))} ${rest}`,
    },
  };
}

function sqliteColumn({ name, kind }: StoreColumn): string {
  if (kind !== "text") return `"${name}"`;
  return `CASE WHEN instr("${name}", char(0)) > 0 THEN CAST("${name}" AS BLOB) ELSE "${name}" END AS "${name}"`;
}

/** How many of these, from the first on, are read at once: one at least. */
function fitting(sizes: readonly number[]): number {
  let bytes = 0;
  const tooMany = sizes.findIndex((size, index) => (bytes += size) > PORTION_BYTES && index > 0);
  return tooMany === -1 ? sizes.length : tooMany;
}

/** Names as a list of SQL. */
export function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(", ");
}
