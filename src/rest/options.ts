import type { Clock } from "./stop.ts";
import type { Fetch, HttpClient } from "./make_request.ts";
import { isToken } from "./method.ts";
import type { RetryOptions } from "./retry.ts";

/**
 * What a hook is called for.
 *
 * @example
 * ```ts
 * import { Client, Get, type HookContext } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const attempts: number[] = [];
 * const onRequest = (_: unknown, { attempt }: HookContext) => void attempts.push(attempt);
 * const { fetch } = new ScriptedTransport([{ fail: "reset" }, {}]);
 * const client = new Client({ fetch, onRequest, retry: { backoffMs: 0 } });
 * await client.send({ method: Get, baseURL: "https://api.example.com/" });
 * assertEquals(attempts, [1, 2]);
 * ```
 */
export interface HookContext {
  /** The number of the attempt, from 1. */
  readonly attempt: number;
}

/**
 * Called before each attempt. It may change the headers or return another request. An error ends the call.
 *
 * @example
 * ```ts
 * import { Client, Get, type RequestHook } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const onRequest: RequestHook = ({ headers }) => headers.set("x-id", "7");
 * const { fetch } = new ScriptedTransport([({ headers }) => ({ body: headers["x-id"] })]);
 * const response = await new Client({ fetch, onRequest }).send({ method: Get, baseURL: "https://example.com/" });
 * assertEquals(response.body, "7");
 * ```
 */
export type RequestHook = (
  request: globalThis.Request,
  context: HookContext,
) => globalThis.Request | void | Promise<globalThis.Request | void>;

/**
 * Called for each response before its body is read. It may return another response. An error ends the call.
 *
 * @example
 * ```ts
 * import { Client, Get, type ResponseHook } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const lines: string[] = [];
 * const log: ResponseHook = ({ status }, { attempt }) => void lines.push(`attempt ${attempt}: ${status}`);
 * const { fetch } = new ScriptedTransport([{ status: 404 }]);
 * await new Client({ fetch, onResponse: log }).send({ method: Get, baseURL: "https://api.example.com/" });
 * assertEquals(lines, ["attempt 1: 404"]);
 * ```
 */
export type ResponseHook = (
  response: globalThis.Response,
  context: HookContext,
) => globalThis.Response | void | Promise<globalThis.Response | void>;

/**
 * Options of one call. Everything is off by default.
 *
 * @example
 * ```ts
 * import { Client, Get, type SendOptions } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const strict: SendOptions = { timeoutMs: 2_000, maxResponseBytes: 1_000, throwOnStatus: true };
 * const client = new Client({ fetch: new ScriptedTransport([{ status: 404 }]).fetch });
 * const request = { method: Get, baseURL: "https://api.example.com/" };
 * const error = await client.send(request, strict).catch((error) => error);
 * assertEquals(error.code, "status");
 * ```
 */
export interface SendOptions {
  /** Aborts the call, with code `aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** Timeout of one attempt, including its body, in milliseconds. */
  readonly timeoutMs?: number | undefined;
  /** Timeout of the whole call, including retries and delays, in milliseconds. */
  readonly totalTimeoutMs?: number | undefined;
  /** Retries transient failures. */
  readonly retry?: RetryOptions | undefined;
  /** Called before each attempt. */
  readonly onRequest?: RequestHook | undefined;
  /** Called for each response. */
  readonly onResponse?: ResponseHook | undefined;
  /** Maximum size of a response body after decoding. */
  readonly maxResponseBytes?: number | undefined;
  /** Whether a status of 400 or above is an error, with code `status`. */
  readonly throwOnStatus?: boolean | undefined;
  /** `manual` returns the redirect response. */
  readonly redirect?: "follow" | "manual" | undefined;
  /** Headers not to send to another origin on a redirect, in addition to credentials and cookies. */
  readonly sensitiveHeaders?: readonly string[] | undefined;
}

/**
 * Options of a client; those of a call take precedence.
 *
 * @example
 * ```ts
 * import { Client, type ClientOptions, Get } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const { fetch } = new ScriptedTransport([{ status: 503 }, { body: "second" }]);
 * const options: ClientOptions = { fetch, timeoutMs: 5_000, retry: { backoffMs: 10 }, random: () => 0.5 };
 * const response = await new Client(options).send({ method: Get, baseURL: "https://api.example.com/" });
 * assertEquals(response.body, "second");
 * ```
 */
export interface ClientOptions extends Omit<SendOptions, "signal"> {
  /** Sends the requests; the global `fetch` by default. */
  readonly fetch?: Fetch | undefined;
  /** On Deno: the result of `Deno.createHttpClient`, for example to trust a private CA. */
  readonly httpClient?: HttpClient | undefined;
  /** The clock of the platform by default. */
  readonly clock?: Clock | undefined;
  /** A number from 0 to below 1, for retry delays; `Math.random` by default. */
  readonly random?: (() => number) | undefined;
}

/** The maximum of a platform timer. */
const MAX_MS = 2 ** 31 - 1;

/** Throws a `RangeError` for an invalid option. */
export function checkOptions(options: ClientOptions & SendOptions): void {
  checkInteger("timeoutMs", options.timeoutMs, 1, MAX_MS);
  checkInteger("totalTimeoutMs", options.totalTimeoutMs, 1, MAX_MS);
  checkInteger("maxResponseBytes", options.maxResponseBytes, 0, Number.MAX_SAFE_INTEGER);
  const { retry = {}, redirect, sensitiveHeaders = [] } = options;
  checkInteger("retry.attempts", retry.attempts, 1, 1_000);
  checkInteger("retry.backoffMs", retry.backoffMs, 0, MAX_MS);
  checkInteger("retry.maxDelayMs", retry.maxDelayMs, 0, MAX_MS);
  for (const status of retry.statuses ?? []) checkInteger("retry.statuses", status, 100, 599);
  if (redirect !== undefined && redirect !== "follow" && redirect !== "manual") {
    throw invalidOption("redirect", redirect, `"follow" or "manual"`);
  }
  const noName = sensitiveHeaders.find((name) => !isToken(name));
  if (noName !== undefined) throw invalidOption("sensitiveHeaders", noName, "header names");
}

function checkInteger(name: string, value: number | undefined, least: number, most: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return;
  throw invalidOption(name, value, `an integer from ${least} to ${most}`);
}

function invalidOption(name: string, value: unknown, expected: string): RangeError {
  const shown = typeof value === "string" ? JSON.stringify(value) : String(value);
  return new RangeError(`Invalid ${name} ${shown}: expected ${expected}`);
}
