/**
 * A small HTTP client built on `fetch`, without dependencies, for Deno, Node 20 and later, and browsers. It adds no
 * credentials and reads no environment variables (Deno's own `fetch` obeys `HTTP_PROXY`, `HTTPS_PROXY` and
 * `NO_PROXY`). Timeouts, retries and limits are off by default.
 *
 * @example
 * ```ts
 * import { Get, send } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, ({ url }) => new Response(new URL(url).search));
 * const baseURL = `http://localhost:${server.addr.port}/items`;
 * const response = await send({ method: Get, baseURL, queryParams: { page: "2" } });
 * assertEquals([response.statusCode, response.body], [200, "?page=2"]);
 * ```
 *
 * @module
 */
export { Client, defaultClient, send, sendStream, type StreamResponse } from "./client.ts";
export type { QueryParams, Request, RequestBody, Response, ResponseHeaders } from "./http_message.ts";
export { type Fetch, type HttpClient, makeRequest, type MakeRequestOptions } from "./make_request.ts";
export { Delete, Get, Head, type KnownMethod, type Method, Options, Patch, Post, Put } from "./method.ts";
export type {
  ClientOptions,
  CommonOptions,
  HookContext,
  RequestHook,
  ResponseHook,
  SendOptions,
} from "./options.ts";
export { addQueryParameters, buildRequestObject } from "./request.ts";
export { buildResponse, type BuildResponseOptions } from "./response.ts";
export {
  type NetworkErrorKind,
  RestError,
  type RestErrorCode,
  type RestErrorOptions,
  type RestErrorSubject,
} from "./rest_error.ts";
export type { RetryOptions } from "./retry.ts";
export type { Clock } from "./stop.ts";
