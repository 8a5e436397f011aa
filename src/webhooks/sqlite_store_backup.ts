import { dirname } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { MIGRATIONS, schemaVersion } from "./sqlite_schema.ts";
import { SqliteConnection, storeError } from "./sqlite_store_connection.ts";
import { storeBytes } from "./sqlite_store_records.ts";
import { text, whole } from "./sqlite_store_rows.ts";
import { StoreError } from "./store.ts";

/** What a copy holds. */
export interface StoreBackup {
  readonly bytes: number;
  readonly schemaVersion: number;
}

/** What a look into a store found. */
export interface StoreCheck {
  /** What is wrong, for people; nothing when all is well. */
  readonly problems: readonly string[];
  readonly schemaVersion: number;
  readonly bytes: number;
  /** How many rows each table has, by its name. */
  readonly counts: Readonly<Record<string, number>>;
}

/**
 * Copies a store, in the state of one moment, while others write to it. The file of the copy must not be there; only
 * its owner may read it. The file of the encryption key beside the store is not copied: it has to be kept elsewhere,
 * as whoever has both can read the secrets.
 */
export async function backupStore(path: string, target: string): Promise<StoreBackup> {
  const version = await withStore(path, knownVersion);
  // SQLite writes into a file that is there as long as it is empty, and so the copy is never open to others.
  createFile(target);
  try {
    await copyPages(path, target);
    flush(target);
  } catch (error) {
    Deno.removeSync(target);
    throw storeError(`Cannot copy the store "${path}"`, error);
  }
  return { bytes: Deno.statSync(target).size, schemaVersion: version };
}

/** In one step, and so of one moment. `VACUUM INTO` needs all permissions that there are, since it attaches. */
async function copyPages(path: string, target: string): Promise<void> {
  const source = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    await backup(source, target, { rate: -1 });
  } finally {
    source.close();
  }
}

const BUSY_MS = 2_000;

/** Looks whether a store is whole: its pages, its references, and what our own rules say of its rows. */
export function checkStore(path: string): Promise<StoreCheck> {
  return withStore(path, (connection) => {
    const version = knownVersion(connection);
    return connection.snapshot(() => ({
      problems: [...pageProblems(connection), ...ruleProblems(connection, version)],
      schemaVersion: version,
      bytes: storeBytes(connection),
      counts: Object.fromEntries(tableNames(connection).map((name) => [name, rowsOf(connection, name)])),
    }));
  });
}

/** Sentences of our own, each with what selects the rows that break it. */
const RULES: Readonly<Record<string, string>> = {
  "an open delivery is due or claimed":
    "SELECT id FROM delivery WHERE state IN ('attempting', 'retrying') AND due_at IS NULL AND claim_id IS NULL",
  "a delivery that has ended is not due":
    "SELECT id FROM delivery WHERE state IN ('acknowledged', 'failed') AND (due_at IS NOT NULL OR finished_at IS NULL)",
  "a delivery that failed has a reason, and no other has":
    "SELECT id FROM delivery WHERE (state = 'failed') <> (reason IS NOT NULL)",
  "a claim of a delivery has a lease":
    "SELECT id FROM delivery WHERE (claim_id IS NULL) <> (lease_until IS NULL)",
  "an open delivery has a payload": `
    SELECT delivery.id FROM delivery JOIN event ON event.id = event_id
    WHERE body IS NULL AND due_at IS NOT NULL AND event_id NOT IN (REMOVED)`,
  "an open delivery has an endpoint": `
    SELECT id FROM delivery
    WHERE due_at IS NOT NULL AND endpoint_id NOT IN (SELECT id FROM endpoint) AND endpoint_id NOT IN (REMOVED)`,
  "an attempt that runs belongs to a claim":
    "SELECT id FROM delivery JOIN attempt ON delivery_seq = seq WHERE result IS NULL AND claim_id IS NULL",
  "an open execution is due or claimed":
    "SELECT id FROM execution WHERE status IN ('queued', 'running') AND due_at IS NULL AND claim_id IS NULL",
  "an execution that has ended is neither due nor claimed":
    "SELECT id FROM execution WHERE status NOT IN ('queued', 'running') AND (due_at IS NOT NULL OR claim_id IS NOT NULL OR finished_at IS NULL)",
  "a claim of an execution has a lease":
    "SELECT id FROM execution WHERE (claim_id IS NULL) <> (lease_until IS NULL)",
  "an endpoint has a secret":
    "SELECT id FROM endpoint WHERE id NOT IN (SELECT endpoint_id FROM endpoint_secret)",
  "the tallies are right": `
    SELECT coalesce(tally.name, counted.name) AS id FROM tally FULL JOIN (
      SELECT 'delivery.' || state AS name, count(*) AS count FROM delivery GROUP BY state
      UNION ALL SELECT 'execution.' || status, count(*) FROM execution GROUP BY status
    ) AS counted ON counted.name = tally.name
    WHERE coalesce(tally.count, 0) <> coalesce(counted.count, 0)`,
};

/** Tables that hold no records. */
const OF_THE_STORE: ReadonlySet<string> = new Set(["tally", "removal", "swept"]);

/** How many of the rows that break a rule are named. */
const NAMED = 5;

// deno-lint-ignore require-await -- what fails is a rejection
async function withStore<T>(path: string, run: (connection: SqliteConnection) => T): Promise<T> {
  const stat = statOf(path);
  if (stat?.isFile !== true) {
    throw new StoreError("failed", `Cannot open the store "${path}": there is no such file`);
  }
  const connection = new SqliteConnection(path, { readOnly: true });
  try {
    return run(connection);
  } finally {
    connection.close();
  }
}

function knownVersion(connection: SqliteConnection): number {
  const version = schemaVersion(connection);
  if (version >= 1 && version <= MIGRATIONS.length) return version;
  const state = version === 0 ? "it holds no store" : `its schema has version ${version}`;
  throw new StoreError(
    "failed",
    `Cannot open the store "${connection.path}": ${state}, this release knows 1 to ${MIGRATIONS.length}`,
  );
}

function pageProblems(connection: SqliteConnection): readonly string[] {
  const pages = connection.all("PRAGMA integrity_check")
    .map((row) => text(row, "integrity_check"))
    .filter((line) => line !== "ok");
  const references = connection.all("PRAGMA foreign_key_check")
    .map((row) => `a row of ${text(row, "table")} names one of ${text(row, "parent")} that is not there`);
  return [...pages, ...references];
}

function ruleProblems(connection: SqliteConnection, version: number): readonly string[] {
  // What belongs to something that was removed ends in portions, since version 2.
  const removed = version === 1 ? "" : "SELECT id FROM removal";
  return Object.entries(RULES).flatMap(([rule, sql]) => {
    const broken = connection.all(sql.replace("REMOVED", removed)).map((row) => text(row, "id"));
    if (broken.length === 0) return [];
    const more = broken.length > NAMED ? ", …" : "";
    return [`not so: ${rule} (${broken.length}: ${broken.slice(0, NAMED).join(", ")}${more})`];
  });
}

function tableNames(connection: SqliteConnection): readonly string[] {
  return connection.all("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .map((row) => text(row, "name"))
    .filter((name) => !name.startsWith("sqlite_") && !OF_THE_STORE.has(name));
}

function rowsOf(connection: SqliteConnection, table: string): number {
  return whole(connection.get(`SELECT count(*) AS count FROM "${table}"`), "count");
}

function createFile(target: string): void {
  try {
    Deno.openSync(target, { createNew: true, write: true, mode: 0o600 }).close();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    throw new StoreError("failed", `Cannot write the copy "${target}": there is a file of that name`);
  }
}

/** The copy outlives a loss of power from here on. */
function flush(target: string): void {
  for (const path of [target, dirname(target)]) {
    using file = Deno.openSync(path, { read: true });
    file.syncSync();
  }
}

function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
