import type { Method } from "./method.ts";

/**
 * One HTTP request.
 *
 * @example
 * ```ts
 * import { Post, type Request } from "@weir/rest";
 * const request: Request = { method: Post, baseURL: "https://api.example.com/items", body: "{}" };
 * ```
 */
export interface Request {
  /** One of the method constants, or another token. */
  readonly method: Method;
  /** An `http` or `https` URL, with or without query and fragment. */
  readonly baseURL: string;
  /** Header values by name. A non-empty body gets `Content-Type: application/json` by default. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Added to the query of the URL by `addQueryParameters`. */
  readonly queryParams?: QueryParams | undefined;
  /** Sent with `POST`, `PUT` and so on. */
  readonly body?: RequestBody | undefined;
}

/**
 * Query parameters by name. A list repeats the name; `undefined` leaves it out.
 *
 * @example
 * ```ts
 * import { addQueryParameters, type QueryParams } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * const params: QueryParams = { tag: ["a", "b"], page: "2", sort: undefined };
 * assertEquals(addQueryParameters("https://x/", params), "https://x/?page=2&tag=a&tag=b");
 * ```
 */
export type QueryParams = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The body of a request: bytes, a string sent as UTF-8, a form, or a stream of bytes. `FormData` is sent as
 * `multipart/form-data`, and `URLSearchParams` as `application/x-www-form-urlencoded`. A stream can be sent only once:
 * such a request is neither retried nor redirected with its body.
 *
 * @example
 * ```ts
 * import type { RequestBody } from "@weir/rest";
 * const body: RequestBody = new URLSearchParams({ grant_type: "client_credentials" });
 * ```
 */
export type RequestBody =
  | string
  | ArrayBuffer
  | ArrayBufferView
  | FormData
  | URLSearchParams
  | ReadableStream<Uint8Array>;

/**
 * Header values by name in lower case: one item per cookie in `set-cookie`, one combined item otherwise.
 *
 * @example
 * ```ts
 * import type { ResponseHeaders } from "@weir/rest";
 * const headers: ResponseHeaders = { "set-cookie": ["a=1", "b=2"], via: ["a, b"] };
 * ```
 */
export type ResponseHeaders = Record<string, string[]>;

/**
 * A response.
 *
 * @example
 * ```ts
 * import { buildResponse } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * const response = await buildResponse(Response.json({ id: 1 }, { status: 201 }));
 * assertEquals([response.statusCode, response.body, response.json()], [201, '{"id":1}', { id: 1 }]);
 * ```
 */
export interface Response {
  /** The status. */
  readonly statusCode: number;
  /** The body decoded as UTF-8. */
  readonly body: string;
  /** The body after decoding of any content encoding. */
  readonly bodyBytes: Uint8Array<ArrayBuffer>;
  /** The headers. */
  readonly headers: ResponseHeaders;
  /**
   * The body parsed as JSON; the type is not checked.
   *
   * @throws {RestError} `invalid_json`.
   */
  json<T = unknown>(): T;
}
