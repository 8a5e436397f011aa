import type { Buffer } from "node:buffer";
import { createHash, timingSafeEqual } from "node:crypto";

/** SHA-256 of a token: digests have one length, so that comparing them tells nothing about the tokens. */
export function tokenDigest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** SHA-256 of a token, in lower-case hex. */
export function tokenHash(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** True for equal tokens; compares digests, so that the time tells nothing about them. */
export function isSameToken(shown: string, expected: string): boolean {
  return timingSafeEqual(tokenDigest(shown), tokenDigest(expected));
}
