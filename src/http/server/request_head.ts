import type { Refusal } from "./problem.ts";

/** The largest head of a request, in bytes. */
export const MAX_HEAD_BYTES = 65_536;
const MAX_HEADERS = 100;

/** The head of a request, checked as far as its connection depends on it. */
export interface RequestHead {
  readonly method: string;
  /** Or why host and target make none that is served. */
  readonly url: string | Refusal;
  /** A header that is sent several times with one value is here once. */
  readonly headers: readonly [name: string, value: string][];
  /** Names of headers, in lower case, that were sent several times with different values. */
  readonly repeated: ReadonlySet<string>;
  /** The length in bytes, or `chunked`. */
  readonly body: number | "chunked";
  /** The client closes the connection after this request. */
  readonly isLast: boolean;
  /** A body of HTTP/1.1 may be sent in chunks. */
  readonly takesChunks: boolean;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
}

const REQUEST_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e]+) HTTP\/(\d)\.(\d)$/;
const HEADER_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([\t\x20-\x7e\x80-\xff]*)$/;
/** The same coding twice is not the same as once. */
const CODINGS = "content-encoding";
const NONE: ReadonlySet<string> = new Set();
const LENGTH = /^\d{1,15}$/;
const PARTS = /^https?:\/\/([^/?#\\]*)([^?#]*)(?:\?[^#]*)?(#.*)?$/i;
/** A host with its port. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._~!$&'()*+,;=%-]+)(?::\d*)?$/;
/** Targets that parsing does not change. */
const PLAIN = /^(?:\/[\w~!$&'()*+,;=:@-]*)*$/;
const BACKSLASH = /\\|%5c/i;
const DOT_SEGMENT = /^(?:\.|%2e){1,2}$/i;

/** The host and the path make no URL. */
const BAD_TARGET: Refusal = {
  kind: "bad_target",
  field: "host",
  reason: "the host and the path make no URL",
};

/** A proxy in front may have allowed the path that was sent, and not the one that parsing makes of it. */
const CHANGED_PATH: Refusal = {
  kind: "bad_target",
  field: "path",
  reason: "the path has a dot segment, a backslash, a fragment or a character that must be percent-encoded",
};

/**
 * Reads the head of an HTTP/1 request, decoded as Latin-1, without its final empty line. Refuses ambiguous ends of a
 * request: folded headers, bare line feeds, a length next to a transfer coding, repeated lengths.
 */
export function readRequestHead(text: string, scheme: "http" | "https"): RequestHead | Refusal {
  const lines = text.split("\r\n");
  const [, method = "", target = "", major, minor] = REQUEST_LINE.exec(lines[0] ?? "") ?? [];
  if (method === "") return malformed("the request line is not one of HTTP/1.1");
  if (major !== "1") return { kind: "unknown_version", reason: "HTTP/1.1 is spoken here" };
  if (lines.length - 1 > MAX_HEADERS) return headTooLarge(`more than ${MAX_HEADERS} headers`);
  const headers: [string, string][] = [];
  const names: string[] = [];
  let repeated = NONE;
  const known: Known = {};
  for (let index = 1; index < lines.length; index++) {
    const [, name, spaced = ""] = HEADER_LINE.exec(lines[index] ?? "") ?? [];
    if (name === undefined) return malformed("a header line is not a name, a colon and a value");
    const value = withoutBlanks(spaced);
    const lower = name.toLowerCase();
    const problem = note(lower, value, known);
    if (problem !== undefined) return malformed(problem);
    const earlier = names.indexOf(lower);
    if (earlier !== -1 && headers[earlier]?.[1] !== value) repeated = new Set([...repeated, lower]);
    else if (earlier !== -1 && lower !== CODINGS) continue;
    names.push(lower);
    headers.push([name, value]);
  }
  const isFirstVersion = minor === "0";
  if (known.host === undefined && !isFirstVersion) return malformed("the Host header is missing");
  const body = bodyOf(known, isFirstVersion);
  if (typeof body === "object") return body;
  const expectsContinue = !isFirstVersion && known.expect?.toLowerCase() === "100-continue";
  const isLast = isFirstVersion || /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i.test(known.connection ?? "");
  const url = urlOf(target, known.host ?? "localhost", scheme);
  const takesChunks = !isFirstVersion;
  return { method, url, headers, repeated, body, isLast, takesChunks, expectsContinue };
}

/** The refusal of a head that is too large. */
export function headTooLarge(reason: string): Refusal {
  return { kind: "head_too_large", reason, detail: `Cannot read the head of the request: ${reason}` };
}

/** Trims blanks without a regular expression, which would take quadratic time. */
function withoutBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9;
}

/** The headers that the connection depends on. */
interface Known {
  host?: string;
  connection?: string;
  expect?: string;
  length?: string;
  coding?: string;
}

/** Keeps a header that matters; returns a problem, if there is one. */
function note(name: string, value: string, known: Known): string | undefined {
  switch (name) {
    case "host":
      if (known.host !== undefined) return "the Host header is repeated";
      known.host = value;
      return undefined;
    case "content-length":
      if (known.length !== undefined) return "the Content-Length header is repeated";
      if (!LENGTH.test(value)) return "the Content-Length header is not a length";
      known.length = value;
      return undefined;
    case "transfer-encoding":
      if (known.coding !== undefined) return "the Transfer-Encoding header is repeated";
      known.coding = value.toLowerCase();
      return undefined;
    case "connection":
      known.connection = known.connection === undefined ? value : `${known.connection},${value}`;
      return undefined;
    case "expect":
      known.expect = value;
      return undefined;
    default:
      return undefined;
  }
}

function bodyOf({ length, coding }: Known, isFirstVersion: boolean): number | "chunked" | Refusal {
  if (coding === undefined) return Number(length ?? 0);
  if (length !== undefined) return malformed("Content-Length and Transfer-Encoding exclude each other");
  if (isFirstVersion) return malformed("HTTP/1.0 has no Transfer-Encoding");
  if (coding !== "chunked") return { kind: "not_implemented", reason: "the only transfer coding is chunked" };
  return "chunked";
}

/** An absolute target takes precedence over the Host header (RFC 9112, section 3.2.2). */
function urlOf(target: string, host: string, scheme: string): string | Refusal {
  if (!target.startsWith("/")) return requestUrl(target);
  return HOST.test(host) ? requestUrl(`${scheme}://${host}${target}`) : BAD_TARGET;
}

/**
 * The URL of a request whose scheme, host and target are joined as they were sent. Refuses paths that parsing would
 * change, since routes are found by the path as it was sent.
 */
function requestUrl(sent: string): string | Refusal {
  const [, host = "", path = "", fragment] = PARTS.exec(sent) ?? [];
  if (!HOST.test(host) || !URL.canParse(sent)) return BAD_TARGET;
  return fragment === undefined && (PLAIN.test(path) || isUnchanged(path, sent)) ? sent : CHANGED_PATH;
}

function isUnchanged(path: string, sent: string): boolean {
  if (BACKSLASH.test(path) || path.split("/").some((segment) => DOT_SEGMENT.test(segment))) return false;
  return path === new URL(sent).pathname;
}

function malformed(reason: string): Refusal {
  return { kind: "malformed", reason, detail: `Cannot read the head of the request: ${reason}` };
}
