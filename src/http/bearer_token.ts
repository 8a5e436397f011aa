import { Buffer } from "node:buffer";
import { createHash, timingSafeEqual } from "node:crypto";
import type { Refusal } from "./problem.ts";
import type { Call, CallHandler } from "./router.ts";

// The name of the scheme has no letter case. Headers that come twice are joined by a comma and a space, and
// so are refused.
const CREDENTIALS = /^bearer +(\S+)$/i;

/** The token that a request shows; nothing where it shows none. */
export function bearerTokenOf({ headers }: Pick<Request, "headers">): string | undefined {
  return CREDENTIALS.exec(headers.get("authorization") ?? "")?.[1];
}

/** Whether a token is the one that is wanted; the time of the comparison tells nothing about it. */
export function isSameToken(shown: string, wanted: string): boolean {
  return timingSafeEqual(digest(shown), digest(wanted));
}

/** SHA-256 of a token, in lower-case hex. */
export function tokenHash(token: string): string {
  return digest(token).toString("hex");
}

/** Wraps handlers so that they answer only who shows the token; everybody else gets 401. */
export function bearerGuard(token: string): (handle: CallHandler) => CallHandler {
  const wanted = digest(token);
  return (handle) => (call) => {
    const shown = bearerTokenOf(call.request);
    // Digests are of one length: the time of the comparison tells nothing about the token.
    if (shown !== undefined && timingSafeEqual(digest(shown), wanted)) return handle(call);
    return call.refuse(unauthorizedRefusal(call));
  };
}

/** The answer for who shows no token, or not the right one. */
export function unauthorizedRefusal({ request }: Pick<Call, "request">): Refusal {
  const isShown = bearerTokenOf(request) !== undefined;
  const reason = isShown ? "the bearer token is not the right one" : "a bearer token is wanted";
  return { kind: "unauthorized", reason, headers: { "www-authenticate": "Bearer" } };
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
