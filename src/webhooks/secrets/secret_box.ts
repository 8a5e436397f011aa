import { errorText } from "../../base/error_text.ts";
import type { Logger } from "../../base/log.ts";
import { ENCRYPTION_KEY_BYTES, readKeyFile, readOrCreateKeyFile } from "./key_file.ts";
import type { Sealed } from "../model/records.ts";

const NONCE_BYTES = 12;
const KEY_ID_CHARACTERS = 16;
const SETTING = "WEBHOOK_ENCRYPTION_KEY";
/** Separates the key of hashes from all else that an encryption key is used for. */
const HASHING = new TextEncoder().encode("weir hash of values");

/** The source of the keys. */
interface SecretBoxOptions {
  /** Of the setting: the first seals, all of them open. Without any the key file is used, and created. */
  readonly keys?: readonly Uint8Array[] | undefined;
  /** With `keys` it only opens what was sealed before there were any. Absent where none may be created. */
  readonly keyFile?: string | undefined;
  readonly logger: Logger;
}

/** Seals secrets that have to be read again with AES-256-GCM, each with the id of its key. */
export class SecretBox {
  /** Of the key that seals. */
  readonly keyId: string;
  /** The key file, where it was created. */
  readonly madeKeyFile: string | undefined;
  readonly #keys: ReadonlyMap<string, CryptoKey>;
  readonly #sealing: CryptoKey;
  readonly #hashing: CryptoKey;

  private constructor(
    keys: ReadonlyMap<string, CryptoKey>,
    [keyId, key]: readonly [string, CryptoKey],
    { hashing, madeKeyFile }: { readonly hashing: CryptoKey; readonly madeKeyFile: string | undefined },
  ) {
    this.#keys = keys;
    this.#sealing = key;
    this.#hashing = hashing;
    this.keyId = keyId;
    this.madeKeyFile = madeKeyFile;
  }

  /** Uses the keys of the setting, or the one of the key file; throws where there is no valid one. */
  static async open(options: SecretBoxOptions): Promise<SecretBox> {
    const keys = new Map<string, CryptoKey>();
    const { all, isCreated } = await keyBytes(options);
    for (const bytes of all) keys.set(await keyIdOf(bytes), await imported(bytes));
    const [first] = keys;
    const [sealing] = all;
    if (first === undefined || sealing === undefined) {
      throw new Error(`Cannot encrypt secrets: ${SETTING} holds no key`);
    }
    const madeKeyFile = isCreated ? options.keyFile : undefined;
    return new SecretBox(keys, first, { hashing: await hashingKey(sealing), madeKeyFile });
  }

  has(keyId: string): boolean {
    return this.#keys.has(keyId);
  }

  /** A hash of a text in hex, which cannot be guessed without the key that seals. */
  async hash(text: string): Promise<string> {
    const hash = await crypto.subtle.sign("HMAC", this.#hashing, new TextEncoder().encode(text));
    return new Uint8Array(hash).toHex();
  }

  /** Encrypts a text; the same text never has the same bytes twice. */
  async seal(text: string): Promise<Sealed> {
    const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
    const sealed = await crypto.subtle.encrypt(
      { name: "AES-GCM", iv },
      this.#sealing,
      new TextEncoder().encode(text),
    );
    const bytes = new Uint8Array(NONCE_BYTES + sealed.byteLength);
    bytes.set(iv);
    bytes.set(new Uint8Array(sealed), NONCE_BYTES);
    return { keyId: this.keyId, bytes };
  }

  /** Decrypts a text; throws when its key is missing, or when it was changed. */
  async unseal({ keyId, bytes }: Sealed): Promise<string> {
    const key = this.#keys.get(keyId);
    if (key === undefined) {
      throw new Error(
        `Cannot decrypt a secret that was encrypted with the key "${keyId}": it is not among the keys of ${SETTING} ` +
          "and of the key file; put it behind the others there",
      );
    }
    // Copies: bytes of a store may be a view of a buffer that is reused.
    const iv = new Uint8Array(bytes.subarray(0, NONCE_BYTES));
    const sealed = new Uint8Array(bytes.subarray(NONCE_BYTES));
    try {
      return new TextDecoder().decode(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, sealed));
    } catch (cause) {
      const text = `Cannot decrypt a secret that was encrypted with the key "${keyId}": it was changed since`;
      throw new Error(text, { cause });
    }
  }
}

/** The keys, the sealing one first, and whether the key file was created. */
async function keyBytes(
  { keys = [], keyFile, logger }: SecretBoxOptions,
): Promise<{ readonly all: readonly Uint8Array[]; readonly isCreated: boolean }> {
  if (keys.length === 0) {
    if (keyFile === undefined) return { all: [], isCreated: false };
    const { key, isCreated } = await readOrCreateKeyFile(keyFile, logger);
    return { all: [key], isCreated };
  }
  for (const { length } of keys) {
    if (length === ENCRYPTION_KEY_BYTES) continue;
    throw new Error(`Cannot use a key of ${SETTING}: expected 32 bytes, got ${length}`);
  }
  // It sealed what was there before the setting had keys.
  const older = keyFile === undefined ? undefined : await readKeyFile(keyFile, logger).catch((error) => {
    logger.warning(errorText(error), { file: keyFile });
    return undefined;
  });
  return { all: older === undefined ? keys : [...keys, older], isCreated: false };
}

/** The id of a key, which reveals nothing about it. */
async function keyIdOf(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new Uint8Array(bytes));
  return new Uint8Array(digest).toHex().slice(0, KEY_ID_CHARACTERS);
}

async function hashingKey(bytes: Uint8Array): Promise<CryptoKey> {
  const source = await crypto.subtle.importKey("raw", new Uint8Array(bytes), "HKDF", false, ["deriveKey"]);
  const derivation = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: HASHING };
  const use = { name: "HMAC", hash: "SHA-256", length: 256 };
  return await crypto.subtle.deriveKey(derivation, source, use, false, ["sign"]);
}

async function imported(bytes: Uint8Array): Promise<CryptoKey> {
  const uses: KeyUsage[] = ["encrypt", "decrypt"];
  return await crypto.subtle.importKey("raw", new Uint8Array(bytes), "AES-GCM", false, uses);
}
