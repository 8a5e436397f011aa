/** Time as the page has it. */
export interface PageClock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls `run` once after so many milliseconds; the answer takes the call back. */
  after(ms: number, run: () => void): () => void;
}

/** The clock of the browser. */
export const browserClock: PageClock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
