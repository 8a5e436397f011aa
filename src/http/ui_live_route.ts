import type { DebugRoute } from "./debug.ts";
import { unauthorizedRefusal } from "./bearer_token.ts";
import { debugRightOf, type DebugTokens } from "./debug_right.ts";
import { ownSiteGuard } from "./own_site_guard.ts";
import type { Call } from "./router.ts";

/** What tells the page how the service is. */
export interface UiFeed {
  /** A stream of events that ends with any of the signals; none where too many listen already. */
  open(ends: { readonly signals: readonly AbortSignal[] }): ReadableStream<Uint8Array> | undefined;
}

/** What the route works with. */
export interface UiLiveRouteOptions extends DebugTokens {
  readonly feed: UiFeed;
}

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  // What is compressed or put together on the way comes late.
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
};
const RETRY_SECONDS = "10";

/** `GET /ui/live` of the debug port: how the service is, as an event at once and each second. */
export function uiLiveRoute(options: UiLiveRouteOptions): DebugRoute {
  return {
    path: "/ui/live",
    methods: ["GET", "HEAD"],
    help: "what the web page shows, as events; wants DEBUG_TOKEN, where it is set, or ADMIN_TOKEN",
    open: true,
    // There are few places, and a window that was opened here would hold one of them as well.
    handle: ownSiteGuard({ links: false })((call) => answer(call, options)),
  };
}

function answer(call: Call, options: UiLiveRouteOptions): Response {
  if (debugRightOf(call, options) === "none") return call.refuse(unauthorizedRefusal(call));
  const { request, closing } = call;
  // The body of a stream has no end that an answer to HEAD could wait for.
  if (request.method === "HEAD") return new Response(null, { headers: HEADERS });
  const stream = options.feed.open({ signals: [request.signal, closing] });
  if (stream !== undefined) return new Response(stream, { headers: HEADERS });
  return call.refuse({
    kind: "busy",
    reason: "too many streams are open",
    detail: "Cannot open another stream: too many are open; close a page that shows this service",
    headers: { "retry-after": RETRY_SECONDS },
  });
}
