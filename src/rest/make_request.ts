import { discardBody } from "./body.ts";
import { isBodiless } from "./method.ts";
import { networkFailure } from "./network_failure.ts";
import {
  type CheckedRequest,
  checkLength,
  isMultipart,
  requestInit,
  subjectOf,
  urlProblem,
  withEncodedForm,
} from "./request.ts";
import { RestError } from "./rest_error.ts";
import { unlessStopped } from "./stop.ts";

/**
 * A function that sends a request, such as the global `fetch`.
 *
 * @example
 * ```ts
 * import { Client, type Fetch } from "@weir/rest";
 *
 * const fetch: Fetch = () => Promise.resolve(new Response("hello"));
 * const client = new Client({ fetch });
 * ```
 */
export type Fetch = (
  input: string | URL | globalThis.Request,
  init?: RequestInit,
) => Promise<globalThis.Response>;

/**
 * A connection pool: on Deno the result of `Deno.createHttpClient`.
 *
 * @example
 * ```ts
 * import { Client, type HttpClient } from "@weir/rest";
 *
 * const httpClient: HttpClient = Deno.createHttpClient({ poolMaxIdlePerHost: 2, http2: false });
 * const client = new Client({ httpClient });
 * httpClient.close();
 * ```
 */
export interface HttpClient {
  /** Closes its connections. */
  close(): void;
}

/**
 * Options of `makeRequest`.
 *
 * @example
 * ```ts
 * import type { MakeRequestOptions } from "@weir/rest";
 * const options: MakeRequestOptions = { redirect: "manual" };
 * ```
 */
export interface MakeRequestOptions {
  /** The global `fetch` by default. */
  readonly fetch?: Fetch | undefined;
  /** For Deno, for example to trust a private CA; other platforms ignore it. */
  readonly httpClient?: HttpClient | undefined;
  /** `follow` by default, for at most 20 redirects; `manual` returns the redirect response. */
  readonly redirect?: "follow" | "manual" | undefined;
  /** Headers not to send to another origin on a redirect, in addition to credentials and cookies. */
  readonly sensitiveHeaders?: readonly string[] | undefined;
  /** Aborts the request, with code `aborted`. */
  readonly signal?: AbortSignal | undefined;
}

const MAX_REDIRECTS = 20;
const SENSITIVE = ["authorization", "cookie", "proxy-authorization"];
/** Headers that describe a body. */
const BODY_HEADERS = [
  "content-encoding",
  "content-language",
  "content-length",
  "content-location",
  "content-type",
];
const REDIRECTS = [301, 302, 303, 307, 308];

/**
 * Sends a web `Request` and resolves when the response headers arrive. The request body is read into memory, because
 * a redirect may require it again.
 *
 * @throws {RestError} `network` or `aborted`; `invalid_header` for a `Content-Length` that is not that of the body, and
 * `invalid_body` for a body that was already read.
 *
 * @example
 * ```ts
 * import { buildRequestObject, buildResponse, Get, makeRequest } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, () => new Response("hello"));
 * const baseURL = `http://localhost:${server.addr.port}/`;
 * const response = await buildResponse(await makeRequest(buildRequestObject({ method: Get, baseURL })));
 * assertEquals(response.body, "hello");
 * ```
 */
export async function makeRequest(
  webRequest: globalThis.Request,
  options: MakeRequestOptions = {},
): Promise<globalThis.Response> {
  const { method, url } = webRequest;
  const signal = options.signal === undefined
    ? webRequest.signal
    : AbortSignal.any([options.signal, webRequest.signal]);
  const redirect = options.redirect ?? (webRequest.redirect === "manual" ? "manual" : "follow");
  try {
    const checked = await checkedOf(webRequest);
    checkLength(checked);
    return await sendChecked(checked, { ...options, redirect, signal });
  } catch (error) {
    if (!signal.aborted || error instanceof RestError) throw error;
    throw new RestError("aborted", "the request was aborted", { method, url }, { cause: error });
  }
}

/** A web request in a form that can be sent again. */
export async function checkedOf(webRequest: globalThis.Request): Promise<CheckedRequest> {
  const { method, url, headers } = webRequest;
  const checked = { method, url, headers: Object.fromEntries(headers) };
  if (webRequest.bodyUsed) throw new RestError("invalid_body", "the body was already read", { method, url });
  return webRequest.body === null
    ? checked
    : { ...checked, body: new Uint8Array(await webRequest.arrayBuffer()) };
}

/** Sends a request and follows redirects; throws the reason of the signal when it aborts. */
export async function sendChecked(
  checked: CheckedRequest,
  options: MakeRequestOptions,
): Promise<globalThis.Response> {
  const { fetch = globalThis.fetch, signal, sensitiveHeaders = [] } = options;
  const redirect = redirectMode(checked, options);
  // Saves a promise without a form.
  let current = isMultipart(checked.body) ? await withEncodedForm(checked) : checked;
  for (let redirects = 0;; redirects++) {
    const init = sendInit(current, redirect, options);
    let response: globalThis.Response;
    if (signal?.aborted === true) throw signal.reason;
    try {
      // Saves a promise without a signal.
      response = signal === undefined
        ? await fetch(current.url, init)
        : await unlessStopped(fetch(current.url, init), signal, discardBody);
    } catch (cause) {
      throw failureOf(cause, checked, signal);
    }
    if (redirect === "follow" || options.redirect === "manual") return response;
    if (response.type === "opaqueredirect") {
      throw new RestError("network", OPAQUE, subjectOf(checked), { kind: "redirect" });
    }
    const location = REDIRECTS.includes(response.status) ? response.headers.get("location") : null;
    if (location === null) return response;
    discardBody(response);
    if (redirects === MAX_REDIRECTS) throw unfollowed(checked, `more than ${MAX_REDIRECTS} redirects`);
    const target = { status: response.status, location: textOfHeader(location) };
    current = redirected(current, target, sensitiveHeaders);
  }
}

/** A header value, whose bytes platforms read as Latin-1: some servers send UTF-8. */
function textOfHeader(value: string): string {
  // deno-lint-ignore no-control-regex
  if (!/[\x80-\xff]/.test(value) || /[^\x00-\xff]/.test(value)) return value;
  const bytes = Uint8Array.from(value, (character) => character.charCodeAt(0));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return value;
  }
}

/** Browsers hide redirects from scripts and remove credentials themselves; elsewhere they are followed here. */
function redirectMode(checked: CheckedRequest, options: MakeRequestOptions): "follow" | "manual" {
  if (RETURNS_REDIRECTS || options.redirect === "manual" || options.fetch !== undefined) return "manual";
  return carries(checked, options.sensitiveHeaders ?? []) ? "manual" : "follow";
}

function sendInit(
  checked: CheckedRequest,
  redirect: "follow" | "manual",
  { signal, httpClient }: MakeRequestOptions,
): RequestInit {
  const init: RequestInit & { client?: HttpClient } = requestInit(checked);
  init.redirect = redirect;
  if (signal !== undefined) init.signal = signal;
  if (httpClient !== undefined) init.client = httpClient;
  return init;
}

function failureOf(cause: unknown, checked: CheckedRequest, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true) return signal.reason;
  if (cause instanceof RestError) return cause;
  const { kind, state } = networkFailure(cause);
  return new RestError("network", state, subjectOf(checked), { cause, kind });
}

/** `fetch` returns redirects; browsers do not. */
const RETURNS_REDIRECTS = "Deno" in globalThis || "process" in globalThis || "Bun" in globalThis;
const OPAQUE = "cannot follow a redirect in a browser without exposing sensitive headers";

/** The request after a redirect. */
function redirected(
  from: CheckedRequest,
  { status, location }: { readonly status: number; readonly location: string },
  sensitiveHeaders: readonly string[],
): CheckedRequest {
  const problem = urlProblem(location, from.url);
  if (problem !== undefined) throw unfollowed(from, problem);
  const url = new URL(location, from.url);
  const isCrossOrigin = url.origin !== new URL(from.url).origin;
  const kept = isCrossOrigin
    ? withoutHeaders(from.headers, [...SENSITIVE, ...sensitiveHeaders])
    : from.headers;
  const { body, ...rest } = from;
  const isGet = status === 303 ? !isBodiless(from.method) : status <= 302 && from.method === "POST";
  if (isGet) {
    return { ...rest, method: "GET", url: url.href, headers: withoutHeaders(kept, BODY_HEADERS) };
  }
  if (body instanceof ReadableStream) {
    throw unfollowed(from, "a streamed body cannot be sent again");
  }
  return { ...rest, url: url.href, headers: kept, ...(body === undefined ? {} : { body }) };
}

function unfollowed(from: CheckedRequest, reason: string): RestError {
  const state = `cannot follow the redirect: ${reason}`;
  return new RestError("network", state, subjectOf(from), { kind: "redirect" });
}

function carries({ headers }: CheckedRequest, names: readonly string[]): boolean {
  return Object.keys(withoutHeaders(headers, names)).length < Object.keys(headers).length;
}

function withoutHeaders(
  headers: CheckedRequest["headers"],
  names: readonly string[],
): CheckedRequest["headers"] {
  const removed = new Set(names.map((name) => name.toLowerCase()));
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !removed.has(name.toLowerCase())));
}
