import { isPostgresAddress } from "../../../base/postgres_address.ts";
import { schemaVersion } from "../postgres/migration.ts";
import { integer } from "../rows.ts";
import { refuseVersion, SCHEMA_VERSION } from "../schema.ts";
import { fileAt, SqliteConnection } from "../sqlite/connection.ts";
import { StoreError } from "../store.ts";
import { get, run as runStatement, type Sql, type Work } from "../work.ts";

/** A store on one connection, for maintenance. */
export interface StoreConnection {
  readonly kind: keyof Sql;
  /** Its path, or its address without a password. */
  readonly shown: string;
  /** Performs work in the current transaction; without one each statement is its own. */
  perform<T>(work: Work<T>): Promise<T>;
}

/** Begins reads that all see the same state. */
export const READING: Sql = {
  sqlite: "BEGIN",
  postgres: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
};

/** Begins writes. */
export const WRITING: Sql = { sqlite: "BEGIN IMMEDIATE", postgres: "BEGIN" };

/** Runs `run` in one transaction. */
export async function transaction<T>(
  connection: StoreConnection,
  begin: Sql,
  run: () => Promise<T>,
): Promise<T> {
  await connection.perform(runStatement(begin));
  try {
    const result = await run();
    await connection.perform(runStatement("COMMIT"));
    return result;
  } catch (error) {
    // The error may have ended the transaction, or the connection.
    await connection.perform(runStatement("ROLLBACK")).catch(() => {});
    throw error;
  }
}

/** Performs each work in its own transaction. */
export function transactionsOn(connection: StoreConnection) {
  const write = <T>(work: () => Work<T>): Promise<T> =>
    transaction(connection, WRITING, () => connection.perform(work()));
  return { write, read: write };
}

/** Opens an existing store for as long as `run` takes; it changes nothing. */
export async function withStoreToRead<T>(
  address: string,
  run: (connection: StoreConnection) => Promise<T>,
): Promise<T> {
  return await (isPostgresAddress(address)
    ? withPostgresStore(address, run)
    : withSqliteSource(address, run));
}

/** Opens a PostgreSQL store for as long as `run` takes; loads its client only here. */
export async function withPostgresStore<T>(
  address: string,
  run: (connection: StoreConnection) => Promise<T>,
): Promise<T> {
  const { openPostgres } = await import("./postgres_connection.ts");
  const { close, ...connection } = await openPostgres(address);
  try {
    return await run({ kind: "postgres", ...connection });
  } finally {
    await close();
  }
}

/** Opens an existing store for as long as `run` takes, to change it while services use it. */
export async function withStoreToWrite<T>(
  address: string,
  run: (connection: StoreConnection) => Promise<T>,
): Promise<T> {
  if (isPostgresAddress(address)) return await withPostgresStore(address, run);
  return await withSqliteFile(address, { readOnly: false }, async (connection) => {
    const result = await run(sqliteStore(connection));
    // What was replaced must not remain there.
    connection.truncateLog();
    return result;
  });
}

/** Opens an existing database file for as long as `run` takes; it changes nothing. */
export async function withSqliteSource<T>(
  path: string,
  run: (connection: StoreConnection) => Promise<T>,
): Promise<T> {
  return await withSqliteFile(path, { readOnly: true }, (connection) => run(sqliteStore(connection)));
}

async function withSqliteFile<T>(
  path: string,
  options: { readonly readOnly: boolean },
  run: (connection: SqliteConnection) => Promise<T>,
): Promise<T> {
  if (fileAt(path)?.isFile !== true) {
    throw new Deno.errors.NotFound(`Cannot open the store "${path}": there is no such file`);
  }
  const connection = new SqliteConnection(path, options);
  try {
    return await run(connection);
  } finally {
    connection.close();
  }
}

/** An open database file as a store. */
export function sqliteStore(connection: SqliteConnection, shown: string = connection.path): StoreConnection {
  return {
    kind: "sqlite",
    shown,
    // deno-lint-ignore require-await -- a failure is a rejection
    perform: async (work) => connection.perform(work),
  };
}

/** Writes a file or folder to the disk, so that it survives a loss of power. */
export function flush(path: string): void {
  using file = Deno.openSync(path, { read: true });
  file.syncSync();
}

/** The version of a store's schema; 0 for none. */
export function* versionOf({ kind, shown }: StoreConnection): Work<number> {
  if (kind === "postgres") return yield* schemaVersion(shown);
  return integer(yield* get("PRAGMA user_version"), "user_version");
}

/** The version of a store that this release knows; throws for a half-filled store, or none. */
export function* knownVersion(connection: StoreConnection): Work<number> {
  const version = yield* versionOf(connection);
  const { shown } = connection;
  refuseVersion(shown, version, SCHEMA_VERSION);
  if (version === 0) throw new StoreError("failed", `Cannot open the store "${shown}": it holds no store`);
  return version;
}

/** Writes the version of a store's schema. */
export function* writeVersion(version: number): Work<void> {
  // A pragma takes no parameters.
  yield* runStatement({
    sqlite: `PRAGMA user_version = ${version}`,
    postgres: `UPDATE schema_version SET version = ${version}`,
  });
}
