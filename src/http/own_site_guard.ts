import type { Refusal } from "./problem.ts";
import type { CallHandler } from "./router.ts";

const REFUSAL: Refusal = {
  kind: "cross_site",
  reason: "pages of other sites are not served",
  detail: "Cannot answer a page of another site: only the pages of this service are served",
};

/** What a guard lets through beside requests of our own pages. */
export interface OwnSiteOptions {
  /** Whether a link on a page of another site may be followed to here. */
  readonly links: boolean;
}

/**
 * Wraps handlers so that pages of other sites get 403. Such a page cannot read what is answered, but its visitor's
 * browser could be made to ask for what costs much. Browsers say where a request comes from to hosts that they trust,
 * which this machine is; who says nothing is no browser, or cannot be told from one.
 */
export function ownSiteGuard({ links }: OwnSiteOptions): (handle: CallHandler) => CallHandler {
  return (handle) => (call) => {
    const isAllowed = !isCrossSite(call.request) || (links && isLink(call.request));
    return isAllowed ? handle(call) : call.refuse(REFUSAL);
  };
}

/** Another port of the same host is the same site to a browser, and another one to us. */
function isCrossSite({ headers }: Request): boolean {
  const site = headers.get("sec-fetch-site");
  return site !== null && site !== "same-origin" && site !== "none";
}

/** A link that fills a window, and no frame in a page. */
function isLink({ headers }: Request): boolean {
  return headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-dest") === "document";
}
