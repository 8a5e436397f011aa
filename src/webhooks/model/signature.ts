/** The prefix of `X-Svc-Signature`. */
const SIGNATURE_PREFIX = "sha256=";
/** The prefix of an endpoint's signing secret; it is part of the key of `signature`. */
export const SECRET_PREFIX = "whsec_";

/** Some senders show the version of the signature in front of it. */
const BASE64_SECRET = new RegExp(`^(?:v1,)?${SECRET_PREFIX}([^]*)$`);

const encoder = new TextEncoder();

/** The content that the headers of Standard Webhooks sign. */
export interface StandardWebhooksOptions {
  /** Of the delivery, the same on every attempt. */
  readonly id: string;
  /** When the attempt is sent. */
  readonly timestampSeconds: number;
  readonly body: Uint8Array;
  /** With their prefix; each gives a signature. */
  readonly secrets: readonly string[];
}

/**
 * The value of `X-Svc-Signature`: `sha256=` and the lower-case hex of the HMAC-SHA256 of the body. The key is the UTF-8
 * bytes of the secret, with its prefix.
 */
export async function signature(secret: string, body: Uint8Array): Promise<string> {
  const digest = await hmac({ secret, form: "text" }, body);
  let hex = SIGNATURE_PREFIX;
  for (const byte of digest) hex += HEX[byte];
  return hex;
}

/** Each byte in two digits. */
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * The headers of Standard Webhooks, which sign the identifier and the time as well. The key is a secret without its
 * prefix, decoded from base64; throws a `TypeError` when that is impossible.
 */
export async function standardWebhooksHeaders(
  { id, timestampSeconds, body, secrets }: StandardWebhooksOptions,
): Promise<Record<string, string>> {
  const signed = signedBytes(`${id}.${timestampSeconds}.`, body);
  const signatures = await Promise.all(secrets.map(async (secret) => {
    const digest = await hmac({ secret, form: "base64" }, signed);
    return `v1,${btoa(String.fromCharCode(...digest))}`;
  }));
  return {
    "webhook-id": id,
    "webhook-timestamp": `${timestampSeconds}`,
    "webhook-signature": signatures.join(" "),
  };
}

/** A secret, and how it becomes a key: as its UTF-8 bytes, or behind `whsec_` as base64. */
export interface SigningSecret {
  readonly secret: string;
  readonly form: "text" | "base64";
  /** SHA-256 when absent. */
  readonly hash?: "SHA-1" | "SHA-256" | "SHA-512" | undefined;
}

/** The HMAC of bytes; throws a `TypeError` for a secret that is not in its form. */
export async function hmac(signing: SigningSecret, bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign("HMAC", await importedKey(signing), unshared(bytes)));
}

/** A body behind a text that is signed with it. */
function signedBytes(head: string, body: Uint8Array): Uint8Array {
  if (head === "") return body;
  const bytes = encoder.encode(head);
  const signed = new Uint8Array(bytes.length + body.length);
  signed.set(bytes);
  signed.set(body, bytes.length);
  return signed;
}

/** Returns whether a secret is `whsec_` followed by base64. */
export function isBase64Secret(secret: string, minBytes = 1): boolean {
  return decodedSecret(secret).length >= minBytes;
}

const SECONDS = /^(?:0|[1-9][0-9]{0,14})$/;

/** The seconds that a timestamp is behind `now`; undefined if it is not a whole number of seconds. */
export function secondsBehind(timestamp: string, now: number): number | undefined {
  // Whole seconds on both sides: the sender truncates, too.
  return SECONDS.test(timestamp) ? Math.floor(now / 1_000) - Number(timestamp) : undefined;
}

/** Returns whether two texts are equal. The time depends on the longer text only, and reveals nothing about differences. */
export function constantTimeEqual(a: string, b: string): boolean {
  const length = Math.max(a.length, b.length);
  let difference = a.length ^ b.length;
  // Past the end of a text is NaN, which counts as 0 here: the lengths were compared above.
  for (let i = 0; i < length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}

const MAX_KEYS = 1_000;
/** Importing a key takes longer than signing with it, and an endpoint uses the same one every time. */
const keys = new Map<string, Promise<CryptoKey>>();

/** The key of a secret; a new one is imported. */
function importedKey({ secret, form, hash = "SHA-256" }: SigningSecret): Promise<CryptoKey> {
  const name = `${hash} ${form} ${secret}`;
  const known = keys.get(name);
  if (known !== undefined) return known;
  if (keys.size >= MAX_KEYS) keys.clear();
  const imported = importKey({ secret, form, hash });
  keys.set(name, imported);
  imported.catch(() => keys.delete(name));
  return imported;
}

async function importKey({ secret, form, hash }: SigningSecret): Promise<CryptoKey> {
  const bytes = form === "text" ? encoder.encode(secret) : secretBytes(secret);
  return await crypto.subtle.importKey("raw", unshared(bytes), { name: "HMAC", hash }, false, ["sign"]);
}

/** Bytes that no other thread can change, as Web Crypto requires. */
export function unshared(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer ? bytes as Uint8Array<ArrayBuffer> : new Uint8Array(bytes);
}

function secretBytes(secret: string): Uint8Array {
  const bytes = decodedSecret(secret);
  if (bytes.length > 0) return bytes;
  throw new TypeError(`Cannot sign with a secret: expected "${SECRET_PREFIX}" followed by base64`);
}

/** The bytes of a secret; none where it has another form, which may be a secret all the same and is not shown. */
function decodedSecret(secret: string): Uint8Array {
  const encoded = BASE64_SECRET.exec(secret)?.[1];
  if (encoded === undefined) return new Uint8Array();
  try {
    // Node 20 lacks `Uint8Array.fromBase64`.
    return Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
