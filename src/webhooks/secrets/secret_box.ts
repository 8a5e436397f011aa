import { errorText } from "../../base/error_text.ts";
import type { Logger } from "../../base/log.ts";
import { ENCRYPTION_KEY_BYTES, readKeyFile, readOrMakeKeyFile } from "./key_file.ts";
import type { Sealed } from "../model/records.ts";

const NONCE_BYTES = 12;
const KEY_ID_CHARACTERS = 16;
const SETTING = "WEBHOOK_ENCRYPTION_KEY";

/** Where the keys come from. */
export interface SecretBoxOptions {
  /** Of the setting: the first seals, all of them open. Without any the key file is used, and made. */
  readonly keys?: readonly Uint8Array[] | undefined;
  /**
   * A key beside the store. With `keys` it only opens what was sealed before there were any. Absent where none may be
   * made.
   */
  readonly keyFile?: string | undefined;
  readonly logger: Logger;
}

/** Keeps secrets that have to be read again: AES-256-GCM, each with the identifier of its key. */
export class SecretBox {
  readonly #keys: ReadonlyMap<string, CryptoKey>;
  readonly #sealing: { readonly id: string; readonly key: CryptoKey };

  /** The key file, where there was none and it was made. */
  readonly madeKeyFile: string | undefined;

  private constructor(
    keys: ReadonlyMap<string, CryptoKey>,
    sealing: { id: string; key: CryptoKey },
    madeKeyFile: string | undefined,
  ) {
    this.#keys = keys;
    this.#sealing = sealing;
    this.madeKeyFile = madeKeyFile;
  }

  /** Takes the keys of the setting, or the one of the key file; throws where there is none that can be used. */
  static async open(options: SecretBoxOptions): Promise<SecretBox> {
    const keys = new Map<string, CryptoKey>();
    const { all, isMade } = await keyBytes(options);
    for (const bytes of all) keys.set(await keyIdOf(bytes), await imported(bytes));
    const [first] = keys;
    if (first === undefined) throw new Error(`Cannot seal secrets: ${SETTING} holds no key`);
    const [id, key] = first;
    return new SecretBox(keys, { id, key }, isMade ? options.keyFile : undefined);
  }

  /** Which key seals. */
  get keyId(): string {
    return this.#sealing.id;
  }

  /** Whether there is this key. */
  has(keyId: string): boolean {
    return this.#keys.has(keyId);
  }

  /** Makes a text unreadable; the same text is never the same bytes twice. */
  async seal(text: string): Promise<Sealed> {
    const { id: keyId, key } = this.#sealing;
    const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
    const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, new TextEncoder().encode(text));
    const bytes = new Uint8Array(NONCE_BYTES + sealed.byteLength);
    bytes.set(iv);
    bytes.set(new Uint8Array(sealed), NONCE_BYTES);
    return { keyId, bytes };
  }

  /** The text again; throws when its key is not there, or when a bit of it was changed. */
  async unseal({ keyId, bytes }: Sealed): Promise<string> {
    const key = this.#keys.get(keyId);
    if (key === undefined) {
      throw new Error(
        `Cannot open a secret that was sealed under the key "${keyId}": it is not among the keys of ${SETTING} ` +
          "and of the key file; put it behind the others there",
      );
    }
    // A copy: what comes out of a store may be a view of a buffer that is used again.
    const iv = new Uint8Array(bytes.subarray(0, NONCE_BYTES));
    const sealed = new Uint8Array(bytes.subarray(NONCE_BYTES));
    try {
      return new TextDecoder().decode(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, sealed));
    } catch (cause) {
      throw new Error(`Cannot open a secret that was sealed under the key "${keyId}": it was changed since`, {
        cause,
      });
    }
  }
}

interface KeyBytes {
  readonly all: readonly Uint8Array[];
  /** The key file was not there. */
  readonly isMade: boolean;
}

async function keyBytes({ keys = [], keyFile, logger }: SecretBoxOptions): Promise<KeyBytes> {
  if (keys.length === 0) {
    if (keyFile === undefined) return { all: [], isMade: false };
    const { key, isMade } = await readOrMakeKeyFile(keyFile, logger);
    return { all: [key], isMade };
  }
  for (const { length } of keys) {
    if (length === ENCRYPTION_KEY_BYTES) continue;
    throw new Error(`Cannot use a key of ${SETTING}: expected 32 bytes, got ${length}`);
  }
  const before = keyFile === undefined ? undefined : await keyBefore(keyFile, logger);
  return { all: before === undefined ? keys : [...keys, before], isMade: false };
}

/** The key that sealed before there were any in the setting. */
async function keyBefore(keyFile: string, logger: Logger): Promise<Uint8Array | undefined> {
  try {
    return await readKeyFile(keyFile, logger);
  } catch (error) {
    logger.warning(errorText(error), { file: keyFile });
    return undefined;
  }
}

/** A name for a key that tells nothing about it. */
async function keyIdOf(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new Uint8Array(bytes));
  return new Uint8Array(digest).toHex().slice(0, KEY_ID_CHARACTERS);
}

async function imported(bytes: Uint8Array): Promise<CryptoKey> {
  return await crypto.subtle.importKey("raw", new Uint8Array(bytes), "AES-GCM", false, [
    "encrypt",
    "decrypt",
  ]);
}
