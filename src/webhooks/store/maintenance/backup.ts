import { dirname } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { storeError } from "../sqlite/connection.ts";
import { withSqliteSource } from "./open_connection.ts";
import { knownVersion } from "./schema_version.ts";
import { StoreError } from "../store.ts";

/** What a copy holds. */
export interface StoreBackup {
  readonly bytes: number;
  readonly schemaVersion: number;
}

/**
 * Copies a store, in the state of one moment, while others write to it. The file of the copy must not be there; only
 * its owner may read it. The file of the encryption key beside the store is not copied: it has to be kept elsewhere,
 * as whoever has both can read the secrets.
 */
export async function backupStore(path: string, target: string): Promise<StoreBackup> {
  const version = await withSqliteSource(path, (source) => source.perform(knownVersion(source)));
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
