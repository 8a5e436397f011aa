/** Where a client takes its time from; tests give their own and never wait. */
export interface Clock {
  /** Wall clock time in milliseconds since the Unix epoch, for dates that servers name. */
  now(): number;
  /** Milliseconds since some moment; unlike `now` it never goes back. */
  elapsed(): number;
  /** Calls `run` once, `delayMs` milliseconds from now. The answer cancels it; cancelling twice is fine. */
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
