import { isPostgresAddress } from "../../../base/postgres_address.ts";
import { SqliteConnection } from "../sqlite/connection.ts";
import type { StoreConnection } from "./connection.ts";
import { StoreError } from "../store.ts";

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
  const opened = await import("./postgres_connection.ts");
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
