/** What a statement is given; `undefined` is stored as NULL, truth as 1 and 0, and a list is one parameter. */
export type Parameter =
  | string
  | number
  | boolean
  | null
  | undefined
  | Uint8Array
  | readonly string[]
  | readonly number[];

/** What a database gives for a row. */
export type Row = Readonly<Record<string, string | number | bigint | Uint8Array | null>>;

/**
 * A statement in each dialect, its parameters as `?`. An empty text is no statement: what only one of the databases
 * needs is passed over by the other.
 */
export interface Sql {
  readonly sqlite: string;
  readonly postgres: string;
}

/** The words that differ between the databases. */
export interface Dialect {
  /** A condition: the column has one of the values of a list, which is the next parameter. */
  among(column: string): string;
  /** Has a statement go by an index, where the database does not see for itself that it should. */
  by(index: string): string;
  /** Joins in the order that is written. */
  readonly crossJoin: string;
  /** Keeps others from changing the rows that are read; `of` names their table where several are read. */
  lock(of?: string): string;
  /** As `lock`, without the rows that others keep. */
  lockFree(of?: string): string;
  /** Keeps rows from being changed, while others may do the same. */
  share(of?: string): string;
  /** An octet string without octets. */
  readonly noBytes: string;
}

const SQLITE: Dialect = {
  among: (column) => `${column} IN (SELECT value FROM json_each(?))`,
  by: (index) => `INDEXED BY ${index}`,
  crossJoin: "CROSS JOIN",
  // Whoever writes has the whole database for itself.
  lock: () => "",
  lockFree: () => "",
  share: () => "",
  noBytes: "zeroblob(0)",
};

const POSTGRES: Dialect = {
  among: (column) => `${column} = ANY(?)`,
  by: () => "",
  crossJoin: "JOIN",
  lock: (of) => `FOR UPDATE${ofTable(of)}`,
  lockFree: (of) => `FOR UPDATE${ofTable(of)} SKIP LOCKED`,
  share: (of) => `FOR SHARE${ofTable(of)}`,
  noBytes: "CAST('' AS BYTEA)",
};

function ofTable(name: string | undefined): string {
  return name === undefined ? "" : ` OF ${name}`;
}

/** A statement with the words of each dialect; made once, so that a connection knows it again. */
export function sql(text: (dialect: Dialect) => string): Sql {
  return { sqlite: text(SQLITE), postgres: text(POSTGRES) };
}

/** A statement that only PostgreSQL and its kin need. */
export function postgresOnly(text: string): Sql {
  return { sqlite: "", postgres: text };
}

/** A statement that only SQLite needs. */
export function sqliteOnly(text: string): Sql {
  return { sqlite: text, postgres: "" };
}

/** A statement that is to be carried out. */
export interface Statement {
  /** A text stands for both dialects. */
  readonly sql: Sql | string;
  readonly parameters: readonly Parameter[];
  readonly returns: "rows" | "changes";
  /** Whether the operation has no other, so that nobody need begin and end a transaction around it. */
  readonly isAlone?: boolean | undefined;
}

/** What became of a statement. */
export interface Answer {
  readonly rows: readonly Row[];
  readonly changes: number;
}

/** The answer to a statement that a dialect does not have. */
export const NO_ANSWER: Answer = { rows: [], changes: 0 };

/** The text of a statement in a dialect; empty where it has none. */
export function textOf({ sql }: Statement, dialect: keyof Sql): string {
  return typeof sql === "string" ? sql : sql[dialect];
}

/**
 * An operation of the store, as a sequence of statements of one transaction. Whoever carries it out hands in the answer
 * to each, and may begin anew after what was done has been rolled back: an operation keeps nothing outside itself.
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

/** Changes rows; answers how many. */
export function* run(sql: Sql | string, ...parameters: readonly Parameter[]): Work<number> {
  return (yield { sql, parameters, returns: "changes" }).changes;
}

/** The one statement of an operation; it is no part of a larger one. */
export function* alone<T>(work: Work<T>): Work<T> {
  const step = work.next();
  if (step.done === true) return step.value;
  const end = work.next(yield { ...step.value, isAlone: true });
  if (end.done === true) return end.value;
  throw new Error("Cannot carry out an operation: a statement that is alone is followed by another");
}

/**
 * Thrown by an operation that saw another come before it, where the database lets two of them begin: what it has done
 * is rolled back, and it is done anew.
 */
export class ConflictError extends Error {
  override readonly name = "ConflictError";
}

/** Carries out work with somebody who answers at once. */
export function performed<T>(work: Work<T>, answer: (statement: Statement) => Answer): T {
  let step = work.next();
  while (step.done !== true) step = work.next(answer(step.value));
  return step.value;
}

/**
 * A text as both databases store it. PostgreSQL refuses U+0000, and the client reads a text of SQLite only up to there.
 */
export function storedText(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
}
