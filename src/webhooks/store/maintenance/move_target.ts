import { dirname } from "node:path";
import type { Clock } from "../../../base/clock.ts";
import { halfFilledVersion, isHalfFilled, SCHEMA_VERSION } from "../schema.ts";
import { isPostgresAddress } from "../../../base/postgres_address.ts";
import { migratePostgres } from "../postgres/migration.ts";
import { migrate } from "../sqlite/migration.ts";
import { SqliteConnection } from "../sqlite/connection.ts";
import { fileAt, sqliteStore, withPostgresStore, withSqliteSource } from "./open_connection.ts";
import { type StoreConnection, transaction, transactionsOn, WRITING } from "./connection.ts";
import { quoted, TABLE_NAMES } from "./tables.ts";
import { lockedStore, refuseSessions } from "./users.ts";
import { knownVersion, versionOf, writeVersion } from "./schema_version.ts";
import { get, run, type Work } from "../work.ts";
import { StoreError } from "../store.ts";

/** A store that is filled. */
export interface MoveTarget {
  readonly connection: StoreConnection;
  /** Whether it has rows already and takes no others. */
  readonly isFilled: boolean;
  /** Makes it one that services open. */
  finish(): Promise<void>;
}

/**
 * Opens a store that is to be filled; services refuse it until `finish`. What a move that was broken off has left there
 * goes, and what else is there stays as it is.
 */
export async function withMoveTarget<T>(
  address: string,
  clock: Clock,
  fill: (target: MoveTarget) => Promise<T>,
): Promise<T> {
  if (isPostgresAddress(address)) {
    return await withPostgresStore(address, (connection) => filledDatabase(connection, clock, fill));
  }
  Deno.mkdirSync(dirname(address), { recursive: true, mode: 0o700 });
  using _lock = lockedStore(address);
  if (fileAt(address) === undefined) return await filledFile(address, fill);
  return await withSqliteSource(address, async (connection) => {
    await connection.perform(knownVersion(connection));
    // deno-lint-ignore require-await -- what fails is a rejection
    return await fill({ connection, isFilled: true, finish: async () => removeLeft(temporaryOf(address)) });
  });
}

async function filledDatabase<T>(
  connection: StoreConnection,
  clock: Clock,
  fill: (target: MoveTarget) => Promise<T>,
): Promise<T> {
  await refuseSessions(connection, clock);
  await transaction(connection, WRITING, () => connection.perform(emptied(connection)));
  await migratePostgres(transactionsOn(connection), { shownAddress: connection.shown });
  const isFilled = await transaction(connection, WRITING, () => connection.perform(marked(connection)));
  const finish = async () => void await connection.perform(writeVersion(connection, SCHEMA_VERSION));
  try {
    // Who came before the mark has not seen it.
    await refuseSessions(connection, clock);
  } catch (error) {
    if (!isFilled) await finish();
    throw error;
  }
  return await fill({ connection, isFilled, finish });
}

/** Takes out what a move left that was broken off. */
function* emptied(connection: StoreConnection): Work<void> {
  const version = yield* versionOf(connection);
  if (!isHalfFilled(version)) return;
  if (version !== halfFilledVersion(SCHEMA_VERSION)) {
    throw new StoreError(
      "failed",
      `Cannot move into the store "${connection.shown}": another release has filled it halfway; ` +
        "an empty database would be right",
    );
  }
  yield* run(`TRUNCATE ${quoted(TABLE_NAMES)}`);
  yield* writeVersion(connection, SCHEMA_VERSION);
}

/** Marks a store without rows; true for one that has some. */
function* marked(connection: StoreConnection): Work<boolean> {
  yield* get("SELECT version FROM schema_version FOR UPDATE");
  for (const name of TABLE_NAMES) {
    if ((yield* get(`SELECT 1 AS one FROM "${name}" LIMIT 1`)) !== undefined) return true;
  }
  yield* writeVersion(connection, halfFilledVersion(SCHEMA_VERSION));
  return false;
}

/** Under a name of its own, a file is no store of any service until it is given the one that was asked for. */
async function filledFile<T>(path: string, fill: (target: MoveTarget) => Promise<T>): Promise<T> {
  // SQLite would take the log of another database, which lost its file, for the log of this one.
  const log = `${path}-wal`;
  if (fileAt(log) !== undefined) {
    throw new StoreError("failed", `Cannot move into the store "${path}": there is a file "${log}"`);
  }
  const temporary = temporaryOf(path);
  removeLeft(temporary);
  // It is written to the disk at the end; after a loss of power the move begins anew.
  const sqlite = new SqliteConnection(temporary, { pragmas: ["synchronous = OFF"] });
  try {
    migrate(sqlite);
    const connection = sqliteStore(sqlite, path);
    await connection.perform(writeVersion(connection, halfFilledVersion(SCHEMA_VERSION)));
    return await fill({
      connection,
      isFilled: false,
      async finish() {
        await connection.perform(writeVersion(connection, SCHEMA_VERSION));
        sqlite.close();
        named(temporary, path);
      },
    });
  } finally {
    sqlite.close();
  }
}

function temporaryOf(path: string): string {
  return `${path}.moving`;
}

/** What a move has left there that was broken off. */
function removeLeft(temporary: string): void {
  for (const file of [temporary, `${temporary}-wal`, `${temporary}-shm`]) {
    if (fileAt(file) !== undefined) Deno.removeSync(file);
  }
}

/** Gives a file its name, which nothing else may have; the file and its name outlive a loss of power. */
function named(temporary: string, path: string): void {
  flushed(temporary);
  try {
    Deno.linkSync(temporary, path);
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    throw new StoreError("failed", `Cannot move into the store "${path}": somebody has made it meanwhile`);
  }
  Deno.removeSync(temporary);
  flushed(dirname(path));
}

function flushed(path: string): void {
  using file = Deno.openSync(path, { read: true });
  file.syncSync();
}
