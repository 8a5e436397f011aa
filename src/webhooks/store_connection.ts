import { isPostgresAddress } from "./postgres_address.ts";
import { SqliteConnection } from "./sqlite_store_connection.ts";
import { run as changes, type Sql, type Work } from "./store_work.ts";
import { StoreError } from "./store.ts";

/** A store on one connection, for what is done with it beside the service. */
export interface StoreConnection {
  readonly kind: "sqlite" | "postgres";
  /** Where it is, without a password. */
  readonly shown: string;
  /** Carries out work, in the transaction that was begun; where none was each statement is one. */
  perform<T>(work: Work<T>): Promise<T>;
}

/** Begins reads that all see the same state. */
export const READING: Sql = {
  sqlite: "BEGIN",
  postgres: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
};

/** Begins what is written whole or not at all. */
export const WRITING: Sql = { sqlite: "BEGIN IMMEDIATE", postgres: "BEGIN" };

/** Does all that `run` does in one transaction. */
export async function transaction<T>(
  connection: StoreConnection,
  begin: Sql,
  run: () => Promise<T>,
): Promise<T> {
  await connection.perform(changes(begin));
  try {
    const answer = await run();
    await connection.perform(changes("COMMIT"));
    return answer;
  } catch (error) {
    // What went wrong may have ended the transaction, or the connection.
    await connection.perform(changes("ROLLBACK")).catch(() => {});
    throw error;
  }
}

/** Carries out each work in a transaction of its own. */
export function transactionsOn(connection: StoreConnection) {
  const perform = <T>(work: () => Work<T>): Promise<T> =>
    transaction(connection, WRITING, () => connection.perform(work()));
  return { perform, read: perform };
}

/** An open database file as a store. */
export function sqliteStore(connection: SqliteConnection, shown: string = connection.path): StoreConnection {
  return {
    kind: "sqlite",
    shown,
    // deno-lint-ignore require-await -- what fails is a rejection
    perform: async (work) => connection.perform(work),
  };
}

/** Opens a store that is there for as long as `run` takes, to change nothing. */
export async function withStoreToRead<T>(
  address: string,
  run: (connection: StoreConnection) => Promise<T>,
): Promise<T> {
  if (isPostgresAddress(address)) return await withPostgresStore(address, run);
  return await withSqliteSource(address, run);
}

/** Opens a PostgreSQL for as long as `run` takes. What speaks to it is loaded only here. */
export async function withPostgresStore<T>(
  address: string,
  run: (connection: StoreConnection) => Promise<T>,
): Promise<T> {
  const opened = await import("./postgres_store_connection.ts");
  return await opened.withPostgresStore(address, run);
}

/** Opens a database file that is there, to change nothing. */
export async function withSqliteSource<T>(
  path: string,
  run: (connection: StoreConnection) => Promise<T>,
): Promise<T> {
  if (fileAt(path)?.isFile !== true) {
    throw new StoreError("failed", `Cannot open the store "${path}": there is no such file`);
  }
  const connection = new SqliteConnection(path, { readOnly: true });
  try {
    return await run(sqliteStore(connection));
  } finally {
    connection.close();
  }
}

/** What stands at a path; nothing where there is nothing. */
export function fileAt(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
