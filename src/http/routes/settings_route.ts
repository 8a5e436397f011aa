import { debugRightOf, type DebugTokens, unauthorizedRefusal } from "./bearer_token.ts";
import type { DebugRoute } from "./debug.ts";

/** Options of `settingsRoute`. */
interface SettingsRouteOptions extends DebugTokens {
  /** The shown settings; no secrets. */
  readonly settings: readonly object[];
}

/**
 * `GET /settings` of the debug port. Checks the token itself: that of the port and those of administrators open it.
 */
export function settingsRoute(options: SettingsRouteOptions): DebugRoute {
  return {
    path: "/settings",
    methods: ["GET", "HEAD"],
    help: "every setting with its value, unless it is secret, and where the value came from",
    open: true,
    handle: (call) => {
      if (debugRightOf(call, options) === "none") return call.refuse(unauthorizedRefusal(call));
      const body = JSON.stringify({ settings: options.settings }, undefined, 2);
      return new Response(`${body}\n`, { headers: { "content-type": "application/json" } });
    },
  };
}
