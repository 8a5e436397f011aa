import { dirname } from "node:path";
import { errorText } from "../../base/error_text.ts";
import type { Logger } from "../../base/log.ts";

/** Of a key of AES-256. */
export const ENCRYPTION_KEY_BYTES = 32;

const OWNER_ONLY = 0o600;
const OTHERS = 0o077;

/** The allowed place of a key file. */
interface KeyFilePlaces {
  readonly named: string | undefined;
  /** Next to the store; absent where instances share the store, so that none may create its own key. */
  readonly ofStore: string | undefined;
  /** True if the settings hold keys: a key file only opens older secrets then. */
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
    throw new Deno.errors.NotFound(
      `Cannot use the key file "${named}": it is missing; move "${ofStore}" there`,
    );
  }
  if (ofStore !== undefined) return named;
  throw new Deno.errors.NotFound(
    `Cannot use the key file "${named}": it is missing, and the store is shared; create it once`,
  );
}

async function warnOfOther(named: string, ofStore: string, logger: Logger): Promise<void> {
  const [one, other] = await Promise.all(
    [named, ofStore].map((path) => Deno.readTextFile(path).then((text) => text.trim(), () => undefined)),
  );
  const advice = one !== undefined && one === other
    ? "it holds the same key, remove it"
    : "it holds another key, which secrets in the store may require";
  logger.warning(`A key file next to the store is not used: ${advice}`, { file: ofStore });
}

async function fileAt(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** The key of a file; nothing where the file is missing. Throws when it holds no key. */
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
    const state = `it does not hold base64 of ${ENCRYPTION_KEY_BYTES} bytes; restore it from a backup`;
    throw new Error(`Cannot use the key file "${path}": ${state}`);
  }
  if (mode !== null && (mode & OTHERS) !== 0) {
    const found = (mode & 0o777).toString(8);
    logger.warning(`The key file is open to others, mode ${found}, expected 600`, { file: path });
  }
  return key;
}

/** The key of a file, which is created where it is missing; processes that do so concurrently get the same one. */
export async function readOrCreateKeyFile(
  path: string,
  logger: Logger,
): Promise<{ readonly key: Uint8Array; readonly isCreated: boolean }> {
  const found = await readKeyFile(path, logger);
  if (found !== undefined) return { key: found, isCreated: false };
  try {
    if (await create(path)) {
      const text =
        "Encryption key created; back it up, because the signing secrets cannot be decrypted without it";
      logger.info(text, { file: path }, "warning");
    }
  } catch (cause) {
    const text = `Cannot create the key file "${path}": ${
      errorText(cause)
    }; set WEBHOOK_ENCRYPTION_KEY instead`;
    throw new Error(text, { cause });
  }
  const key = await readKeyFile(path, logger);
  if (key === undefined) throw new Error(`Cannot read the key file "${path}": it was removed`);
  return { key, isCreated: true };
}

/**
 * Writes a key to a temporary file and links that to its path, which fails where a file exists: so no process reads half
 * a key, and one that ends meanwhile leaves none. False when another process was first.
 */
async function create(path: string): Promise<boolean> {
  const key = crypto.getRandomValues(new Uint8Array(ENCRYPTION_KEY_BYTES));
  const temporary = `${path}.${crypto.randomUUID()}`;
  try {
    using file = await Deno.open(temporary, { write: true, createNew: true, mode: OWNER_ONLY });
    const bytes = new TextEncoder().encode(`${key.toBase64()}\n`);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
    await file.sync();
    await Deno.link(temporary, path);
    await syncFolder(dirname(path));
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return false;
    throw error;
  } finally {
    await Deno.remove(temporary).catch(() => {});
  }
}

/** Makes the name of a new file durable; some file systems do so by themselves and refuse the call. */
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
