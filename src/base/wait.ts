import type { Clock } from "./clock.ts";

/** Settles when the signal is aborted, at once if it already is. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** Waits for so long, or until the signal is aborted; answers false then. */
export async function waitUnlessAborted(ms: number, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const timer = Promise.withResolvers<void>();
  const cancel = clock.after(ms, timer.resolve);
  await Promise.race([timer.promise, aborted(signal)]);
  cancel();
  return !signal.aborted;
}

/** Waits for the promise; throws the signal's reason when it is aborted before. */
export async function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  await Promise.race([promise, aborted(signal)]);
  signal.throwIfAborted();
}

/** Waits for the promise, but no longer than this; whether it was fulfilled by then. Rejects when it does. */
export async function settledWithin(promise: Promise<unknown>, ms: number, clock: Clock): Promise<boolean> {
  const timeout = Promise.withResolvers<boolean>();
  const cancel = clock.after(ms, () => timeout.resolve(false));
  try {
    return await Promise.race([promise.then(() => true), timeout.promise]);
  } finally {
    cancel();
  }
}

/** What all of these come to, as by `Promise.all`; but where one fails, the others have ended as well. */
export async function allEnded<Tasks extends readonly unknown[] | []>(
  tasks: Tasks,
): Promise<{ -readonly [Index in keyof Tasks]: Awaited<Tasks[Index]> }> {
  await Promise.allSettled(tasks);
  return await Promise.all(tasks);
}

/**
 * The answer of this work, or `overdue()` thrown when there is none after so long. What becomes of the
 * work after that, a rejection included, is nobody's concern.
 */
export async function answeredWithin<T>(
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
