import { Delete, Get, Head, Options, Put } from "./method.ts";
import { isDecodingFailure } from "./content_coding.ts";
import { parseHttpDate } from "./http_date.ts";
import type { Request } from "./http_message.ts";
import { RestError } from "./rest_error.ts";

/**
 * When a request is retried.
 *
 * @example
 * ```ts
 * import { Client, Post, type RetryOptions } from "@weir/rest";
 *
 * const retry: RetryOptions = { attempts: 4, backoffMs: 100, methods: [Post] };
 * const client = new Client({ retry });
 * ```
 */
export interface RetryOptions {
  /** Maximum number of attempts, the first one included; 3 by default. */
  readonly attempts?: number | undefined;
  /** Upper bound of the first random delay in milliseconds, doubled for each further one; 250 by default. */
  readonly backoffMs?: number | undefined;
  /** Maximum delay in milliseconds; 30,000 by default. */
  readonly maxDelayMs?: number | undefined;
  /**
   * Methods that are retried, in addition to requests with an `Idempotency-Key` header; GET, HEAD, OPTIONS, PUT and
   * DELETE by default.
   */
  readonly methods?: readonly string[] | undefined;
  /** Statuses that are retried; 408, 429, 500, 502, 503 and 504 by default. */
  readonly statuses?: readonly number[] | undefined;
  /**
   * A `Retry-After` header extends the delay, true by default. A value above `maxDelayMs` ends the attempts
   * with that response.
   */
  readonly honorRetryAfter?: boolean | undefined;
}

/** The options with their defaults. */
export type RetryPolicy = { readonly [Key in keyof RetryOptions]-?: NonNullable<RetryOptions[Key]> };

const DEFAULTS: RetryPolicy = {
  attempts: 3,
  backoffMs: 250,
  maxDelayMs: 30_000,
  methods: [Get, Head, Options, Put, Delete],
  statuses: [408, 429, 500, 502, 503, 504],
  honorRetryAfter: true,
};

/** Applies the defaults. */
export function retryPolicy(options: RetryOptions): RetryPolicy {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...DEFAULTS, ...Object.fromEntries(given) };
}

/** The maximum number of attempts for a request as it was sent. */
export function attemptsFor(
  { method, headers = {}, body }: Pick<Request, "method" | "headers" | "body">,
  policy: RetryPolicy,
): number {
  if (body instanceof ReadableStream) return 1;
  const isNamed = policy.methods.some((name) => name.toUpperCase() === method.toUpperCase());
  const hasKey = Object.keys(headers).some((name) => name.toLowerCase() === "idempotency-key");
  return isNamed || hasKey ? policy.attempts : 1;
}

/** Returns true for an error after which a retry may succeed. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof RestError)) return false;
  const { code, kind, cause } = error;
  // A body that cannot be decoded stays so.
  return code === "timeout" || (code === "body_interrupted" && !isDecodingFailure(cause)) ||
    (code === "network" && kind !== "tls" && kind !== "redirect");
}

/** Inputs of the delay before the next attempt. */
interface RetryState {
  /** Number of attempts so far. */
  readonly attempt: number;
  readonly retryAfter?: string | null | undefined;
  /** Wall clock time in milliseconds since the Unix epoch. */
  readonly now: number;
  /** From 0 to below 1. */
  readonly random: number;
}

/** The delay in milliseconds; undefined when `Retry-After` exceeds the maximum. */
export function retryDelayMs(policy: RetryPolicy, state: RetryState): number | undefined {
  const { attempt, retryAfter, now, random } = state;
  const bound = Math.min(policy.maxDelayMs, policy.backoffMs * 2 ** (attempt - 1));
  const delay = random * bound;
  const requested = policy.honorRetryAfter ? retryAfterMs(retryAfter ?? null, now) : undefined;
  if (requested === undefined) return delay;
  return requested > policy.maxDelayMs ? undefined : Math.max(requested, delay);
}

/** `Retry-After` in seconds or as a date; undefined if it is neither. */
function retryAfterMs(header: string | null, now: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  const date = parseHttpDate(text, now);
  return date === undefined ? undefined : Math.max(0, date - now);
}
