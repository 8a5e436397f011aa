import type { Request } from "./http_message.ts";
import { isBodiless, isToken, methodProblem, sentMethod } from "./method.ts";
import { RestError, type RestErrorCode } from "./rest_error.ts";
import { quoted } from "./shown_text.ts";

/** A valid request, in the form that `fetch` takes. */
export interface CheckedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined when empty. */
  readonly body?: Uint8Array | string | ReadableStream<Uint8Array>;
  /** The request of the caller, for errors; undefined for a web request. */
  readonly request?: Request;
}

const CONTENT_TYPE = "content-type";
const NONE: Readonly<Record<string, string>> = {};
const MAX_CHECKED_TEXTS = 256;
const MAX_CHECKED_LENGTH = 256;

/**
 * Converts a request to a web `Request`.
 *
 * @throws {RestError} `invalid_method`, `invalid_url`, `invalid_header` or `invalid_body`.
 *
 * @example
 * ```ts
 * import { buildRequestObject, Put } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const request = buildRequestObject({ method: Put, baseURL: "https://api.example.com/items/1", body: "{}" });
 * assertEquals(request.headers.get("content-type"), "application/json");
 * ```
 */
export function buildRequestObject(request: Request): globalThis.Request {
  return webRequestOf(checkRequest(request));
}

/**
 * Adds parameters to the query of a URL, encoded, sorted by key and after an existing query. The rest of the URL
 * is neither changed nor checked.
 *
 * @example
 * ```ts
 * import { addQueryParameters } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const url = addQueryParameters("https://api.example.com/items?page=2#top", { sort: "name", limit: "10" });
 * assertEquals(url, "https://api.example.com/items?page=2&limit=10&sort=name#top");
 * ```
 */
export function addQueryParameters(baseURL: string, params: Readonly<Record<string, string>>): string {
  const keys = Object.keys(params).sort();
  if (keys.length === 0) return baseURL;
  const added = new URLSearchParams(keys.map((key) => [key, String(params[key])])).toString();
  const end = baseURL.indexOf("#");
  const url = end === -1 ? baseURL : baseURL.slice(0, end);
  const fragment = end === -1 ? "" : baseURL.slice(end);
  return `${url}${separatorAfter(url)}${added}${fragment}`;
}

/** Converts a checked request. */
export function webRequestOf(checked: CheckedRequest): globalThis.Request {
  return new globalThis.Request(checked.url, requestInit(checked));
}

/** The options of `fetch` for a request. */
export function requestInit({ method, headers, body }: CheckedRequest): RequestInit & { duplex?: "half" } {
  if (body === undefined) return { method, headers };
  if (body instanceof ReadableStream) return { method, headers, body, duplex: "half" };
  return { method, headers, body: body as BodyInit };
}

/** Checks a request and completes its URL and headers. Throws a `RestError`. */
export function checkRequest(request: Request): CheckedRequest {
  const { method, baseURL, headers = NONE, queryParams = NONE, body } = request;
  const fail = (code: RestErrorCode, state: string): never => {
    throw new RestError(code, state, { method: String(method), url: String(baseURL), request });
  };
  const badMethod = methodProblem(method);
  if (badMethod !== undefined) fail("invalid_method", badMethod);
  const badUrl = urlProblem(baseURL);
  if (badUrl !== undefined) fail("invalid_url", badUrl);
  let hasType = false;
  for (const name of Object.keys(headers)) {
    const problem = headerProblem(name, headers[name]);
    if (problem !== undefined) fail("invalid_header", problem);
    hasType ||= name.length === CONTENT_TYPE.length && name.toLowerCase() === CONTENT_TYPE;
  }
  const sent = sentMethod(method);
  const url = queryParams === NONE ? baseURL : addQueryParameters(baseURL, queryParams);
  if (isEmpty(body)) return { method: sent, url, headers, request };
  if (isBodiless(sent)) fail("invalid_body", `a ${sent} request has no body`);
  const typed = hasType ? headers : { ...headers, [CONTENT_TYPE]: "application/json" };
  return { method: sent, url, headers: typed, body, request };
}

function isEmpty(body: Request["body"]): body is undefined | "" {
  return body === undefined || body === null || body === "" ||
    (body instanceof Uint8Array && body.byteLength === 0);
}

/** A bounded cache of texts that passed a check: the same few URLs and names repeat, and a lookup is much faster. */
class CheckedTexts {
  readonly #isValid: (text: string) => boolean;
  readonly #known = new Set<string>();

  constructor(isValid: (text: string) => boolean) {
    this.#isValid = isValid;
  }

  has(text: string): boolean {
    if (this.#known.has(text)) return true;
    if (!this.#isValid(text)) return false;
    if (this.#known.size >= MAX_CHECKED_TEXTS) this.#known.clear();
    if (text.length <= MAX_CHECKED_LENGTH) this.#known.add(text);
    return true;
  }
}

/** Most URLs: HTTP without user info. */
const PLAIN_URL = /^https?:\/\/[^/?#\\@]+(?:[/?#]|$)/i;
const PLAIN_URLS = new CheckedTexts((text) => PLAIN_URL.test(text) && URL.canParse(text));

/** Why a URL cannot be requested; undefined if it can. */
export function urlProblem(text: string, base?: string): string | undefined {
  if (base === undefined && PLAIN_URLS.has(text)) return undefined;
  if (!URL.canParse(text, base)) return `invalid URL: expected one such as "https://host/path"`;
  const { protocol, username, password } = new URL(text, base);
  if (protocol !== "https:" && protocol !== "http:") return "invalid URL: expected http or https";
  if (username === "" && password === "") return undefined;
  return "the URL contains a user name or password: use an Authorization header";
}

/** All control characters but the tab: no platform sends them. */
// deno-lint-ignore no-control-regex
const CONTROLS = /[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]/;
/** What all platforms send. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;
const NAMES = new CheckedTexts(isToken);

function headerProblem(name: string, value: unknown): string | undefined {
  // The rest may be a value that was put into the name by mistake.
  if (!NAMES.has(name)) {
    return `the header name that begins with ${quoted(leadingToken(name))} is not a token`;
  }
  if (typeof value !== "string") return `the value of header ${quoted(name)} is not a string`;
  if (SENDABLE.test(value)) return undefined;
  if (/[\r\n\0]/.test(value)) return `the value of header ${quoted(name)} contains a line break or NUL`;
  if (CONTROLS.test(value)) return `the value of header ${quoted(name)} contains a control character`;
  return `the value of header ${quoted(name)} contains a character outside Latin-1: encode it`;
}

function leadingToken(name: string): string {
  const end = [...name].findIndex((character) => !isToken(character));
  return end === -1 ? name : name.slice(0, end);
}

function separatorAfter(url: string): string {
  if (!url.includes("?")) return "?";
  return url.endsWith("?") || url.endsWith("&") ? "" : "&";
}
