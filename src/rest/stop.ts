import type { RestError } from "./rest_error.ts";

/**
 * The clock of a client; tests use their own to avoid waiting.
 *
 * @example
 * ```ts
 * import { Client, type Clock, Get } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "#assert";
 *
 * const delays: number[] = [];
 * const clock: Clock = {
 *   now: () => 0,
 *   elapsed: () => 0,
 *   after: (delayMs, run) => (delays.push(delayMs), queueMicrotask(run), () => {}),
 * };
 * const { fetch } = new ScriptedTransport([{ status: 503, headers: { "retry-after": "20" } }, {}]);
 * await new Client({ fetch, clock, retry: {} }).send({ method: Get, baseURL: "https://api.example.com/" });
 * assertEquals(delays, [20_000]);
 * ```
 */
export interface Clock {
  /** Wall clock time in milliseconds since the Unix epoch. */
  now(): number;
  /** Monotonic time in milliseconds. */
  elapsed(): number;
  /** Calls `run` once after `delayMs`; the returned function cancels it and may be called twice. */
  after(delayMs: number, run: () => void): () => void;
}

/** The clock of the platform. */
export const platformClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Reasons to abort work. */
interface StopOptions {
  readonly signal?: AbortSignal | undefined;
  /** The error for the reason of `signal`. */
  readonly onSignal: (reason: unknown) => RestError;
  /** A timeout in milliseconds. */
  readonly ms?: number | undefined;
  /** The error for the timeout. */
  readonly onTime: () => RestError;
  readonly clock: Clock;
}

/** An abort signal for a timeout and another signal; its reason is always a `RestError`. */
export class Stop {
  readonly signal: AbortSignal;
  /** Removes the timer and the listener when the work is done. */
  readonly release: () => void;

  constructor({ signal, onSignal, ms, onTime, clock }: StopOptions) {
    const controller = new AbortController();
    this.signal = controller.signal;
    const onAbort = () => controller.abort(onSignal(signal?.reason));
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    const cancel = ms === undefined ? undefined : clock.after(ms, () => controller.abort(onTime()));
    this.release = () => {
      signal?.removeEventListener("abort", onAbort);
      cancel?.();
    };
  }
}

/** Resolves with the work, or throws the reason of the signal as soon as it aborts; `discard` gets a late result. */
export async function unlessStopped<T>(
  work: T | Promise<T>,
  signal: AbortSignal | undefined,
  discard: (late: T) => void = () => {},
): Promise<T> {
  if (signal === undefined) return await work;
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    // The signal takes precedence over a result of the same moment.
    return await Promise.race([aborted, work]);
  } catch (error) {
    if (signal.aborted) Promise.resolve(work).then(discard, () => {});
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Waits, or throws the reason of the signal as soon as it aborts. */
export async function pause(ms: number, clock: Clock, signal: AbortSignal | undefined): Promise<void> {
  let cancel = () => {};
  const elapsed = new Promise<void>((resolve) => {
    cancel = clock.after(ms, resolve);
  });
  try {
    await unlessStopped(elapsed, signal);
  } finally {
    cancel();
  }
}
