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

/** The longest delay of a platform timer, 24.8 days; a longer one fires immediately. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(delayMs, run) {
    if (delayMs > LONGEST_TIMER_MS) return afterLong(delayMs, run);
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

function afterLong(delayMs: number, run: () => void): () => void {
  const rest = () => cancel = systemClock.after(delayMs - LONGEST_TIMER_MS, run);
  let cancel = systemClock.after(LONGEST_TIMER_MS, rest);
  return () => cancel();
}
