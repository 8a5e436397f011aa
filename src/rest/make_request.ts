import { discardBody } from "./body.ts";
import { isBodiless } from "./method.ts";
import { networkFailure } from "./network_failure.ts";
import { type CheckedRequest, requestInit } from "./request.ts";
import { RestError, type RestErrorSubject } from "./rest_error.ts";
import { unlessStopped } from "./stop.ts";

/**
 * What sends a request; the platform's own `fetch` is one.
 *
 * @example
 * ```ts
 * import { Client, type Fetch, Get } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const fetch: Fetch = (input) => Promise.resolve(new Response(`asked for ${input}`));
 * const response = await new Client({ fetch }).send({ method: Get, baseURL: "https://api.example.com/items" });
 * assertEquals(response.body, "asked for https://api.example.com/items");
 * ```
 */
export type Fetch = (
  input: string | URL | globalThis.Request,
  init?: RequestInit,
) => Promise<globalThis.Response>;

/**
 * A pool of connections with settings of its own: on Deno what `Deno.createHttpClient` gives.
 *
 * @example
 * ```ts
 * import { Client, Get, type HttpClient } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, () => new Response("hello"));
 * const httpClient: HttpClient = Deno.createHttpClient({ poolMaxIdlePerHost: 2, http2: false });
 * try {
 *   const client = new Client({ httpClient });
 *   const response = await client.send({ method: Get, baseURL: `http://localhost:${server.addr.port}/` });
 *   assertEquals(response.body, "hello");
 * } finally {
 *   httpClient.close();
 * }
 * ```
 */
export interface HttpClient {
  /** Ends its connections. */
  close(): void;
}

/**
 * How a request is sent.
 *
 * @example
 * ```ts
 * import { makeRequest, type MakeRequestOptions } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const seen: (string | null)[] = [];
 * const options: MakeRequestOptions = {
 *   sensitiveHeaders: ["x-api-key"],
 *   fetch(input, init) {
 *     const request = new Request(input, init);
 *     seen.push(request.headers.get("x-api-key"));
 *     const headers = { location: "https://elsewhere.example/" };
 *     return Promise.resolve(new Response(null, seen.length === 1 ? { status: 302, headers } : {}));
 *   },
 * };
 * await makeRequest(new Request("https://api.example.com/", { headers: { "x-api-key": "KEY" } }), options);
 * assertEquals(seen, ["KEY", null]);
 * ```
 */
export interface MakeRequestOptions {
  /** The platform's own when absent. */
  readonly fetch?: Fetch | undefined;
  /** On Deno: for example one that trusts a private CA. Platforms without such clients ignore it. */
  readonly httpClient?: HttpClient | undefined;
  /** Whether redirects are followed, at most 20 of them; they are when absent. */
  readonly redirect?: "follow" | "manual" | undefined;
  /**
   * Names of further headers that are not sent on to another origin by a redirect; `authorization`, `cookie`
   * and `proxy-authorization` never are.
   */
  readonly sensitiveHeaders?: readonly string[] | undefined;
  /** Ends it at once. */
  readonly signal?: AbortSignal | undefined;
}

const MAX_REDIRECTS = 20;
const SENSITIVE = ["authorization", "cookie", "proxy-authorization"];
/** Headers that tell of a body, and mean nothing without it. */
const OF_BODY = [
  "content-encoding",
  "content-language",
  "content-length",
  "content-location",
  "content-type",
];
const REDIRECTS = [301, 302, 303, 307, 308];

/**
 * Sends a web `Request` and answers when the headers of the response are there. The body of the request is
 * read into memory, because a redirect may ask for it again.
 *
 * @throws {RestError} `network`, or `aborted` when one of the signals is aborted.
 *
 * @example
 * ```ts
 * import { buildRequestObject, buildResponse, Get, makeRequest } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, () => new Response("hello"));
 * const baseURL = `http://localhost:${server.addr.port}/`;
 * const webResponse = await makeRequest(buildRequestObject({ method: Get, baseURL }));
 * assertEquals((await buildResponse(webResponse)).body, "hello");
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
    return await sendChecked(await checkedOf(webRequest), { ...options, redirect, signal });
  } catch (error) {
    if (!signal.aborted || error instanceof RestError) throw error;
    throw new RestError("aborted", "it was cancelled", { method, url }, { cause: error });
  }
}

/** A web request in the form that can be sent again. */
export async function checkedOf(webRequest: globalThis.Request): Promise<CheckedRequest> {
  const { method, url, headers } = webRequest;
  const checked = { method, url, headers: Object.fromEntries(headers) };
  return webRequest.body === null
    ? checked
    : { ...checked, body: new Uint8Array(await webRequest.arrayBuffer()) };
}

/** Sends a request and follows where it is redirected; throws the reason of the signal when it is aborted. */
export async function sendChecked(
  checked: CheckedRequest,
  options: MakeRequestOptions,
): Promise<globalThis.Response> {
  const { fetch = globalThis.fetch, signal, sensitiveHeaders = [] } = options;
  const redirect = redirectMode(checked, options);
  let current = checked;
  for (let redirects = 0;; redirects++) {
    const init = sendInit(current, redirect, options);
    let response: globalThis.Response;
    if (signal?.aborted === true) throw signal.reason;
    try {
      // One promise less where nothing can end it.
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
    current = redirected(current, { status: response.status, location }, sensitiveHeaders);
  }
}

/** Redirects are followed here, but in a browser, which shows none to a script and knows what not to send on. */
function redirectMode(checked: CheckedRequest, options: MakeRequestOptions): "follow" | "manual" {
  if (SHOWS_REDIRECTS || options.redirect === "manual" || options.fetch !== undefined) return "manual";
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

/** Whether the platform's `fetch` hands redirects over; browsers do not. */
const SHOWS_REDIRECTS = "Deno" in globalThis || "process" in globalThis || "Bun" in globalThis;
const OPAQUE = "the server redirects, and a browser cannot keep sensitive headers from another origin then";

/** What errors say of a request. */
export function subjectOf({ method, url, request }: CheckedRequest): RestErrorSubject {
  return request === undefined ? { method, url } : { method: request.method, url: request.baseURL, request };
}

/** The request that a redirect asks for. */
function redirected(
  from: CheckedRequest,
  { status, location }: { readonly status: number; readonly location: string },
  sensitiveHeaders: readonly string[],
): CheckedRequest {
  const url = redirectUrl(from, location);
  const isElsewhere = url.origin !== new URL(from.url).origin;
  const kept = isElsewhere ? withoutHeaders(from.headers, [...SENSITIVE, ...sensitiveHeaders]) : from.headers;
  const { body, ...rest } = from;
  const isGet = status === 303 ? !isBodiless(from.method) : status <= 302 && from.method === "POST";
  if (isGet) {
    return { ...rest, method: "GET", url: url.href, headers: withoutHeaders(kept, OF_BODY) };
  }
  if (body instanceof ReadableStream) {
    throw unfollowed(from, "a streamed body cannot be sent again");
  }
  return { ...rest, url: url.href, headers: kept, ...(body === undefined ? {} : { body }) };
}

function redirectUrl(from: CheckedRequest, location: string): URL {
  let url: URL;
  try {
    url = new URL(location, from.url);
  } catch {
    throw unfollowed(from, "its location does not parse");
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw unfollowed(from, "its location is neither http nor https");
  }
  if (url.username !== "" || url.password !== "") {
    throw unfollowed(from, "its location holds a user name or a password");
  }
  return url;
}

function unfollowed(from: CheckedRequest, why: string): RestError {
  const state = `the redirect cannot be followed: ${why}`;
  return new RestError("network", state, subjectOf(from), { kind: "redirect" });
}

function carries({ headers }: CheckedRequest, names: readonly string[]): boolean {
  return Object.keys(withoutHeaders(headers, names)).length < Object.keys(headers).length;
}

function withoutHeaders(
  headers: CheckedRequest["headers"],
  names: readonly string[],
): CheckedRequest["headers"] {
  const left = new Set(names.map((name) => name.toLowerCase()));
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !left.has(name.toLowerCase())));
}
