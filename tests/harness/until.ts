/** How long `until` asks, and how often. */
export interface UntilOptions {
  /** After this the wait has failed; a minute when absent, as a machine may be slow. */
  readonly deadlineMs?: number;
  /** Pause between two questions; 20 milliseconds when absent. */
  readonly intervalMs?: number;
}

/** What is left of a type when it is known to be truthy. */
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
    await new Promise((resolve) => setTimeout(resolve, options.intervalMs ?? 20));
  } while (performance.now() < end);
  throw new Error(`Cannot wait for "${what}": it did not come within ${deadlineMs} ms`, { cause });
}
