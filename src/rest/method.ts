/**
 * The HTTP methods. Other methods are sent by their name, such as `"PURGE"`.
 *
 * @example
 * ```ts
 * import { buildRequestObject, Patch } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * const request = buildRequestObject({ method: Patch, baseURL: "https://api.example.com/items/1", body: "{}" });
 * assertEquals(request.method, "PATCH");
 * ```
 */
export const Get = "GET",
  Post = "POST",
  Put = "PUT",
  Patch = "PATCH",
  Delete = "DELETE",
  Head = "HEAD",
  Options = "OPTIONS";

/**
 * A method that has a constant.
 *
 * @example
 * ```ts
 * import { Delete, Get, type KnownMethod } from "@weir/rest";
 * const METHODS: Readonly<Record<string, KnownMethod>> = { list: Get, remove: Delete };
 * ```
 */
export type KnownMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS";

/**
 * An HTTP method: one of the constants, or any other token.
 *
 * @example
 * ```ts
 * import type { Method } from "@weir/rest";
 * const purge: Method = "PURGE";
 * ```
 */
export type Method = KnownMethod | (string & Record<never, never>);

const KNOWN: ReadonlySet<unknown> = new Set([Get, Post, Put, Patch, Delete, Head, Options]);
/** Methods that `fetch` does not send. */
const FORBIDDEN: readonly string[] = ["CONNECT", "TRACE", "TRACK"];
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Returns true for an HTTP token, as names of methods and headers must be. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Why a method cannot be sent; undefined if it can. */
export function methodProblem(method: unknown): string | undefined {
  if (KNOWN.has(method)) return undefined;
  if (typeof method !== "string" || !isToken(method)) {
    return `invalid method: expected a token such as "GET"`;
  }
  if (FORBIDDEN.includes(method.toUpperCase())) return "fetch does not send this method";
  return undefined;
}

/** The method as it is sent: known methods in upper case. */
export function sentMethod(method: string): string {
  if (KNOWN.has(method)) return method;
  const upper = method.toUpperCase();
  return KNOWN.has(upper) ? upper : method;
}

/** Returns true for a method whose requests have no body. */
export function isBodiless(method: string): boolean {
  return method === Get || method === Head;
}
