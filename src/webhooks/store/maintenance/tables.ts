import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";
import { integer, text } from "../rows.ts";
import { TABLE_KEYS } from "../schema.ts";
import { TABLES } from "../tables.ts";
import { StoreError } from "../store.ts";
import { all, get, type Parameter, type Row, run, type Sql, storedText, type Work } from "../work.ts";
import type { StoreConnection } from "./connection.ts";

/** A column that is written, not generated. */
interface StoreColumn {
  readonly name: string;
  readonly kind: "number" | "text" | "bytes";
}

/** A table whose rows are the same in each database. */
export interface StoreTable {
  readonly name: string;
  readonly key: readonly string[];
  readonly columns: readonly StoreColumn[];
  /** The `FROM` of its rows. */
  readonly from: string;
}

/** The names of all tables. */
export const TABLE_NAMES: readonly string[] = Object.keys(TABLE_KEYS);

/** A tally may have several rows of a name, which count as their sum. */
const SUMMED: Readonly<Record<string, Pick<StoreTable, "columns" | "from">>> = {
  tally: {
    columns: [{ name: "count", kind: "number" }, { name: "name", kind: "text" }],
    from: "(SELECT name, CAST(sum(count) AS BIGINT) AS count FROM tally GROUP BY name)",
  },
};

const COLUMNS: Sql = {
  sqlite: "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0",
  postgres: `SELECT attname AS name FROM pg_attribute
    WHERE attrelid = CAST(? AS regclass) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
};

/** The tables of a store, each after those that it references; throws where one has other columns. */
export function* storeTables(): Work<readonly StoreTable[]> {
  const tables: StoreTable[] = [];
  for (const [name, key] of Object.entries(TABLE_KEYS)) {
    const table = { name, key, from: `"${name}"`, columns: columnsOf(name), ...SUMMED[name] };
    const found = (yield* all(COLUMNS, name)).map((row) => text(row, "name"));
    const unknown = found.filter((column) => !table.columns.some(({ name }) => name === column));
    if (SUMMED[name] === undefined && (unknown.length > 0 || found.length < table.columns.length)) {
      throw new StoreError(
        "failed",
        `Cannot move the table "${name}": it has other columns (${found.join(", ")})`,
      );
    }
    tables.push(table);
  }
  return tables;
}

function columnsOf(table: string): readonly StoreColumn[] {
  return Object.entries(TABLES[table]?.columns ?? {}).flatMap(([name, column]) => {
    const { type, generated = undefined } = typeof column === "string" ? { type: column } : column;
    if (generated !== undefined) return [];
    return {
      name,
      kind: /^text|^json/.test(type) ? "text" : type.startsWith("bytes") ? "bytes" : "number",
    } as const;
  });
}

/** The number of rows of a table. */
export function* countOf({ from }: Pick<StoreTable, "from">): Work<number> {
  return integer(yield* get(`SELECT count(*) AS count FROM ${from} AS rows`), "count");
}

/** Names as a list of SQL. */
export function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(", ");
}

/** Most rows that are read at a time. */
const PORTION_ROWS = 256;

/** Most bytes of texts and blobs that are read at a time, except for one row that is larger. */
const PORTION_BYTES = 4 * 1_024 * 1_024;

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** Reads a table in portions of bounded size, its texts as both databases store them. */
export class TableReader {
  readonly #table: StoreTable;
  #last: readonly Parameter[] | undefined;
  #replaced = 0;

  constructor(table: StoreTable) {
    this.#table = table;
  }

  /** In how many texts a character was replaced. */
  get replaced(): number {
    return this.#replaced;
  }

  /** The next rows; none at the end. */
  *next(): Work<readonly Row[]> {
    const after = this.#last ?? [];
    const { sizes, rows: selected } = selections(this.#table, this.#last !== undefined);
    const count = fitting((yield* all(sizes, ...after, PORTION_ROWS)).map((row) => integer(row, "size")));
    if (count === 0) return [];
    const rows = yield* all(selected, ...after, count);
    const last = rows.at(-1);
    if (last !== undefined) this.#last = this.#table.key.map((name) => keyOf(last[name]));
    return rows.map((row) => this.#readable(row));
  }

  #readable(row: Row): Row {
    const texts = this.#table.columns.flatMap(({ name, kind }) => {
      const value = row[name];
      return kind === "text" && value instanceof Uint8Array
        ? [[name, storedText(DECODER.decode(value))]]
        : [];
    });
    this.#replaced += texts.length;
    return texts.length === 0 ? row : { ...row, ...Object.fromEntries(texts) };
  }
}

function keyOf(value: Row[string] | undefined): Parameter {
  if (value instanceof Uint8Array) return DECODER.decode(value);
  return typeof value === "bigint" ? String(value) : value;
}

function selections(
  { from, key, columns }: StoreTable,
  isContinued: boolean,
): { readonly sizes: string; readonly rows: Sql } {
  const large = columns.filter(({ kind }) => kind !== "number");
  const size = large.map(({ name }) => `coalesce(octet_length("${name}"), 0)`).join(" + ");
  const where = isContinued ? `WHERE (${quoted(key)}) > (${key.map(() => "?").join(", ")})` : "";
  // By the columns themselves, not by the selected expressions of the same names.
  const order = key.map((name) => `rows."${name}"`).join(", ");
  const rest = `FROM ${from} AS rows ${where} ORDER BY ${order} LIMIT ?`;
  return {
    sizes: `SELECT ${size === "" ? "0" : size} AS size ${rest}`,
    rows: {
      sqlite: `SELECT ${columns.map(sqliteColumn).join(", ")} ${rest}`,
      postgres: `SELECT ${quoted(columns.map(({ name }) => name))} ${rest}`,
    },
  };
}

/** The client reads a text only to its first U+0000, and a blob to its end. */
function sqliteColumn({ name, kind }: StoreColumn): string {
  if (kind !== "text") return `"${name}"`;
  return `CASE WHEN instr("${name}", char(0)) > 0 THEN CAST("${name}" AS BLOB) ELSE "${name}" END AS "${name}"`;
}

/** The number of first rows that fit into a portion; at least one. */
function fitting(sizes: readonly number[]): number {
  let bytes = 0;
  const tooMany = sizes.findIndex((size, index) => (bytes += size) > PORTION_BYTES && index > 0);
  return tooMany === -1 ? sizes.length : tooMany;
}

/** The number of rows that one statement inserts: few sizes, so that few statements are prepared. */
const INSERT_SIZES: Readonly<Record<StoreConnection["kind"], readonly number[]>> = {
  sqlite: [1],
  postgres: [PORTION_ROWS, 32, 4, 1],
};

/** Inserts rows that were read from another store. */
export function* insertRows(
  { name, columns }: StoreTable,
  rows: readonly Row[],
  kind: StoreConnection["kind"],
): Work<void> {
  const into = `INSERT INTO "${name}" (${quoted(columns.map((column) => column.name))}) VALUES`;
  const marks = `(${columns.map(() => "?").join(", ")})`;
  for (let at = 0; at < rows.length;) {
    const size = INSERT_SIZES[kind].find((size) => size <= rows.length - at) ?? 1;
    const parameters = rows.slice(at, at + size).flatMap((row) =>
      columns.map((column) => parameterOf(row, column.name))
    );
    yield* run(`${into} ${Array(size).fill(marks).join(", ")}`, ...parameters);
    at += size;
  }
}

function parameterOf(row: Row, column: string): Parameter {
  const value = row[column];
  if (typeof value !== "bigint") return value;
  throw new StoreError("failed", `Cannot move "${column}": ${value} is too large`);
}

/** The highest `seq` that a table has assigned, also to a row that was removed. */
const ASSIGNED: Sql = {
  sqlite: "SELECT coalesce(max(seq), 0) AS assigned FROM sqlite_sequence WHERE name = ?",
  postgres:
    "SELECT coalesce(pg_sequence_last_value(CAST(pg_get_serial_sequence(?, 'seq') AS regclass)), 0) AS assigned",
};

const SET_ASSIGNED: Sql = {
  sqlite: "UPDATE sqlite_sequence SET seq = ?2 WHERE name = ?1",
  postgres: "SELECT setval(pg_get_serial_sequence(?, 'seq'), ?)",
};

const ADD_ASSIGNED = "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)";

/** Makes the target continue the numbers of the source. */
export async function moveSequence(
  { name, key: [key] }: StoreTable,
  source: StoreConnection,
  target: StoreConnection,
): Promise<void> {
  if (key !== "seq") return;
  const assigned = integer(await source.perform(get(ASSIGNED, name)), "assigned");
  const highest = await source.perform(get(`SELECT coalesce(max(seq), 0) AS seq FROM "${name}"`));
  const last = Math.max(assigned, integer(highest, "seq"));
  if (last === 0) return;
  const changes = await target.perform(run(SET_ASSIGNED, name, last));
  if (target.kind === "sqlite" && changes === 0) await target.perform(run(ADD_ASSIGNED, name, last));
}

const DIGESTS = 2n ** 256n;

/** The number of rows of a table and the sum of their SHA-256, as the databases sort texts differently. */
export async function digestOf(
  connection: StoreConnection,
  table: StoreTable,
  onCount: (rows: number) => void = () => {},
): Promise<{ readonly count: number; readonly digest: string }> {
  const reader = new TableReader(table);
  let [count, sum] = [0, 0n];
  for (;;) {
    const rows = await connection.perform(reader.next());
    if (rows.length === 0) return { count, digest: sum.toString(16).padStart(64, "0") };
    for (const row of rows) {
      const hash = createHash("sha256");
      for (const { name } of table.columns) addValue(hash, row[name]);
      sum = (sum + BigInt(`0x${hash.digest("hex")}`)) % DIGESTS;
    }
    count += rows.length;
    onCount(count);
  }
}

/** With its kind and length, so that no two rows have the same bytes. */
function addValue(hash: Hash, value: Row[string] | undefined): void {
  if (value === null || value === undefined) {
    hash.update("n");
  } else if (value instanceof Uint8Array) {
    hash.update(`o${value.length}:`).update(value);
  } else if (typeof value === "string") {
    const bytes = Buffer.from(value, "utf8");
    hash.update(`t${bytes.length}:`).update(bytes);
  } else {
    hash.update(`w${value};`);
  }
}
