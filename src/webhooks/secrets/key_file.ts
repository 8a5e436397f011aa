import { dirname } from "node:path";
import { errorText } from "../../base/error_text.ts";
import type { Logger } from "../../base/log.ts";

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
  /** Whether the settings hold keys: a key file only opens older secrets then. */
  readonly hasKeys: boolean;
  readonly logger: Logger;
}

/** The key file to use, which may be missing only where it may be created or is not needed. */
export async function chosenKeyFile(
  { named, ofStore, hasKeys, logger }: KeyFilePlaces,
): Promise<string | undefined> {
  if (named === undefined) return ofStore;
  const file = await fileAt(named);
  const other = ofStore === undefined ? undefined : await fileAt(ofStore);
  if (file !== undefined) {
    // Two paths may lead to one file.
    const isOther = other !== undefined && (other.dev !== file.dev || other.ino !== file.ino);
    if (isOther && ofStore !== undefined) await warnOfOther(named, ofStore, logger);
    return named;
  }
  if (hasKeys) {
    logger.warning("The key file is missing; the keys of WEBHOOK_ENCRYPTION_KEY are used", { file: named });
    return other === undefined ? named : ofStore;
  }
  // A new key would open nothing that the other one has sealed.
  if (other !== undefined) {
    throw new Error(`Cannot use the key file "${named}": it is missing; move "${ofStore}" there`);
  }
  if (ofStore !== undefined) return named;
  throw new Error(
    `Cannot use the key file "${named}": it is missing, and the store is shared; create it once`,
  );
}

async function warnOfOther(named: string, ofStore: string, logger: Logger): Promise<void> {
  const advice = await isSameKey(named, ofStore)
    ? "it holds the same key, remove it"
    : "it holds another key, which secrets in the store may require";
  logger.warning(`A key file next to the store is not used: ${advice}`, { file: ofStore });
}

async function isSameKey(...paths: readonly [string, string]): Promise<boolean> {
  try {
    const [one, other] = await Promise.all(paths.map((path) => Deno.readTextFile(path)));
    return one?.trim() === other?.trim();
  } catch {
    return false;
  }
}

async function fileAt(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
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
        "restore it from a backup",
    );
  }
  if (mode !== null && (mode & OTHERS) !== 0) {
    logger.warning(`The key file is open to others, mode ${(mode & 0o777).toString(8)}, expected 600`, {
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
        "A key that seals the signing secrets was created: back it up, without it they cannot be read",
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
