import type { Request } from "./http_message.ts";
import { KnownTexts } from "./known_texts.ts";
import { isBodiless, isToken, methodProblem, sentMethod } from "./method.ts";
import { addQueryParameters } from "./query_parameters.ts";
import { RestError, type RestErrorCode } from "./rest_error.ts";
import { quoted } from "./shown_text.ts";

/** A request that was checked, in the form that `fetch` takes. */
export interface CheckedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Absent when empty. */
  readonly body?: Uint8Array | string | ReadableStream<Uint8Array>;
  /** What it was made of, for errors; absent when it was a web request. */
  readonly request?: Request;
}

/**
 * The web `Request` that a request stands for: `fetch` can send it.
 *
 * @throws {RestError} `invalid_method`, `invalid_url`, `invalid_header` or `invalid_body`.
 *
 * @example
 * ```ts
 * import { buildRequestObject, Put } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const request = buildRequestObject({ method: Put, baseURL: "https://api.example.com/items/1", body: "{}" });
 * assertEquals(request.method, "PUT");
 * assertEquals(request.headers.get("content-type"), "application/json");
 * assertEquals(await request.text(), "{}");
 * ```
 */
export function buildRequestObject(request: Request): globalThis.Request {
  return webRequestOf(checkRequest(request));
}

/** The web request of one that was checked. */
export function webRequestOf(checked: CheckedRequest): globalThis.Request {
  return new globalThis.Request(checked.url, requestInit(checked));
}

/** What `fetch` is told of a request beside its URL. */
export function requestInit({ method, headers, body }: CheckedRequest): RequestInit & { duplex?: "half" } {
  if (body === undefined) return { method, headers };
  if (body instanceof ReadableStream) return { method, headers, body, duplex: "half" };
  return { method, headers, body: body as BodyInit };
}

/** Checks what the caller gave and completes it; throws a `RestError` that says what cannot be sent. */
export function checkRequest(request: Request): CheckedRequest {
  const { method, baseURL, headers = NONE, queryParams = NONE, body } = request;
  const refuse = (code: RestErrorCode, state: string): never => {
    throw new RestError(code, state, { method: String(method), url: String(baseURL), request });
  };
  const badMethod = methodProblem(method);
  if (badMethod !== undefined) refuse("invalid_method", badMethod);
  const badUrl = urlProblem(baseURL);
  if (badUrl !== undefined) refuse("invalid_url", badUrl);
  let hasType = false;
  for (const name of Object.keys(headers)) {
    const problem = headerProblem(name, headers[name]);
    if (problem !== undefined) refuse("invalid_header", problem);
    hasType ||= name.length === CONTENT_TYPE.length && name.toLowerCase() === CONTENT_TYPE;
  }
  const sent = sentMethod(method);
  const url = queryParams === NONE ? baseURL : addQueryParameters(baseURL, queryParams);
  if (isEmpty(body)) return { method: sent, url, headers, request };
  if (isBodiless(sent)) refuse("invalid_body", `a ${sent} request has no body`);
  const typed = hasType ? headers : { ...headers, [CONTENT_TYPE]: "application/json" };
  return { method: sent, url, headers: typed, body, request };
}

const CONTENT_TYPE = "content-type";
const NONE: Readonly<Record<string, string>> = {};

function isEmpty(body: Request["body"]): body is undefined | "" {
  return body === undefined || body === null || body === "" ||
    (body instanceof Uint8Array && body.byteLength === 0);
}

/** What most URLs are: HTTP, with nobody's name in front of the host. */
const PLAIN_URL = /^https?:\/\/[^/?#\\@]+(?:[/?#]|$)/i;
const PLAIN_URLS = new KnownTexts((text) => PLAIN_URL.test(text) && URL.canParse(text));

function urlProblem(text: string): string | undefined {
  if (PLAIN_URLS.has(text)) return undefined;
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return `the URL does not parse; one such as "https://host/path" would be right`;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return "the URL is neither http nor https";
  }
  if (url.username !== "" || url.password !== "") {
    return "the URL holds a user name or a password; an Authorization header would be right";
  }
  return undefined;
}

/** All but the tab; no platform sends them. */
// deno-lint-ignore no-control-regex
const CONTROLS = /[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]/;
/** What every platform sends. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;
const NAMES = new KnownTexts(isToken);

function headerProblem(name: string, value: unknown): string | undefined {
  // What follows the token may be a value that got into the name.
  if (!NAMES.has(name)) {
    return `the header name that begins with ${quoted(tokenAtStart(name))} is not a token`;
  }
  if (typeof value !== "string") return `the value of header ${quoted(name)} is not a text`;
  if (SENDABLE.test(value)) return undefined;
  if (/[\r\n\0]/.test(value)) return `the value of header ${quoted(name)} holds a line break or a NUL`;
  if (CONTROLS.test(value)) return `the value of header ${quoted(name)} holds a control character`;
  return `the value of header ${
    quoted(name)
  } holds a character beyond Latin-1; an encoded value would be right`;
}

function tokenAtStart(name: string): string {
  const end = [...name].findIndex((character) => !isToken(character));
  return end === -1 ? name : name.slice(0, end);
}
