import type { Sql } from "./work.ts";

/** The type of a column's values. */
export type Kind = "number" | "flag" | "text" | "json" | "bytes";

/** The type of a column; `?` where it may be NULL, `sequence` where it numbers the rows as they are inserted. */
type ColumnType = Kind | `${Kind}?` | "sequence";

/** The databases that have a part of the schema. */
interface Scope {
  /** The version that adds it; that of its table, or 1, when absent. */
  readonly since?: number;
  /** Both databases when absent. */
  readonly only?: keyof Sql;
}

/** A column. */
export interface Column extends Scope {
  readonly type: ColumnType;
  readonly isUnique?: boolean;
  readonly references?: string;
  readonly default?: number;
  readonly generated?: Sql;
}

/** An index. */
export interface Index extends Scope {
  readonly on: readonly string[];
  readonly where?: string;
  readonly isUnique?: boolean;
  /** True if rows are read in the order of `seq`, which every index of SQLite ends with. */
  readonly isOrdered?: boolean;
}

/** A table. */
export interface Table extends Scope {
  readonly columns: Readonly<Record<string, ColumnType | Column>>;
  /** `seq` when absent. */
  readonly key?: readonly string[];
  /** The key in SQLite: the table itself, or a unique index of this name. */
  readonly sqliteKey?: "clustered" | { readonly index: string };
  readonly indexes?: Readonly<Record<string, Index>>;
  /** Inserted with the table. */
  readonly values?: string;
}
