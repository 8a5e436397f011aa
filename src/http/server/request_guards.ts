import type { Refusal } from "./problem.ts";
import type { CallHandler } from "./router.ts";

const CROSS_SITE: Refusal = {
  kind: "cross_site",
  reason: "pages of other sites are not served",
  detail: "Cannot answer a page of another site: only the pages of this service are served",
};
/** Longest name that is shown. */
const MAX_HOST_LENGTH = 100;

/**
 * Wraps handlers so that pages of other sites get 403; with `links`, a link on such a page may be followed. Such a page
 * cannot read the response, but could make its visitor's browser ask for what costs much. Requests without the
 * `Sec-Fetch` headers of browsers pass.
 */
export function ownSiteGuard({ links }: { readonly links: boolean }): (handle: CallHandler) => CallHandler {
  return (handle) => (call) => {
    const isAllowed = !isCrossSite(call.request) || (links && isLink(call.request));
    return isAllowed ? handle(call) : call.refuse(CROSS_SITE);
  };
}

/**
 * Wraps handlers so that requests to a host that is not allowed get 403: a page whose own name resolves to this address
 * (DNS rebinding) is of the same site to a browser. Loopback names and IP addresses are always allowed, since no such
 * page can have them.
 */
export function hostGuard(allowed: readonly string[]): (handle: CallHandler) => CallHandler {
  const names = new Set(allowed.map(normalName));
  return (handle) => (call) => {
    const name = normalName(call.url.hostname);
    return isLoopbackOrAddress(name) || names.has(name) ? handle(call) : call.refuse(unknownHost(name));
  };
}

function unknownHost(name: string): Refusal {
  return {
    kind: "unknown_host",
    field: "host",
    reason: "the host is not one of DEBUG_ALLOWED_HOSTS",
    detail:
      `Cannot serve the host "${name.slice(0, MAX_HOST_LENGTH)}": it is not one of DEBUG_ALLOWED_HOSTS; ` +
      "add it there, or use the IP address",
  };
}

/** Another port of the same host is the same site to a browser, but not to us. */
function isCrossSite({ headers }: Request): boolean {
  const site = headers.get("sec-fetch-site");
  return site !== null && site !== "same-origin" && site !== "none";
}

/** A link that fills a window, not a frame. */
function isLink({ headers }: Request): boolean {
  return headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-dest") === "document";
}

function isLoopbackOrAddress(name: string): boolean {
  // In a URL that was parsed these two forms are addresses, and only they.
  const isAddress = name.startsWith("[") || /^[\d.]+$/.test(name);
  return name === "localhost" || name.endsWith(".localhost") || isAddress;
}

function normalName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}
