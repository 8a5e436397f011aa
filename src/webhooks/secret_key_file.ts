import { dirname } from "node:path";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";

/** How long a key of AES-256 is. */
export const ENCRYPTION_KEY_BYTES = 32;

const OWNER_ONLY = 0o600;
const OTHERS = 0o077;

/** Where a key file may be. */
export interface KeyFilePlaces {
  /** As the settings name it. */
  readonly named: string | undefined;
  /** Next to the store; absent where instances share the store, and none of them may create a key for itself. */
  readonly ofStore: string | undefined;
  readonly logger: Logger;
}

/** The key file to use, which may be missing only where it may be created. */
export async function chosenKeyFile(
  { named, ofStore, logger }: KeyFilePlaces,
): Promise<string | undefined> {
  if (named === undefined || named === ofStore) return ofStore;
  const isOther = ofStore !== undefined && await isThere(ofStore);
  if (await isThere(named)) {
    if (isOther) logger.warning("A key file next to the store is not used: remove it", { file: ofStore });
    return named;
  }
  // A new key would open nothing that the other one has sealed.
  if (isOther) throw new Error(`Cannot use the key file "${named}": it is missing; move "${ofStore}" there`);
  if (ofStore !== undefined) return named;
  throw new Error(
    `Cannot use the key file "${named}": it is missing, and the store is shared; create it once`,
  );
}

async function isThere(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** The key that a file holds; nothing where there is no such file, and a throw where it holds no key. */
export async function readKeyFile(path: string, logger: Logger): Promise<Uint8Array | undefined> {
  let text: string;
  let mode: number | null;
  try {
    text = await Deno.readTextFile(path);
    mode = (await Deno.stat(path)).mode;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw new Error(`Cannot read the key file "${path}": ${errorText(error)}`, { cause: error });
  }
  const key = keyOf(text.trim());
  if (key === undefined) {
    throw new Error(
      `Cannot use the key file "${path}": it does not hold base64 of ${ENCRYPTION_KEY_BYTES} bytes; ` +
        "the file as it was made, or from a backup, would be right",
    );
  }
  if (mode !== null && (mode & OTHERS) !== 0) {
    logger.warning(`The key file is open to others, mode ${(mode & 0o777).toString(8)}; 600 would be right`, {
      file: path,
    });
  }
  return key;
}

/** The key that a file holds, and whether there was none before. */
export interface FoundKey {
  readonly key: Uint8Array;
  readonly isMade: boolean;
}

/** The key that a file holds. Where there is none it is made; of processes that do so at once all get the same one. */
export async function readOrMakeKeyFile(path: string, logger: Logger): Promise<FoundKey> {
  const found = await readKeyFile(path, logger);
  if (found !== undefined) return { key: found, isMade: false };
  try {
    if (await make(path)) {
      logger.warning(
        "A key was made that seals the signing secrets: back it up, without it they cannot be read again",
        { file: path },
      );
    }
  } catch (error) {
    throw new Error(
      `Cannot make the key file "${path}": ${errorText(error)}; WEBHOOK_ENCRYPTION_KEY would do without it`,
      { cause: error },
    );
  }
  const made = await readKeyFile(path, logger);
  if (made === undefined) throw new Error(`Cannot read the key file "${path}": it is gone again`);
  return { key: made, isMade: true };
}

/**
 * Writes a key beside its place and links it there, which fails where a file stands: so nobody ever reads half a
 * key, and a process that ends meanwhile leaves none. False when another process was first.
 */
async function make(path: string): Promise<boolean> {
  const key = crypto.getRandomValues(new Uint8Array(ENCRYPTION_KEY_BYTES));
  const beside = `${path}.${crypto.randomUUID()}`;
  try {
    using file = await Deno.open(beside, { write: true, createNew: true, mode: OWNER_ONLY });
    const bytes = new TextEncoder().encode(`${key.toBase64()}\n`);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
    await file.sync();
    await Deno.link(beside, path);
    await syncFolder(dirname(path));
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return false;
    throw error;
  } finally {
    await Deno.remove(beside).catch(() => {});
  }
}

/** Makes the name of a new file last; some file systems do so by themselves and refuse to be asked. */
async function syncFolder(path: string): Promise<void> {
  using folder = await Deno.open(path);
  await folder.sync().catch(() => {});
}

function keyOf(text: string): Uint8Array | undefined {
  try {
    const key = Uint8Array.fromBase64(text);
    return key.length === ENCRYPTION_KEY_BYTES ? key : undefined;
  } catch {
    return undefined;
  }
}
