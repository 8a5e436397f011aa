/** A parameter; `undefined` is stored as NULL, booleans as 1 and 0, and a list is one parameter. */
export type Parameter =
  | string
  | number
  | boolean
  | null
  | undefined
  | Uint8Array
  | readonly (string | number | boolean | null | undefined | Uint8Array)[];

/** A row as the databases return it. */
export type Row = Readonly<Record<string, string | number | bigint | Uint8Array | null>>;

/** A statement in each dialect, with `?` for parameters; an empty text is skipped. */
export interface Sql {
  readonly sqlite: string;
  readonly postgres: string;
}

/** The words that differ between the databases. */
export interface Dialect {
  /** A condition: the column has one of the values of a list, which is the next parameter. */
  among(column: string): string;
  /** Names the index to use, where the database does not find it itself. */
  by(index: string): string;
  /** Joins in the written order. */
  readonly crossJoin: string;
  /** Locks the selected rows; `of` names their table where several are read. */
  lock(of?: string): string;
  /** As `lock`, without the rows that are locked already. */
  lockFree(of?: string): string;
  /** Locks the selected rows against changes only. */
  share(of?: string): string;
  /** Locks the selected rows against removal only. */
  keyShare(of?: string): string;
  readonly noBytes: string;
}

const SQLITE: Dialect = {
  among: (column) => `${column} IN (SELECT value FROM json_each(?))`,
  by: (index) => `INDEXED BY ${index}`,
  crossJoin: "CROSS JOIN",
  // A writer locks the whole database.
  lock: () => "",
  lockFree: () => "",
  share: () => "",
  keyShare: () => "",
  noBytes: "zeroblob(0)",
};

const POSTGRES: Dialect = {
  among: (column) => `${column} = ANY(?)`,
  by: () => "",
  crossJoin: "JOIN",
  lock: (of) => `FOR UPDATE${ofTable(of)}`,
  lockFree: (of) => `FOR UPDATE${ofTable(of)} SKIP LOCKED`,
  share: (of) => `FOR SHARE${ofTable(of)}`,
  keyShare: (of) => `FOR KEY SHARE${ofTable(of)}`,
  noBytes: "CAST('' AS BYTEA)",
};

function ofTable(name: string | undefined): string {
  return name === undefined ? "" : ` OF ${name}`;
}

/** A statement with the words of each dialect; created once, as connections prepare it by its text. */
export function sql(text: (dialect: Dialect) => string): Sql {
  return { sqlite: text(SQLITE), postgres: text(POSTGRES) };
}

/** A statement that SQLite skips. */
export function postgresOnly(text: string): Sql {
  return { sqlite: "", postgres: text };
}

/** A statement that PostgreSQL skips. */
export function sqliteOnly(text: string): Sql {
  return { sqlite: text, postgres: "" };
}

/** A statement to run. */
export interface Statement {
  /** A text is the same in both dialects. */
  readonly sql: Sql | string;
  readonly parameters: readonly Parameter[];
  readonly returns: "rows" | "changes";
  /** True for the only one of its operation, which needs no transaction then. */
  readonly isAlone?: boolean | undefined;
}

/** The result of a statement. */
export interface Answer {
  readonly rows: readonly Row[];
  readonly changes: number;
}

/** The result of a skipped statement. */
export const NO_ANSWER: Answer = { rows: [], changes: 0 };

/** The text of a statement in a dialect. */
export function textOf({ sql }: Statement, dialect: keyof Sql): string {
  return typeof sql === "string" ? sql : sql[dialect];
}

/**
 * An operation of the store, as a sequence of statements of one transaction. It may be started again after a rollback,
 * and so keeps no state elsewhere.
 */
export type Work<T> = Generator<Statement, T, Answer>;

/** All rows. */
export function* all(sql: Sql | string, ...parameters: readonly Parameter[]): Work<readonly Row[]> {
  return (yield { sql, parameters, returns: "rows" }).rows;
}

/** The first row. */
export function* get(sql: Sql | string, ...parameters: readonly Parameter[]): Work<Row | undefined> {
  return (yield { sql, parameters, returns: "rows" }).rows[0];
}

/** Changes rows; returns how many. */
export function* run(sql: Sql | string, ...parameters: readonly Parameter[]): Work<number> {
  return (yield { sql, parameters, returns: "changes" }).changes;
}

/** The only statement of an operation. */
export function* alone<T>(work: Work<T>): Work<T> {
  const step = work.next();
  if (step.done === true) return step.value;
  const end = work.next(yield { ...step.value, isAlone: true });
  if (end.done === true) return end.value;
  throw new Error("Cannot run an operation: a statement that is alone is followed by another");
}

/** Thrown by an operation that found a concurrent one: it is rolled back and started again. */
export class ConflictError extends Error {
  override readonly name = "ConflictError";
}

/** Runs work synchronously, from its first step on. */
export function performed<T>(
  work: Work<T>,
  answer: (statement: Statement) => Answer,
  first: IteratorResult<Statement, T> = work.next(),
): T {
  let step = first;
  while (step.done !== true) step = work.next(answer(step.value));
  return step.value;
}

/** A text without U+0000, which PostgreSQL refuses, and where the SQLite client ends a text. */
export function storedText(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
}
