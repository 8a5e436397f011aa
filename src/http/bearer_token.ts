import { Buffer } from "node:buffer";
import { createHash, timingSafeEqual } from "node:crypto";
import type { Refusal } from "./problem.ts";
import type { Call, CallHandler } from "./router.ts";

const SCHEME = /^bearer\b/i;
// Repeated headers are joined by a comma and a space, and so are refused.
const CREDENTIALS = /^bearer +(\S+)$/i;

/** The bearer token of a request. */
export function bearerTokenOf({ headers }: Pick<Request, "headers">): string | undefined {
  return CREDENTIALS.exec(headers.get("authorization") ?? "")?.[1];
}

/** Whether two tokens are equal; compares digests, so that the time tells nothing about them. */
export function isSameToken(shown: string, expected: string): boolean {
  return timingSafeEqual(digest(shown), digest(expected));
}

/** SHA-256 of a token, in lower-case hex. */
export function tokenHash(token: string): string {
  return digest(token).toString("hex");
}

/** Wraps handlers so that requests without the token get 401. */
export function bearerGuard(token: string): (handle: CallHandler) => CallHandler {
  return (handle) => (call) => {
    const shown = bearerTokenOf(call.request);
    const isAllowed = shown !== undefined && isSameToken(shown, token);
    return isAllowed ? handle(call) : call.refuse(unauthorizedRefusal(call));
  };
}

/** The refusal of a request with a wrong token or none. */
export function unauthorizedRefusal({ request }: Pick<Call, "request">): Refusal {
  const isShown = bearerTokenOf(request) !== undefined;
  const reason = isShown ? "the bearer token is wrong" : "a bearer token is required";
  return { kind: "unauthorized", reason, headers: { "www-authenticate": "Bearer" } };
}

/** The tokens that open the debug port; without `debugToken` it is open to all. */
export interface DebugTokens {
  readonly debugToken: string | undefined;
  /** Opens the debug port too. */
  readonly adminToken: string | undefined;
}

/** What a caller of the debug port may do. */
export type DebugRight = "none" | "read" | "administer";

/**
 * A wrong bearer token has no right, even on an open port: its owner should know that it is wrong. Credentials of
 * another scheme, such as those for a proxy, are ignored.
 */
export function debugRightOf({ request }: Call, { debugToken, adminToken }: DebugTokens): DebugRight {
  const hasBearer = SCHEME.test(request.headers.get("authorization") ?? "");
  const shown = bearerTokenOf(request);
  if (shown !== undefined && adminToken !== undefined && isSameToken(shown, adminToken)) return "administer";
  if (shown !== undefined && debugToken !== undefined && isSameToken(shown, debugToken)) return "read";
  return hasBearer || debugToken !== undefined ? "none" : "read";
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
