/**
 * Reads a resource.
 *
 * @example
 * ```ts
 * import { buildRequestObject, Get } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(buildRequestObject({ method: Get, baseURL: "https://api.example.com/items" }).method, "GET");
 * ```
 */
export const Get = "GET";
/**
 * Gives a resource to be worked on, often to make a new one.
 *
 * @example
 * ```ts
 * import { buildRequestObject, Post } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const request = buildRequestObject({ method: Post, baseURL: "https://api.example.com/items", body: "{}" });
 * assertEquals(await request.json(), {});
 * ```
 */
export const Post = "POST";
/**
 * Puts a resource in the place of the one that is there.
 *
 * @example
 * ```ts
 * import { Put, type Request } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const baseURL = "https://api.example.com/items/1";
 * const request: Request = { method: Put, baseURL, body: JSON.stringify({ name: "other" }) };
 * assertEquals(request.method, "PUT");
 * ```
 */
export const Put = "PUT";
/**
 * Changes a part of a resource.
 *
 * @example
 * ```ts
 * import { buildRequestObject, Patch } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const request = buildRequestObject({
 *   method: Patch,
 *   baseURL: "https://api.example.com/items/1",
 *   headers: { "content-type": "application/merge-patch+json" },
 *   body: JSON.stringify({ name: null }),
 * });
 * assertEquals(request.headers.get("content-type"), "application/merge-patch+json");
 * ```
 */
export const Patch = "PATCH";
/**
 * Removes a resource.
 *
 * @example
 * ```ts
 * import { Client, Delete } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const { fetch } = new ScriptedTransport([{ status: 204 }]);
 * const response = await new Client({ fetch }).send({
 *   method: Delete,
 *   baseURL: "https://api.example.com/items/1",
 * });
 * assertEquals([response.statusCode, response.body], [204, ""]);
 * ```
 */
export const Delete = "DELETE";
/**
 * Asks for the headers that `Get` would bring, without the body.
 *
 * @example
 * ```ts
 * import { Head, send } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, () => new Response("hello"));
 * const response = await send({ method: Head, baseURL: `http://localhost:${server.addr.port}/` });
 * assertEquals([response.headers["content-length"], response.body], [["5"], ""]);
 * ```
 */
export const Head = "HEAD";
/**
 * Asks what may be done with a resource.
 *
 * @example
 * ```ts
 * import { Client, Options } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const { fetch } = new ScriptedTransport([{ status: 204, headers: { allow: "GET, HEAD" } }]);
 * const response = await new Client({ fetch }).send({ method: Options, baseURL: "https://api.example.com/" });
 * assertEquals(response.headers["allow"], ["GET, HEAD"]);
 * ```
 */
export const Options = "OPTIONS";

/**
 * A method that has a constant.
 *
 * @example
 * ```ts
 * import { Delete, Get, type KnownMethod, Post } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const METHODS: Readonly<Record<"list" | "add" | "drop", KnownMethod>> = { list: Get, add: Post, drop: Delete };
 * assertEquals(METHODS.drop, "DELETE");
 * ```
 */
export type KnownMethod =
  | typeof Get
  | typeof Post
  | typeof Put
  | typeof Patch
  | typeof Delete
  | typeof Head
  | typeof Options;

/**
 * An HTTP method: one of the constants, or any other token.
 *
 * @example
 * ```ts
 * import { buildRequestObject, type Method } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const purge: Method = "PURGE";
 * assertEquals(buildRequestObject({ method: purge, baseURL: "https://cache.example.com/" }).method, "PURGE");
 * ```
 */
export type Method = KnownMethod | (string & Record<never, never>);

const KNOWN: ReadonlySet<unknown> = new Set([Get, Post, Put, Patch, Delete, Head, Options]);
/** Those that `fetch` never sends. */
const FORBIDDEN: readonly string[] = ["CONNECT", "TRACE", "TRACK"];
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Whether a text is a token of HTTP, as names of methods and headers must be. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Why a method cannot be sent, or nothing. */
export function methodProblem(method: unknown): string | undefined {
  if (KNOWN.has(method)) return undefined;
  if (typeof method !== "string" || !isToken(method)) {
    return `the method is not a token; one such as "GET" would be right`;
  }
  if (FORBIDDEN.includes(method.toUpperCase())) return "fetch does not send this method";
  return undefined;
}

/** The method as it is sent: those that have a constant are meant whatever their letter case. */
export function sentMethod(method: string): string {
  if (KNOWN.has(method)) return method;
  const upper = method.toUpperCase();
  return KNOWN.has(upper) ? upper : method;
}

/** Whether requests of a method have no body. */
export function isBodiless(method: string): boolean {
  return method === Get || method === Head;
}
