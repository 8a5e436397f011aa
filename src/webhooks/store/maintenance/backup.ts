import { dirname } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { storeError } from "../sqlite/connection.ts";
import { StoreError } from "../store.ts";
import { flush, knownVersion, withSqliteSource } from "./connection.ts";

/** A copy of a store. */
interface StoreBackup {
  readonly bytes: number;
  readonly schemaVersion: number;
}

const BUSY_MS = 2_000;
/** Pages of a step, after which progress is reported. */
const STEP_PAGES = 10_000;

interface BackupStep {
  readonly totalPages: number;
  readonly remainingPages: number;
}

/**
 * Copies a store as of one moment while others write to it. The target must not exist; only its owner may read it. The
 * encryption key file is not copied: keep it elsewhere, as both together reveal the secrets. `onCopied` receives the share
 * of the pages that are copied, now and then.
 */
export async function backupStore(
  path: string,
  target: string,
  onCopied: (share: number) => void = () => {},
): Promise<StoreBackup> {
  const schemaVersion = await withSqliteSource(path, (source) => source.perform(knownVersion(source)));
  // SQLite writes into an empty file that exists, so the copy is never readable by others.
  createFile(target);
  try {
    await copyPages(path, target, onCopied);
    for (const written of [target, dirname(target)]) flush(written);
  } catch (error) {
    Deno.removeSync(target);
    throw storeError(`Cannot copy the store "${path}"`, error);
  }
  return { bytes: Deno.statSync(target).size, schemaVersion };
}

/** `VACUUM INTO` would need all permissions, since it attaches. */
async function copyPages(path: string, target: string, onCopied: (share: number) => void): Promise<void> {
  const source = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    // The transaction keeps the state of one moment over all steps; without it, a write would start the copy over.
    source.exec("BEGIN");
    source.prepare("SELECT count(*) FROM sqlite_schema").get();
    const progress = ({ totalPages, remainingPages }: BackupStep) =>
      onCopied(1 - remainingPages / totalPages);
    await backup(source, target, { rate: STEP_PAGES, progress });
    source.exec("COMMIT");
  } finally {
    source.close();
  }
}

function createFile(target: string): void {
  try {
    Deno.openSync(target, { createNew: true, write: true, mode: 0o600 }).close();
  } catch (error) {
    const problem = `Cannot write the copy "${target}"`;
    if (error instanceof Deno.errors.AlreadyExists) {
      throw new StoreError("failed", `${problem}: the file exists`);
    }
    if (error instanceof Deno.errors.NotFound) {
      throw new Deno.errors.NotFound(`${problem}: there is no such folder`);
    }
    throw error;
  }
}
