import type { StoreConnection } from "./connection.ts";
import { whole } from "../rows.ts";
import { PORTION_ROWS, quoted, type StoreTable } from "./tables.ts";
import { get, type Parameter, type Row, run, type Sql, type Work } from "../work.ts";
import { StoreError } from "../store.ts";

/** How many rows one statement inserts: few sizes, so that few statements are prepared. */
const SIZES: Readonly<Record<StoreConnection["kind"], readonly number[]>> = {
  sqlite: [1],
  postgres: [PORTION_ROWS, 32, 4, 1],
};

/** Inserts rows as they were read elsewhere. */
export class TableWriter {
  readonly #table: StoreTable;
  readonly #sizes: readonly number[];

  constructor(table: StoreTable, kind: StoreConnection["kind"]) {
    this.#table = table;
    this.#sizes = SIZES[kind];
  }

  /** Inserts these. */
  *write(rows: readonly Row[]): Work<void> {
    for (let at = 0; at < rows.length;) {
      const size = this.#sizes.find((size) => size <= rows.length - at) ?? 1;
      const parameters = rows.slice(at, at + size).flatMap((row) => this.#valuesOf(row));
      yield* run(insertion(this.#table, size), ...parameters);
      at += size;
    }
  }

  #valuesOf(row: Row): readonly Parameter[] {
    return this.#table.columns.map(({ name }) => {
      const value = row[name];
      if (typeof value === "bigint") {
        throw new StoreError("failed", `Cannot move "${name}": ${value} is too large`);
      }
      return value;
    });
  }
}

function insertion({ name, columns }: StoreTable, rows: number): string {
  const marks = `(${columns.map(() => "?").join(", ")})`;
  const names = quoted(columns.map((column) => column.name));
  return `INSERT INTO "${name}" (${names}) VALUES ${Array.from({ length: rows }, () => marks).join(", ")}`;
}

/** The highest number that a table has given to a row, also to one that is gone. */
const GIVEN: Sql = {
  sqlite: "SELECT coalesce(max(seq), 0) AS given FROM sqlite_sequence WHERE name = ?",
  postgres:
    "SELECT coalesce(pg_sequence_last_value(CAST(pg_get_serial_sequence(?, 'seq') AS regclass)), 0) AS given",
};

const SET_GIVEN: Sql = {
  sqlite: "UPDATE sqlite_sequence SET seq = ?2 WHERE name = ?1",
  postgres: "SELECT setval(pg_get_serial_sequence(?, 'seq'), ?)",
};

const ADD_GIVEN = "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)";

/** Has the target number the rows to come where the source would go on. */
export async function moveNumbers(
  { name, isNumbered }: StoreTable,
  source: StoreConnection,
  target: StoreConnection,
): Promise<void> {
  if (!isNumbered) return;
  const given = whole(await source.perform(get(GIVEN, name)), "given");
  const highest = whole(
    await source.perform(get(`SELECT coalesce(max(seq), 0) AS seq FROM "${name}"`)),
    "seq",
  );
  const next = Math.max(given, highest);
  if (next === 0) return;
  const changes = await target.perform(run(SET_GIVEN, name, next));
  if (target.kind === "sqlite" && changes === 0) await target.perform(run(ADD_GIVEN, name, next));
}
