/** Where time comes from. Shells take a `Clock`, so that tests give their own and never sleep. */
export interface Clock {
  /** Wall clock time in milliseconds since the Unix epoch, fractions allowed. */
  now(): number;
  /**
   * Milliseconds since some moment, with fractions, for how long something takes: unlike `now` it never
   * goes back when the wall clock is set.
   */
  elapsed(): number;
  /** Calls `run` once, `delayMs` milliseconds from now. The answer cancels it; cancelling twice is fine. */
  after(delayMs: number, run: () => void): () => void;
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};
