import type { Clock } from "./clock.ts";
import type { Fetch, HttpClient } from "./make_request.ts";
import { isToken } from "./method.ts";
import type { RetryOptions } from "./retry.ts";

/**
 * What a hook knows of its place.
 *
 * @example
 * ```ts
 * import { Client, Get, type HookContext } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const attempts: number[] = [];
 * const client = new Client({
 *   fetch: new ScriptedTransport([{ fail: "reset" }, { body: "ok" }]).fetch,
 *   retry: { backoffMs: 0 },
 *   onRequest: (_request: globalThis.Request, { attempt }: HookContext) => void attempts.push(attempt),
 * });
 * await client.send({ method: Get, baseURL: "https://api.example.com/" });
 * assertEquals(attempts, [1, 2]);
 * ```
 */
export interface HookContext {
  /** The number of this attempt, from 1. */
  readonly attempt: number;
}

/**
 * Sees each web request before it is sent. It may change its headers, or answer another request in its place.
 * What it throws ends the call as it is.
 *
 * @example
 * ```ts
 * import { Client, Get, type RequestHook } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const signIn: RequestHook = async (request) => {
 *   const token = await Promise.resolve("a fresh token");
 *   request.headers.set("authorization", `Bearer ${token}`);
 * };
 * const transport = new ScriptedTransport([{}]);
 * const client = new Client({ fetch: transport.fetch, onRequest: signIn });
 * await client.send({ method: Get, baseURL: "https://api.example.com/" });
 * assertEquals(transport.requests[0]?.headers["authorization"], "Bearer a fresh token");
 * ```
 */
export type RequestHook = (
  request: globalThis.Request,
  context: HookContext,
) => globalThis.Request | void | Promise<globalThis.Request | void>;

/**
 * Sees each web response before its body is read, and may answer another one in its place. What it throws ends
 * the call as it is.
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
 * How a request is sent. Everything is off unless given.
 *
 * @example
 * ```ts
 * import { Client, Get, RestError, type SendOptions } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assert, assertEquals, assertRejects } from "@std/assert";
 *
 * const strict: SendOptions = { timeoutMs: 2_000, maxResponseBytes: 1_000, throwOnStatus: true };
 * const client = new Client({ fetch: new ScriptedTransport([{ status: 404 }]).fetch });
 * const error = await assertRejects(() =>
 *   client.send({ method: Get, baseURL: "https://api.example.com/items/9" }, strict)
 * );
 * assert(error instanceof RestError);
 * assertEquals([error.code, error.statusCode], ["status", 404]);
 * ```
 */
export interface SendOptions {
  /** Ends the call at once, with `aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** Longest time of one attempt, to the last byte of its body, in milliseconds. */
  readonly timeoutMs?: number | undefined;
  /** Longest time of the whole call, with all attempts and the waits between them, in milliseconds. */
  readonly totalTimeoutMs?: number | undefined;
  /** Tries again what may go well the next time. */
  readonly retry?: RetryOptions | undefined;
  /** Called before each attempt. */
  readonly onRequest?: RequestHook | undefined;
  /** Called after each attempt that brought a response. */
  readonly onResponse?: ResponseHook | undefined;
  /** Most bytes of the body of a response, after any content encoding was undone. */
  readonly maxResponseBytes?: number | undefined;
  /** Whether a status of 400 or above is thrown as an error, with `status`. */
  readonly throwOnStatus?: boolean | undefined;
  /** `manual` gives the redirect itself as the result. */
  readonly redirect?: "follow" | "manual" | undefined;
  /**
   * Names of further headers that are not sent on to another origin by a redirect; `authorization`, `cookie`
   * and `proxy-authorization` never are.
   */
  readonly sensitiveHeaders?: readonly string[] | undefined;
}

/**
 * How a client sends, unless a call says otherwise.
 *
 * @example
 * ```ts
 * import { Client, type ClientOptions, Get } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const { fetch } = new ScriptedTransport([{ status: 503 }, { body: "the second" }]);
 * const options: ClientOptions = { fetch, timeoutMs: 5_000, retry: { backoffMs: 10 }, random: () => 0.5 };
 * const response = await new Client(options).send({ method: Get, baseURL: "https://api.example.com/" });
 * assertEquals(response.body, "the second");
 * ```
 */
export interface ClientOptions extends Omit<SendOptions, "signal"> {
  /** Sends the requests; the platform's own when absent. */
  readonly fetch?: Fetch | undefined;
  /** On Deno: what `Deno.createHttpClient` gives, for example one that trusts a private CA. */
  readonly httpClient?: HttpClient | undefined;
  /** The platform's own when absent. */
  readonly clock?: Clock | undefined;
  /** A number from 0 to below 1, for the waits between attempts; `Math.random` when absent. */
  readonly random?: (() => number) | undefined;
}

/** The longest that a timer of the platform can wait. */
const MAX_MS = 2 ** 31 - 1;

/** Throws a `RangeError` that names an option which makes no sense. */
export function checkOptions(options: ClientOptions & SendOptions): void {
  checkWhole("timeoutMs", options.timeoutMs, 1, MAX_MS);
  checkWhole("totalTimeoutMs", options.totalTimeoutMs, 1, MAX_MS);
  checkWhole("maxResponseBytes", options.maxResponseBytes, 0, Number.MAX_SAFE_INTEGER);
  const { retry = {}, redirect, sensitiveHeaders = [] } = options;
  checkWhole("retry.attempts", retry.attempts, 1, 1_000);
  checkWhole("retry.backoffMs", retry.backoffMs, 0, MAX_MS);
  checkWhole("retry.maxDelayMs", retry.maxDelayMs, 0, MAX_MS);
  for (const status of retry.statuses ?? []) checkWhole("retry.statuses", status, 100, 599);
  if (redirect !== undefined && redirect !== "follow" && redirect !== "manual") {
    throw unusable("redirect", redirect, `"follow" or "manual"`);
  }
  const noName = sensitiveHeaders.find((name) => !isToken(name));
  if (noName !== undefined) throw unusable("sensitiveHeaders", noName, "names of headers");
}

function checkWhole(name: string, value: number | undefined, least: number, most: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return;
  throw unusable(name, value, `a whole number from ${least} to ${most}`);
}

function unusable(name: string, value: unknown, wanted: string): RangeError {
  return new RangeError(
    `Cannot use ${name} ${
      typeof value === "string" ? JSON.stringify(value) : String(value)
    }: ${wanted} would be right`,
  );
}
