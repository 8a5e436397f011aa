import type { QueryParams, Request } from "./http_message.ts";
import { isBodiless, isToken, methodProblem, sentMethod } from "./method.ts";
import { RestError, type RestErrorCode, type RestErrorSubject } from "./rest_error.ts";
import { quoted } from "./shown_text.ts";

/** A valid request, in the form that `fetch` takes. */
export interface CheckedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined when empty. */
  readonly body?: SentBody;
  /** The request of the caller, for errors; undefined for a web request. */
  readonly request?: Request;
}

/** A body as `fetch` takes it. */
type SentBody = Uint8Array<ArrayBuffer> | string | FormData | ReadableStream<Uint8Array>;

const CONTENT_TYPE = "content-type";
const CONTENT_LENGTH = "content-length";
const JSON_TYPE = "application/json";
const FORM_TYPE = "application/x-www-form-urlencoded;charset=UTF-8";
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
 * import { assertEquals } from "#assert";
 *
 * const request = buildRequestObject({ method: Put, baseURL: "https://api.example.com/items/1", body: "{}" });
 * assertEquals(request.headers.get("content-type"), "application/json");
 * ```
 */
export function buildRequestObject(request: Request): globalThis.Request {
  return webRequestOf(checkRequest(request));
}

/**
 * Adds parameters to the query of a URL, encoded, sorted by key and after an existing query. A list repeats its key,
 * in its order, and `undefined` leaves it out. The rest of the URL is neither changed nor checked.
 *
 * @example
 * ```ts
 * import { addQueryParameters } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * const url = addQueryParameters("https://api.example.com/items?page=2#top", { sort: "name", limit: "10" });
 * assertEquals(url, "https://api.example.com/items?page=2&limit=10&sort=name#top");
 * ```
 */
export function addQueryParameters(baseURL: string, params: QueryParams): string {
  const pairs = Object.keys(params).sort().flatMap((key) => {
    const value: unknown = params[key];
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    return values.filter((one) => one !== undefined && one !== null).map((one) => [key, String(one)]);
  });
  if (pairs.length === 0) return baseURL;
  const added = new URLSearchParams(pairs).toString();
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
  const { method, baseURL, body } = request;
  // Callers without types may have `null`.
  const headers = request.headers ?? NONE;
  const queryParams = request.queryParams ?? NONE;
  const fail = (code: RestErrorCode, state: string): never => {
    throw new RestError(code, state, { method: String(method), url: String(baseURL), request });
  };
  const badMethod = methodProblem(method);
  if (badMethod !== undefined) fail("invalid_method", badMethod);
  const badUrl = urlProblem(baseURL);
  if (badUrl !== undefined) fail("invalid_url", badUrl);
  const badParams = paramsProblem(queryParams);
  if (badParams !== undefined) fail("invalid_url", badParams);
  if (isList(headers)) fail("invalid_header", `the headers are ${kindOf(headers)}: ${EXPECTED_RECORD}`);
  let hasType = false;
  let hasLength = false;
  for (const name of Object.keys(headers)) {
    const problem = headerProblem(name, headers[name]);
    if (problem !== undefined) fail("invalid_header", problem);
    hasType ||= name.length === CONTENT_TYPE.length && name.toLowerCase() === CONTENT_TYPE;
    hasLength ||= name.length === CONTENT_LENGTH.length && name.toLowerCase() === CONTENT_LENGTH;
  }
  const sent = sentMethod(method);
  const url = queryParams === NONE ? baseURL : addQueryParameters(baseURL, queryParams);
  const sentBody = sentBodyOf(body ?? "");
  if (sentBody === undefined) return fail("invalid_body", `the body is ${kindOf(body)}: ${EXPECTED_BODY}`);
  const isEmpty = (typeof sentBody === "string" || sentBody instanceof Uint8Array) && sentBody.length === 0;
  let checked: CheckedRequest = { method: sent, url, headers, request };
  if (!isEmpty) {
    if (isBodiless(sent)) fail("invalid_body", `a ${sent} request has no body`);
    const isForm = isMultipart(sentBody);
    if (isForm && isForeign(sentBody)) fail("invalid_body", FOREIGN_FORM);
    if (hasType && isForm) fail("invalid_header", OWN_TYPE);
    const type = typeof sentBody === "string" && typeof body !== "string" ? FORM_TYPE : JSON_TYPE;
    const typed = hasType || isForm ? headers : { ...headers, [CONTENT_TYPE]: type };
    checked = { method: sent, url, headers: typed, body: sentBody, request };
  }
  if (hasLength) checkLength(checked);
  return checked;
}

const EXPECTED_BODY =
  "expected a string, bytes, a stream, FormData or URLSearchParams; for JSON, use JSON.stringify";
const FOREIGN_FORM = "the body is a FormData of another library: use the FormData of the platform";
const EXPECTED_RECORD = "expected an object of strings; use Object.fromEntries";
const OWN_TYPE = 'the header "content-type" of a FormData body contains its boundary: remove the header';

/** Callers without types may give `Headers`, `URLSearchParams` or a `Map`, whose items are no properties. */
function isList(record: object): boolean {
  return record !== NONE && Symbol.iterator in record;
}

/** Why query parameters cannot be written as text; undefined if they can. */
function paramsProblem(params: QueryParams): string | undefined {
  if (params === NONE) return undefined;
  if (isList(params)) return `the query parameters are ${kindOf(params)}: ${EXPECTED_RECORD}`;
  for (const key of Object.keys(params)) {
    const bad = [params[key]].flat().find((one: unknown) => typeof one === "object" && one !== null);
    if (bad === undefined) continue;
    return `the query parameter ${quoted(key)} is ${kindOf(bad)}: expected a string or a list of strings`;
  }
  return undefined;
}

/** A body in a form that is sent; undefined for one that is none. */
function sentBodyOf(body: unknown): SentBody | undefined {
  if (typeof body === "string") return body;
  if (body instanceof ReadableStream) return body;
  if (ArrayBuffer.isView(body)) return bytesOf(body);
  // Unlike classes, tags are the same for all realms and platforms.
  switch (tagOf(body)) {
    case "ArrayBuffer":
      return new Uint8Array(body as ArrayBuffer);
    case "URLSearchParams":
      return String(body);
    case "FormData":
      return body as FormData;
    default:
      return undefined;
  }
}

/** The bytes of a view; those of shared memory are copied, because no platform sends them. */
function bytesOf(view: ArrayBufferView): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = view;
  if (tagOf(buffer) !== "ArrayBuffer") return new Uint8Array(new Uint8Array(buffer, byteOffset, byteLength));
  return view instanceof Uint8Array
    ? view as Uint8Array<ArrayBuffer>
    : new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
}

function tagOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

function kindOf(value: unknown): string {
  const tag = tagOf(value);
  return /^[AEIOU]/.test(tag) ? `an ${tag}` : `a ${tag}`;
}

/** Returns true for a form, which has to be encoded before it is sent. */
export function isMultipart(body: CheckedRequest["body"]): body is FormData {
  return typeof body === "object" && !(body instanceof Uint8Array) && tagOf(body) === "FormData";
}

/** The platform would send the form as the text `[object FormData]`. */
function isForeign(form: FormData): boolean {
  return new globalThis.Response(form).headers.get(CONTENT_TYPE)?.startsWith("multipart/form-data") !== true;
}

/** The request with bytes in place of `FormData`, and the boundary in its type. */
export async function withEncodedForm(checked: CheckedRequest): Promise<CheckedRequest> {
  const { body, headers } = checked;
  if (!isMultipart(body)) return checked;
  const encoded = new globalThis.Response(body);
  const type = encoded.headers.get(CONTENT_TYPE) ?? "";
  const bytes = new Uint8Array(await encoded.arrayBuffer());
  const sent = { ...checked, headers: { ...headers, [CONTENT_TYPE]: type }, body: bytes };
  checkLength(sent);
  return sent;
}

/** The request for errors. */
export function subjectOf({ method, url, request }: CheckedRequest): RestErrorSubject {
  return request === undefined ? { method, url } : { method: request.method, url: request.baseURL, request };
}

/** Throws a `RestError` for a `Content-Length` that is not that of the body: some platforms wait for the rest. */
export function checkLength(checked: CheckedRequest): void {
  const { headers, body } = checked;
  const name = Object.keys(headers).find((name) => name.toLowerCase() === CONTENT_LENGTH);
  if (name === undefined) return;
  const length = typeof body === "string" ? new TextEncoder().encode(body).length : lengthOf(body);
  const text = headers[name] ?? "";
  if (/^\d+$/.test(text) && (length === undefined || Number(text) === length)) return;
  const state = `the value of header ${quoted(name)} is not the length of the body`;
  throw new RestError("invalid_header", state, subjectOf(checked));
}

function lengthOf(body: CheckedRequest["body"]): number | undefined {
  if (body === undefined) return 0;
  return body instanceof Uint8Array ? body.byteLength : undefined;
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
/** Characters that all platforms send. */
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
