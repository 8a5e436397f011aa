import type { Clock } from "./stop.ts";
import type { Fetch, HttpClient } from "./make_request.ts";
import { isToken } from "./method.ts";
import type { RetryOptions } from "./retry.ts";

/**
 * The attempt that a hook is called for.
 *
 * @example
 * ```ts
 * import { Client, type HookContext } from "@weir/rest";
 *
 * const onRequest = (_: unknown, { attempt }: HookContext) => console.log(`attempt ${attempt}`);
 * const client = new Client({ onRequest });
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
 * import { Client, type RequestHook } from "@weir/rest";
 *
 * const onRequest: RequestHook = ({ headers }) => headers.set("authorization", "Bearer KEY");
 * const client = new Client({ onRequest });
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
 * import { Client, type ResponseHook } from "@weir/rest";
 *
 * const onResponse: ResponseHook = ({ status }, { attempt }) => console.log(`attempt ${attempt}: ${status}`);
 * const client = new Client({ onResponse });
 * ```
 */
export type ResponseHook = (
  response: globalThis.Response,
  context: HookContext,
) => globalThis.Response | void | Promise<globalThis.Response | void>;

/**
 * Options of a client that each of its calls has too. Everything is off by default.
 *
 * @example
 * ```ts
 * import type { CommonOptions } from "@weir/rest";
 * const patient: CommonOptions = { timeoutMs: 10_000, retry: { attempts: 5 } };
 * ```
 */
export interface CommonOptions {
  /** `follow` by default, for at most 20 redirects; `manual` returns the redirect response. */
  readonly redirect?: "follow" | "manual" | undefined;
  /** Headers not to send to another origin on a redirect, in addition to credentials and cookies. */
  readonly sensitiveHeaders?: readonly string[] | undefined;
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
  /** Makes a status of 400 or above an error, with code `status`. */
  readonly throwOnStatus?: boolean | undefined;
}

/**
 * Options of one call.
 *
 * @example
 * ```ts
 * import type { SendOptions } from "@weir/rest";
 * const strict: SendOptions = { timeoutMs: 2_000, maxResponseBytes: 1_000, throwOnStatus: true };
 * ```
 */
export interface SendOptions extends CommonOptions {
  /** Aborts the request, with code `aborted`. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Options of a client; those of a call take precedence.
 *
 * @example
 * ```ts
 * import { Client, type ClientOptions } from "@weir/rest";
 *
 * const options: ClientOptions = { timeoutMs: 5_000, retry: { attempts: 3 } };
 * const client = new Client(options);
 * ```
 */
export interface ClientOptions extends CommonOptions {
  /** The global `fetch` by default. */
  readonly fetch?: Fetch | undefined;
  /** For Deno, for example to trust a private CA; other platforms ignore it. */
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
