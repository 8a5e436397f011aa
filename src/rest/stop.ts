import type { Clock } from "./clock.ts";
import type { RestError } from "./rest_error.ts";

/** What ends work before it is done. */
export interface StopOptions {
  /** Ends it with the error that `onSignal` makes of the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  readonly onSignal: (reason: unknown) => RestError;
  /** Ends it after so many milliseconds, with the error that `onTime` makes. */
  readonly ms?: number | undefined;
  readonly onTime: () => RestError;
  readonly clock: Clock;
}

/** Ends work by a signal of its own, whose reason is always a `RestError`, at a time or with another signal. */
export class Stop {
  readonly #controller = new AbortController();
  readonly #release: () => void;

  constructor({ signal, onSignal, ms, onTime, clock }: StopOptions) {
    const onAbort = () => this.#controller.abort(onSignal(signal?.reason));
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    const cancel = ms === undefined ? undefined : clock.after(ms, () => this.#controller.abort(onTime()));
    this.#release = () => {
      signal?.removeEventListener("abort", onAbort);
      cancel?.();
    };
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The work is over: lets go of the timer and of the other signal. */
  release(): void {
    this.#release();
  }
}

/**
 * What the work answers, or the signal's reason thrown as soon as it is aborted. What the work answers after
 * that goes to `discard`; what it throws after that is nobody's concern.
 */
export async function unlessStopped<T>(
  work: T | Promise<T>,
  signal: AbortSignal | undefined,
  discard: (late: T) => void = () => {},
): Promise<T> {
  if (signal === undefined) return await work;
  let onAbort = () => {};
  const stopped = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    // The signal wins over an answer of the same moment.
    return await Promise.race([stopped, work]);
  } catch (error) {
    if (signal.aborted) Promise.resolve(work).then(discard, () => {});
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Waits, or throws the signal's reason as soon as it is aborted. */
export async function pause(ms: number, clock: Clock, signal: AbortSignal | undefined): Promise<void> {
  let cancel = () => {};
  const over = new Promise<void>((resolve) => {
    cancel = clock.after(ms, resolve);
  });
  try {
    await unlessStopped(over, signal);
  } finally {
    cancel();
  }
}
