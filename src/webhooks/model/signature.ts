/** The prefix of `X-Svc-Signature`. */
export const SIGNATURE_PREFIX = "sha256=";
/** The prefix of an endpoint's signing secret; it is part of the key of `signature`. */
export const SECRET_PREFIX = "whsec_";

const encoder = new TextEncoder();

/**
 * The value of `X-Svc-Signature`: `sha256=` and the lower-case hex of the HMAC-SHA256 of the body. The key is the UTF-8
 * bytes of the secret, with its prefix.
 */
export async function signature(secret: string, body: Uint8Array): Promise<string> {
  const digest = await hmac(await importedKey(secret), body);
  let hex = SIGNATURE_PREFIX;
  for (const byte of digest) hex += HEX[byte];
  return hex;
}

/** Each byte in two digits. */
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Whether two texts are equal. The time depends on the longer text only, and reveals nothing about differences. */
export function constantTimeEqual(a: string, b: string): boolean {
  const length = Math.max(a.length, b.length);
  let difference = a.length ^ b.length;
  // Past the end of a text is NaN, which counts as 0 here: the lengths were compared above.
  for (let i = 0; i < length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}

const HMAC = { name: "HMAC", hash: "SHA-256" };
const MAX_KEYS = 1_000;
/** Importing a key takes longer than signing with it, and a receiver uses the same one every time. */
const keys = new Map<string, Promise<CryptoKey>>();

async function hmac(key: CryptoKey, bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign(HMAC, key, unshared(bytes)));
}

function importedKey(secret: string): Promise<CryptoKey> {
  const known = keys.get(secret);
  if (known !== undefined) return known;
  if (keys.size >= MAX_KEYS) keys.clear();
  const imported = crypto.subtle.importKey("raw", encoder.encode(secret), HMAC, false, ["sign"]);
  keys.set(secret, imported);
  imported.catch(() => keys.delete(secret));
  return imported;
}

/** Bytes that no other thread can change, as Web Crypto requires. */
function unshared(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer ? bytes as Uint8Array<ArrayBuffer> : new Uint8Array(bytes);
}
