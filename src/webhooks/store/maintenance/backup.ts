import { dirname } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { storeError } from "../sqlite/connection.ts";
import { StoreError } from "../store.ts";
import { flush, knownVersion, withSqliteSource } from "./connection.ts";

/** A copy of a store. */
export interface StoreBackup {
  readonly bytes: number;
  readonly schemaVersion: number;
}

const BUSY_MS = 2_000;

/**
 * Copies a store as of one moment while others write to it. The target must not exist; only its owner may read it. The
 * encryption key file is not copied: keep it elsewhere, as both together reveal the secrets.
 */
export async function backupStore(path: string, target: string): Promise<StoreBackup> {
  const schemaVersion = await withSqliteSource(path, (source) => source.perform(knownVersion(source)));
  // SQLite writes into an empty file that exists, so the copy is never readable by others.
  createFile(target);
  try {
    await copyPages(path, target);
    for (const written of [target, dirname(target)]) flush(written);
  } catch (error) {
    Deno.removeSync(target);
    throw storeError(`Cannot copy the store "${path}"`, error);
  }
  return { bytes: Deno.statSync(target).size, schemaVersion };
}

/** In one step, and so of one moment. `VACUUM INTO` would need all permissions, since it attaches. */
async function copyPages(path: string, target: string): Promise<void> {
  const source = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    await backup(source, target, { rate: -1 });
  } finally {
    source.close();
  }
}

function createFile(target: string): void {
  try {
    Deno.openSync(target, { createNew: true, write: true, mode: 0o600 }).close();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    throw new StoreError("failed", `Cannot write the copy "${target}": the file exists`);
  }
}
