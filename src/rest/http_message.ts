import type { Method } from "./method.ts";

/**
 * One HTTP request.
 *
 * @example
 * ```ts
 * import { buildRequestObject, Post, type Request } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const request: Request = {
 *   method: Post,
 *   baseURL: "https://api.example.com/items",
 *   headers: { authorization: "Bearer KEY" },
 *   queryParams: { dryRun: "true" },
 *   body: JSON.stringify({ name: "first" }),
 * };
 * assertEquals(buildRequestObject(request).url, "https://api.example.com/items?dryRun=true");
 * ```
 */
export interface Request {
  /** One of the method constants, or another token. */
  readonly method: Method;
  /** The whole URL up to its path, with a query and a fragment if it has them; `http` or `https`. */
  readonly baseURL: string;
  /** Header values by name. A body that is not empty gets `Content-Type: application/json` unless one is here. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Added to the query of the URL, as `addQueryParameters` does. */
  readonly queryParams?: Readonly<Record<string, string>> | undefined;
  /**
   * The raw body: bytes, a text sent as UTF-8, or a stream of bytes that is sent as it comes. A stream can be
   * sent once, so such a request is neither tried again nor sent on by a redirect that keeps its body.
   */
  readonly body?: Uint8Array | string | ReadableStream<Uint8Array> | undefined;
}

/**
 * Header values by name in lower case: `set-cookie` one item for each, others combined into one as they came.
 *
 * @example
 * ```ts
 * import { buildResponse, type ResponseHeaders } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const answer = new Response(null, { headers: [["Via", "a"], ["Via", "b"], ["X-Request-Id", "7"]] });
 * const { headers }: { headers: ResponseHeaders } = await buildResponse(answer);
 * assertEquals(headers, { via: ["a, b"], "x-request-id": ["7"] });
 * ```
 */
export type ResponseHeaders = Record<string, string[]>;

/**
 * What a server answered.
 *
 * @example
 * ```ts
 * import { buildResponse } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const response = await buildResponse(Response.json({ id: 1 }, { status: 201 }));
 * assertEquals(response.statusCode, 201);
 * assertEquals(response.body, '{"id":1}');
 * assertEquals(response.headers["content-type"], ["application/json"]);
 * assertEquals(response.json<{ id: number }>().id, 1);
 * ```
 */
export interface Response {
  /** The status: any is a normal result. */
  readonly statusCode: number;
  /** The body as text, read as UTF-8. */
  readonly body: string;
  /** The body as it came, after any content encoding was undone. */
  readonly bodyBytes: Uint8Array<ArrayBuffer>;
  /** The headers. */
  readonly headers: ResponseHeaders;
  /**
   * The body parsed as JSON. The type is the caller's word for it: nothing is checked.
   *
   * @throws {RestError} `invalid_json`.
   */
  json<T = unknown>(): T;
}
