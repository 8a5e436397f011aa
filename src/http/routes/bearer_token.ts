import type { Administrators } from "./administrators.ts";
import { singleHeader } from "../server/client_request.ts";
import type { Refusal } from "../server/problem.ts";
import type { Call, CallHandler } from "../server/router.ts";
import { isSameToken } from "./token_digest.ts";

const SCHEME = /^bearer\b/i;
const CREDENTIALS = /^bearer +(\S+)$/i;

/** The bearer token of a request; none where it shows several. */
export function bearerTokenOf(request: Request): string | undefined {
  return CREDENTIALS.exec(singleHeader(request, "authorization").value ?? "")?.[1];
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
  /** Their tokens open the debug port too. */
  readonly administrators: Administrators;
}

/** The right of a caller of the debug port: nothing, statistics, or counters as well. */
type DebugRight = "none" | "statistics" | "counters";

/**
 * A wrong bearer token has no right, even on an open port: its owner should know that it is wrong. Credentials of
 * another scheme, such as those for a proxy, are ignored.
 */
export function debugRightOf({ request }: Call, { debugToken, administrators }: DebugTokens): DebugRight {
  const hasBearer = SCHEME.test(request.headers.get("authorization") ?? "");
  const shown = bearerTokenOf(request);
  if (shown !== undefined && administrators.authenticate(shown) !== undefined) return "counters";
  if (shown !== undefined && debugToken !== undefined && isSameToken(shown, debugToken)) return "statistics";
  return hasBearer || debugToken !== undefined ? "none" : "statistics";
}
