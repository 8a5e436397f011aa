import { dirname } from "node:path";
import type { Clock } from "../../../base/clock.ts";
import { timeText } from "../../../base/rfc3339.ts";
import { isPostgresAddress } from "../../../base/postgres_address.ts";
import { migratePostgres } from "../postgres/migration.ts";
import { integer, integerOrNone } from "../rows.ts";
import { halfFilledVersion, isHalfFilled, SCHEMA_VERSION } from "../schema.ts";
import { DispatchLock } from "../sqlite/dispatch_lock.ts";
import { fileAt, SqliteConnection } from "../sqlite/connection.ts";
import { migrate } from "../sqlite/migration.ts";
import { StoreError } from "../store.ts";
import { get, run, type Work } from "../work.ts";
import {
  flush,
  knownVersion,
  sqliteStore,
  type StoreConnection,
  transaction,
  transactionsOn,
  versionOf,
  withPostgresStore,
  withSqliteSource,
  writeVersion,
  WRITING,
} from "./connection.ts";
import { quoted, TABLE_NAMES } from "./tables.ts";

/** A store that is filled. */
export interface MoveTarget {
  readonly connection: StoreConnection;
  /** True if it has rows already and receives no others. */
  readonly isFilled: boolean;
  /** Lets services open it. */
  finish(): Promise<void>;
}

type Fill<T> = (target: MoveTarget) => Promise<T>;

/**
 * Opens a store to be filled; services refuse it until `finish`. The rows of an interrupted move are removed, and any
 * others stay.
 */
export async function withMoveTarget<T>(address: string, clock: Clock, fill: Fill<T>): Promise<T> {
  if (isPostgresAddress(address)) {
    return await withPostgresStore(address, (connection) => filledDatabase(connection, clock, fill));
  }
  Deno.mkdirSync(dirname(address), { recursive: true, mode: 0o700 });
  using _lock = lockedStore(address);
  if (fileAt(address) === undefined) return await filledFile(address, fill);
  return await withSqliteSource(address, async (connection) => {
    await connection.perform(knownVersion(connection));
    // deno-lint-ignore require-await -- a failure is a rejection
    return await fill({ connection, isFilled: true, finish: async () => removeFiles(temporaryOf(address)) });
  });
}

async function filledDatabase<T>(connection: StoreConnection, clock: Clock, fill: Fill<T>): Promise<T> {
  await refuseSessions(connection, clock);
  await transaction(connection, WRITING, () => connection.perform(emptied(connection)));
  await migratePostgres(transactionsOn(connection), { shownAddress: connection.shown });
  const isFilled = await transaction(connection, WRITING, () => connection.perform(marked()));
  const finish = async () => void await connection.perform(writeVersion(SCHEMA_VERSION));
  try {
    // A service that connected before the mark has not seen it.
    await refuseSessions(connection, clock);
  } catch (error) {
    if (!isFilled) await finish();
    throw error;
  }
  return await fill({ connection, isFilled, finish });
}

/** Removes the rows of an interrupted move. */
function* emptied(connection: StoreConnection): Work<void> {
  const version = yield* versionOf(connection);
  if (!isHalfFilled(version)) return;
  if (version !== halfFilledVersion(SCHEMA_VERSION)) {
    throw new StoreError(
      "failed",
      `Cannot move into the store "${connection.shown}": another release filled half of it; expected an empty database`,
    );
  }
  yield* run(`TRUNCATE ${quoted(TABLE_NAMES)}`);
  yield* writeVersion(SCHEMA_VERSION);
}

/** Marks a store without rows as half filled; true for one that has rows. */
function* marked(): Work<boolean> {
  yield* get("SELECT version FROM schema_version FOR UPDATE");
  for (const name of TABLE_NAMES) {
    if ((yield* get(`SELECT 1 AS one FROM "${name}" LIMIT 1`)) !== undefined) return true;
  }
  yield* writeVersion(halfFilledVersion(SCHEMA_VERSION));
  return false;
}

/** Fills a file of another name, which no service opens, and renames it at the end. */
async function filledFile<T>(path: string, fill: Fill<T>): Promise<T> {
  // SQLite would take the log of a deleted database for the log of this one.
  const log = `${path}-wal`;
  if (fileAt(log) !== undefined) {
    throw new StoreError("failed", `Cannot move into the store "${path}": the file "${log}" exists`);
  }
  const temporary = temporaryOf(path);
  removeFiles(temporary);
  // It is flushed at the end; after a loss of power the move starts over.
  const sqlite = new SqliteConnection(temporary, { pragmas: ["synchronous = OFF"] });
  try {
    migrate(sqlite);
    const connection = sqliteStore(sqlite, path);
    await connection.perform(writeVersion(halfFilledVersion(SCHEMA_VERSION)));
    return await fill({
      connection,
      isFilled: false,
      async finish() {
        await connection.perform(writeVersion(SCHEMA_VERSION));
        sqlite.close();
        rename(temporary, path);
      },
    });
  } finally {
    sqlite.close();
  }
}

function temporaryOf(path: string): string {
  return `${path}.moving`;
}

function removeFiles(path: string): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    if (fileAt(file) !== undefined) Deno.removeSync(file);
  }
}

/** Renames a file unless the name is taken; the file and its name survive a loss of power. */
function rename(from: string, to: string): void {
  flush(from);
  try {
    Deno.linkSync(from, to);
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    throw new StoreError(
      "failed",
      `Cannot move into the store "${to}": another process created it meanwhile`,
    );
  }
  Deno.removeSync(from);
  flush(dirname(to));
}

/** Longest wait for ending sessions, and the interval of its queries. */
const ENDING_MS = 5_000;
const QUERY_MS = 100;

/** The application name of our sessions unless the address names another. */
const SESSION_NAME = "weir";

/** The last time that has a text. */
const LAST_TIME = 8.64e15;

const SESSIONS = `
  SELECT count(*) AS count FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND application_name IN (?, current_setting('application_name'))`;

const LEASES = `
  SELECT max(lease_until) AS until, CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT) AS now FROM (
    SELECT max(lease_until) AS lease_until FROM delivery WHERE claim_id IS NOT NULL
    UNION ALL SELECT max(lease_until) FROM execution WHERE claim_id IS NOT NULL
  ) AS claimed`;

/** Takes the dispatch lock of a database file; throws while a service holds it. */
export function lockedStore(path: string): DispatchLock {
  const lock = DispatchLock.take(path);
  if (lock === undefined) throw inUse(path, "a service uses it");
  return lock;
}

/** Throws while services are connected to a database; a connection may outlast its killed process for a moment. */
export async function refuseSessions(connection: StoreConnection, clock: Clock): Promise<void> {
  for (const end = clock.elapsed() + ENDING_MS;;) {
    const count = integer(await connection.perform(get(SESSIONS, SESSION_NAME)), "count");
    if (count === 0) return;
    if (clock.elapsed() >= end) throw inUse(connection.shown, `${count} connections of services are open`);
    await new Promise<void>((resolve) => clock.after(QUERY_MS, resolve));
  }
}

/** Throws while a claim is held in a database, whose holder may have no visible session. */
export async function refuseClaims(connection: StoreConnection): Promise<void> {
  const row = await connection.perform(get(LEASES));
  const until = row === undefined ? undefined : integerOrNone(row, "until");
  if (until === undefined || until <= integer(row, "now")) return;
  const state = `a service has claimed work until ${timeText(Math.min(until, LAST_TIME))}`;
  throw inUse(connection.shown, state, " and wait until then");
}

function inUse(shown: string, state: string, more = ""): StoreError {
  return new StoreError("busy", `Cannot move the store "${shown}": ${state}; stop the service first${more}`);
}
