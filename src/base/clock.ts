/** The source of time; tests inject their own. */
export interface Clock {
  /** Wall clock time in milliseconds since the Unix epoch, with fractions. */
  now(): number;
  /** Monotonic milliseconds, with fractions, to measure durations. */
  elapsed(): number;
  /** Calls `run` once after `delayMs`; the returned function cancels it and may be called twice. */
  after(delayMs: number, run: () => void): () => void;
}

/** The longest delay of a platform timer; a longer one fires immediately. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clock of the system. */
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
