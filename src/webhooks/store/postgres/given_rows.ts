import type { Parameter } from "../work.ts";

/** A value of a row that is given to a statement. */
export type GivenValue = string | number | boolean | Uint8Array | null | undefined;

/** Rows that a statement gets as parameters, one list for each column. */
export class GivenRows<C extends string> {
  /** The rows as a part of a `WITH`, numbered by `place`. */
  readonly sql: string;
  readonly #columns: readonly C[];

  constructor(name: string, columns: Readonly<Record<C, "TEXT" | "BIGINT" | "BYTEA">>) {
    this.#columns = Object.keys(columns) as C[];
    const lists = Object.values(columns).map((type) => `CAST(? AS ${type}[])`);
    this.sql = `${name} AS MATERIALIZED (SELECT * FROM unnest(${lists.join(", ")})
      WITH ORDINALITY AS ${name} (${this.#columns.join(", ")}, place))`;
  }

  /** The parameters of the statement for these rows. */
  parameters(rows: readonly Readonly<Record<C, GivenValue>>[]): readonly Parameter[] {
    return this.#columns.map((column) => rows.map((row) => row[column]));
  }
}
