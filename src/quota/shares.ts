/** The part of a limit that members without a demand have together. */
const SMALL_PART = 0.01;
/** A member may need a little more than it needed lately. */
const HEADROOM = 1.05;
/** The most of a rate that is lost to whole tokens, if another interval loses less. */
const MAX_LOSS = 0.02;
const MAX_FILL_SECONDS = 60;
/** A division of many members ends after looking at so many needs. */
const MAX_VISITS = 10_000_000;
/** Needs in a step of a division. */
const NEEDS_PER_STEP = 1_024;
/** A demand that is assumed to be an equal part of the limit. */
export const UNKNOWN_DEMAND = -1;
/** Quotients are not exact. */
const EPSILON = 1e-9;

/** Whole tokens per whole seconds. */
export interface Fill {
  readonly tokens: number;
  readonly seconds: number;
}

/** An array, typed if it is long: each typed one costs more, and a long plain one stops the thread when it grows. */
type Numbers = number[] | Float64Array;

/** The division of a limit: the rate of each member follows from its demand. */
export interface Level {
  readonly equal: number;
  /** Bounds of what is needed. */
  readonly least: number;
  readonly most: number;
  /** The part of what is left over, by need and evenly. */
  readonly factor: number;
  readonly extra: number;
}

/**
 * Divides a limit: max-min fair by demand, with a small share for members without one. Half of what is left over is divided
 * by demand and half evenly. The sum is the limit, but for the last digit, and less after many looks at many members.
 * Changes the array.
 */
export function* divide(limit: number, demands: Numbers): Generator<void, Level> {
  const count = demands.length;
  if (limit <= 0 || count === 0) return { equal: 0, least: 0, most: 0, factor: 0, extra: 0 };
  const equal = limit / count;
  const least = equal * SMALL_PART;
  const needs = demands;
  let sum = 0;
  for (let index = 0; index < count; index++) {
    const demand = demands[index] ?? 0;
    const need = Math.max((demand === UNKNOWN_DEMAND ? equal : demand) * HEADROOM, least);
    needs[index] = need;
    sum += need;
    if (index % NEEDS_PER_STEP === 0) yield;
  }
  if (sum <= limit) {
    const half = (limit - sum) / 2;
    return { equal, least, most: Infinity, factor: 1 + half / sum, extra: half / count };
  }
  return { equal, least, most: yield* highestOf(limit, needs), factor: 1, extra: 0 };
}

/** The most that each may have of a limit; changes the needs. */
function* highestOf(limit: number, needs: Numbers): Generator<void, number> {
  let left = limit;
  let others = needs.length;
  for (let visits = 0; visits < MAX_VISITS; visits += others) {
    const most = left / others;
    let kept = 0;
    for (let index = 0; index < others; index++) {
      const need = needs[index] ?? 0;
      if (need < most) left -= need;
      else needs[kept++] = need;
      if (index % NEEDS_PER_STEP === 0) yield;
    }
    if (kept === others || kept === 0) return most;
    others = kept;
  }
  return left / others;
}

/** The rate of a demand. */
export function rateOfDemand({ equal, least, most, factor, extra }: Level, demand: number): number {
  return Math.min(Math.max((demand === UNKNOWN_DEMAND ? equal : demand) * HEADROOM, least), most) * factor +
    extra;
}

/** The whole tokens of a rate, in the shortest interval that loses little. */
export function fillOf(perSecond: number): Fill {
  if (perSecond <= 0) return NO_FILL;
  let best = NO_FILL;
  // A shorter interval has no whole token.
  for (let seconds = Math.max(1, Math.floor(1 / perSecond)); seconds <= MAX_FILL_SECONDS; seconds++) {
    const tokens = Math.floor(perSecond * seconds + EPSILON);
    if (tokens > 0 && tokens / seconds >= perSecond * (1 - MAX_LOSS)) return { tokens, seconds };
    if (tokens / seconds > best.tokens / best.seconds) best = { tokens, seconds };
  }
  if (best !== NO_FILL) return best;
  const seconds = Math.ceil(1 / perSecond - EPSILON);
  return seconds < NO_FILL.seconds ? { tokens: 1, seconds } : NO_FILL;
}

/** A year, for a rate of zero: the first of its tokens is there from the start. */
export const NO_FILL: Fill = { tokens: 1, seconds: 31_536_000 };

/** The tokens per second of a fill. */
export function rateOfFill(fill: Fill): number {
  return fill.seconds === NO_FILL.seconds ? 0 : fill.tokens / fill.seconds;
}
