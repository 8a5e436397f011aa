import { createHash } from "node:crypto";
import { SECRET_PREFIX } from "./signature.ts";

/** How the key of a trigger begins. */
export const TRIGGER_KEY_PREFIX = "svct_";
/** How the key of someone who posts events begins. */
export const EVENT_KEY_PREFIX = "svce_";

const KEY_BYTES = 32;
const LAST_CHARACTERS = 4;

/** Bytes that nobody can guess, such as those of `randomBytes` of `node:crypto`. */
export type RandomBytes = (length: number) => Uint8Array;

/** A key that was just made: what is shown once, and what is kept of it. */
export interface NewKey {
  readonly key: string;
  /** SHA-256 of the key, in lower-case hex. */
  readonly hash: string;
  readonly lastFour: string;
}

/** A key that starts the workflow of one trigger. */
export function newTriggerKey(randomBytes: RandomBytes): NewKey {
  return newKey(TRIGGER_KEY_PREFIX, randomBytes);
}

/** A key with which events are posted. */
export function newEventKey(randomBytes: RandomBytes): NewKey {
  return newKey(EVENT_KEY_PREFIX, randomBytes);
}

/** A signing secret of an endpoint. */
export function newEndpointSecret(randomBytes: RandomBytes): string {
  return SECRET_PREFIX + randomBytes(KEY_BYTES).toBase64();
}

/**
 * SHA-256 of a key, in lower-case hex. Keys are found by it: what a look-up's time tells about a hash tells nothing
 * about the key, which holds too much chance to be found from its hash.
 */
export function keyHash(key: string): Promise<string> {
  return Promise.resolve(sha256(key));
}

function newKey(prefix: string, randomBytes: RandomBytes): NewKey {
  const key = prefix + randomBytes(KEY_BYTES).toBase64({ alphabet: "base64url", omitPadding: true });
  return { key, hash: sha256(key), lastFour: key.slice(-LAST_CHARACTERS) };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
