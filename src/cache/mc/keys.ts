import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { InvalidRequestError } from "../../ratelimit/errors.ts";

const MAX_KEY_BYTES = 250;
/** Longest prefix that leaves room for a digest and a window. */
const MAX_PREFIX_LENGTH = 150;
const SHOWN_CHARACTERS = 60;
/** Nearly every key: one byte a character, and none that would end it. */
const PLAIN_KEY = /^[\x21-\x7e]{1,250}$/;
/** The start of the window at the end of a key. */
const WINDOW = /_\d{1,20}$/;

/**
 * The key under which a counter is stored: the key itself where the protocol can carry it, and otherwise the
 * prefix, a digest, and the window. Without a prefix such a key is refused with an `InvalidRequestError`.
 */
export function storedMcKey(key: string, digestPrefix: string | undefined): string {
  const problem = PLAIN_KEY.test(key) ? undefined : problemOf(key);
  if (problem === undefined) return key;
  if (digestPrefix === undefined) {
    const shown = key.length > SHOWN_CHARACTERS ? `${key.slice(0, SHOWN_CHARACTERS)}…` : key;
    const message = `Cannot use ${JSON.stringify(shown)} as key of a counter: ${problem}`;
    throw new InvalidRequestError(message, { backend: "mc" });
  }
  const isReadable = digestPrefix.length <= MAX_PREFIX_LENGTH && PLAIN_KEY.test(digestPrefix);
  // Without `_`, so that it differs from the key of every rule.
  const digest = createHash("sha256").update(key).digest("hex");
  return `${isReadable ? digestPrefix : ""}sha256_${digest}${WINDOW.exec(key)?.[0] ?? ""}`;
}

/** The bytes of a key, one character each: what is written by `write(text, "latin1")`. */
export function mcKeyBytes(key: string): string {
  return PLAIN_KEY.test(key) ? key : Buffer.from(key, "utf8").toString("latin1");
}

function problemOf(key: string): string | undefined {
  const bytes = Buffer.from(key, "utf8");
  if (bytes.length === 0) return "a memcached-style cache takes no empty key";
  if (bytes.length > MAX_KEY_BYTES) {
    return `it has ${bytes.length} bytes, and a memcached-style cache takes ${MAX_KEY_BYTES}`;
  }
  const isIllegal = bytes.some((byte) => byte <= 0x20 || byte === 0x7f);
  return isIllegal ? "a memcached-style cache takes no space and no control character" : undefined;
}
