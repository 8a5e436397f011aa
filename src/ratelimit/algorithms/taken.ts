/** If the clock of a counter was set back by so many microseconds at most, time stands still; otherwise it goes on from there. */
export const HELD_US = 1_000_000;

/** The outcome of conditional hits. */
export interface Taken {
  /** True if all hits were taken; of a question, whether one hit would pass; true for hits that are given back. */
  readonly granted: boolean;
  /** Hits that count now, after these. */
  readonly used: number;
  /** Hits that would pass now. */
  readonly available: number;
  /** Milliseconds until one hit would pass, if none is given back; 0 if one would pass now. */
  readonly retryMs: number;
  /** Milliseconds until all of the limit is free, if nothing more is taken. */
  readonly freeMs: number;
  /**
   * Of hits in several windows: the outcome in each, as if it were alone; all else is that of the first. Times of fixed
   * windows are 0.
   */
  readonly windows?: readonly Counted[] | undefined;
}

/** The count after a hit, or what became of a conditional one. */
export type Counted = number | Taken;
