import { bearerTokenOf, isSameToken } from "./bearer_token.ts";
import type { Call } from "./router.ts";

/** The tokens of a service that let somebody see its debug port. */
export interface DebugTokens {
  /** Token of the debug port; without it everybody may look. */
  readonly debugToken: string | undefined;
  /** Token of the administration: it opens the debug port too. */
  readonly adminToken: string | undefined;
}

/** Who asks: nobody that may look, somebody who may, or the administration. */
export type DebugRight = "none" | "looks" | "administers";

const BEARER = /^bearer\b/i;

/**
 * A token that is neither of the two lets nobody in: who shows one wants to know that it is wrong. What a browser
 * shows to a proxy in front of us, by another scheme, is no token.
 */
export function debugRightOf({ request }: Call, { debugToken, adminToken }: DebugTokens): DebugRight {
  const isShown = BEARER.test(request.headers.get("authorization") ?? "");
  const shown = bearerTokenOf(request);
  if (shown !== undefined && adminToken !== undefined && isSameToken(shown, adminToken)) return "administers";
  if (shown !== undefined && debugToken !== undefined && isSameToken(shown, debugToken)) return "looks";
  return isShown || debugToken !== undefined ? "none" : "looks";
}
