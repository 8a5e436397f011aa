import { setImmediate } from "node:timers";
import { assertEquals } from "./assert.ts";

/** Set by `unit_guard.ts`, which is loaded before unit tests. */
const GUARDED = Symbol.for("weir.unit_guard");

/** Options of an until. */
export interface UntilOptions {
  /** After this the wait has failed; a minute when absent, as a machine may be slow. */
  readonly deadlineMs?: number;
  /** Pause between two questions; 20 milliseconds when absent. */
  readonly intervalMs?: number;
}

/** The truthy part of a type. */
export type Truthy<T> = Exclude<T, false | 0 | "" | null | undefined>;

/**
 * Asks `condition` again and again until it answers something truthy, and answers that. A condition that
 * throws is asked again; what it threw last is the cause of the error at the deadline.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Truthy<T>> {
  const deadlineMs = options.deadlineMs ?? 60_000;
  const end = performance.now() + deadlineMs;
  let cause: unknown;
  do {
    try {
      const answer = await condition();
      if (answer) return answer as Truthy<T>;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    await pause(options.intervalMs ?? 20);
  } while (performance.now() < end);
  throw new Error(`Cannot wait for "${what}": it did not come within ${deadlineMs} ms`, { cause });
}

/**
 * Compares again and again until `actual` answers what is expected; at the deadline the error shows the last difference.
 * For state that several steps outside of the test lead to: a wait for one of them proves nothing of the others.
 */
export async function eventually<T>(
  expected: T,
  actual: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<void> {
  await until("the expected value", async () => {
    assertEquals(await actual(), expected);
    return true;
  }, options);
}

/** Unit tests have no timers: there a pause is a turn of the event loop. */
function pause(ms: number): Promise<unknown> {
  return new Promise((resolve) => {
    if (Object.hasOwn(globalThis, GUARDED)) setImmediate(() => resolve(undefined));
    else setTimeout(resolve, ms);
  });
}

/** Turns of the event loop in which promises that depend on no input settle, with those that follow from them. */
const SETTLING_TURNS = 10;

/** Lets everything settle that waits for nothing from outside. */
export async function settledTurns(): Promise<void> {
  for (let turn = 0; turn < SETTLING_TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
}
