import type { Clock } from "./clock.ts";

/** Settles when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/**
 * A signal that is aborted with the first of these, which hold it as long as they live. One of `AbortSignal.any` may be
 * collected, with its listeners, where nothing else refers to it.
 */
export function heldUntilAborted(...signals: readonly AbortSignal[]): AbortSignal {
  const first = new AbortController();
  for (const signal of signals) {
    const onAbort = () => first.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  }
  return first.signal;
}

/** Waits for so long, or until the signal is aborted; answers false then. */
export async function waitUnlessAborted(ms: number, clock: Clock, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false;
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(ms, resolve);
  const onAbort = () => resolve();
  signal.addEventListener("abort", onAbort);
  await promise;
  signal.removeEventListener("abort", onAbort);
  cancel();
  return !signal.aborted;
}

/** Waits for the promise; throws the signal's reason when it is aborted first. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const refused = Promise.withResolvers<never>();
  const onAbort = () => refused.reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([promise, refused.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Waits for the promise with a timeout; false when it timed out. */
export async function settledWithin(promise: Promise<unknown>, ms: number, clock: Clock): Promise<boolean> {
  const timeout = Promise.withResolvers<boolean>();
  const cancel = clock.after(ms, () => timeout.resolve(false));
  try {
    return await Promise.race([promise.then(() => true), timeout.promise]);
  } finally {
    cancel();
  }
}

/** Like `Promise.all`, but after a failure waits until the others have ended as well. */
export async function allEnded<Tasks extends readonly unknown[] | []>(
  tasks: Tasks,
): Promise<{ -readonly [Index in keyof Tasks]: Awaited<Tasks[Index]> }> {
  await Promise.allSettled(tasks);
  return await Promise.all(tasks);
}

/** Waits for the work with a timeout, after which `overdue()` is thrown and the result of the work is ignored. */
export async function withTimeout<T>(
  work: Promise<T>,
  ms: number,
  clock: Clock,
  overdue: () => Error,
): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const cancel = clock.after(ms, () => timeout.reject(overdue()));
  try {
    return await Promise.race([work, timeout.promise]);
  } finally {
    cancel();
  }
}
