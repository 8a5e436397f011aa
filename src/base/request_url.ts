/** Why a request is answered with 400. */
interface UrlProblem {
  readonly kind: "bad_target";
  readonly field: "host" | "path";
  readonly reason: string;
}

const PARTS = /^https?:\/\/([^/?#\\]*)([^?#]*)(?:\?[^#]*)?(#.*)?$/i;
/** A host with its port. */
export const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._~!$&'()*+,;=%-]+)(?::\d*)?$/;
/** Targets that parsing does not change. */
const PLAIN = /^(?:\/[\w~!$&'()*+,;=:@-]*)*$/;
const BACKSLASH = /\\|%5c/i;
const DOT_SEGMENT = /^(?:\.|%2e){1,2}$/i;

/** The host and the path make no URL. */
export const BAD_TARGET: UrlProblem = {
  kind: "bad_target",
  field: "host",
  reason: "the host and the path make no URL",
};

/** A proxy in front may have allowed the path that was sent, and not the one that parsing makes of it. */
const CHANGED_PATH: UrlProblem = {
  kind: "bad_target",
  field: "path",
  reason: "the path has a dot segment, a backslash, a fragment or a character that must be percent-encoded",
};

/**
 * The URL of a request whose scheme, host and target are joined as they were sent. Refuses paths that parsing would
 * change, since routes are found by the path as it was sent.
 */
export function requestUrl(sent: string): string | UrlProblem {
  const [, host = "", path = "", fragment] = PARTS.exec(sent) ?? [];
  if (!HOST.test(host) || !URL.canParse(sent)) return BAD_TARGET;
  return fragment === undefined && (PLAIN.test(path) || isUnchanged(path, sent)) ? sent : CHANGED_PATH;
}

function isUnchanged(path: string, sent: string): boolean {
  if (BACKSLASH.test(path) || path.split("/").some((segment) => DOT_SEGMENT.test(segment))) return false;
  return path === new URL(sent).pathname;
}
