import { createHash } from "node:crypto";
import { SECRET_PREFIX } from "./signature.ts";

const TRIGGER_KEY_PREFIX = "svct_";
const EVENT_KEY_PREFIX = "svce_";

const KEY_BYTES = 32;
const LAST_CHARACTERS = 4;

/** Cryptographically random bytes. */
type RandomBytes = (length: number) => Uint8Array;

/** A new key: it is shown once, and only its hash and last characters are kept. */
interface NewKey {
  readonly key: string;
  /**
   * SHA-256 in lower-case hex. Keys are found by it: the key has too much entropy to be found from its hash, so that
   * the timing of a look-up reveals nothing.
   */
  readonly hash: string;
  readonly lastFour: string;
}

/** A key of a trigger. */
export function newTriggerKey(randomBytes: RandomBytes): NewKey {
  return newKey(TRIGGER_KEY_PREFIX, randomBytes);
}

/** A key for posting events. */
export function newEventKey(randomBytes: RandomBytes): NewKey {
  return newKey(EVENT_KEY_PREFIX, randomBytes);
}

/** A signing secret of an endpoint. */
export function newEndpointSecret(randomBytes: RandomBytes): string {
  return SECRET_PREFIX + randomBytes(KEY_BYTES).toBase64();
}

function newKey(prefix: string, randomBytes: RandomBytes): NewKey {
  const key = prefix + randomBytes(KEY_BYTES).toBase64({ alphabet: "base64url", omitPadding: true });
  const hash = createHash("sha256").update(key).digest("hex");
  return { key, hash, lastFour: key.slice(-LAST_CHARACTERS) };
}
