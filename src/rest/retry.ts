import { Delete, Get, Head, Options, Put } from "./method.ts";
import type { Request } from "./http_message.ts";
import { RestError } from "./rest_error.ts";

/**
 * When a request is tried again.
 *
 * @example
 * ```ts
 * import { Client, Post, type RetryOptions } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const retry: RetryOptions = { attempts: 4, backoffMs: 1, statuses: [429, 503] };
 * const transport = new ScriptedTransport([{ status: 503 }, { fail: "connect" }, { status: 201 }]);
 * const response = await new Client({ fetch: transport.fetch, retry }).send({
 *   method: Post,
 *   baseURL: "https://api.example.com/orders",
 *   headers: { "idempotency-key": "order-7" },
 *   body: "{}",
 * });
 * assertEquals([response.statusCode, transport.requests.length], [201, 3]);
 * ```
 */
export interface RetryOptions {
  /** How often it is tried at most, the first time included; 3 when absent. */
  readonly attempts?: number | undefined;
  /**
   * The wait before the second attempt is a random part of this, in milliseconds; the bound doubles before
   * each further one. 250 when absent.
   */
  readonly backoffMs?: number | undefined;
  /** No wait is longer than this, in milliseconds; 30,000 when absent. */
  readonly maxDelayMs?: number | undefined;
  /**
   * Methods that are tried again; GET, HEAD, OPTIONS, PUT and DELETE when absent. Others are as well where
   * the request has an `Idempotency-Key` header.
   */
  readonly methods?: readonly string[] | undefined;
  /** Statuses that are tried again; 408, 429, 500, 502, 503 and 504 when absent. */
  readonly statuses?: readonly number[] | undefined;
  /**
   * Whether a `Retry-After` header prolongs the wait, true when absent. One that asks for more than
   * `maxDelayMs` ends the attempts, and its response is the result.
   */
  readonly honorRetryAfter?: boolean | undefined;
}

/** The options with what they are when absent. */
export type RetryPolicy = { readonly [Key in keyof RetryOptions]-?: NonNullable<RetryOptions[Key]> };

const DEFAULTS: RetryPolicy = {
  attempts: 3,
  backoffMs: 250,
  maxDelayMs: 30_000,
  methods: [Get, Head, Options, Put, Delete],
  statuses: [408, 429, 500, 502, 503, 504],
  honorRetryAfter: true,
};

/** The policy that the options stand for. */
export function retryPolicy(options: RetryOptions): RetryPolicy {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...DEFAULTS, ...Object.fromEntries(given) };
}

/** How often a request may be tried. */
export function attemptsFor({ method, headers = {}, body }: Request, policy: RetryPolicy): number {
  if (body instanceof ReadableStream) return 1;
  const isNamed = policy.methods.some((name) => name.toUpperCase() === method.toUpperCase());
  const hasKey = Object.keys(headers).some((name) => name.toLowerCase() === "idempotency-key");
  return isNamed || hasKey ? policy.attempts : 1;
}

/** Whether what went wrong may go well the next time. */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof RestError)) return false;
  const { code, kind } = error;
  return code === "timeout" || code === "body_interrupted" ||
    (code === "network" && kind !== "tls" && kind !== "redirect");
}

/** What the wait before the next attempt depends on. */
export interface RetryMoment {
  /** How many attempts have been made. */
  readonly attempt: number;
  /** The header of the response, if there was one. */
  readonly retryAfter?: string | null | undefined;
  /** Wall clock time in milliseconds since the Unix epoch. */
  readonly now: number;
  /** From 0 to below 1. */
  readonly random: number;
}

/** Milliseconds until the next attempt, or nothing when the server asks for a longer wait than is allowed. */
export function retryDelayMs(policy: RetryPolicy, moment: RetryMoment): number | undefined {
  const { attempt, retryAfter, now, random } = moment;
  const bound = Math.min(policy.maxDelayMs, policy.backoffMs * 2 ** (attempt - 1));
  const delay = random * bound;
  const asked = policy.honorRetryAfter ? retryAfterMs(retryAfter ?? null, now) : undefined;
  if (asked === undefined) return delay;
  return asked > policy.maxDelayMs ? undefined : Math.max(asked, delay);
}

/** The wait that a `Retry-After` header asks for, in seconds or as a date; nothing where it is neither. */
function retryAfterMs(header: string | null, now: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  // Dates begin with the name of a day; the parser alone would take much else.
  const date = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
