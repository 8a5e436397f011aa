/** The part of a limit that members without a demand have together. */
const SMALL_PART = 0.01;
/** A member may need a little more than it needed lately. */
const HEADROOM = 1.05;
/** The most of a rate that is lost to whole tokens, if another interval loses less. */
const MAX_LOSS = 0.02;
const MAX_FILL_SECONDS = 60;
/** Quotients are not exact. */
const EPSILON = 1e-9;

/** Whole tokens per whole seconds. */
export interface Fill {
  readonly tokens: number;
  readonly seconds: number;
}

/**
 * Divides a limit: max-min fair by demand, with a small share for members without one. Half of what is left over is divided
 * by demand and half evenly. The sum is the limit, but for the last digit.
 */
export function divide(limit: number, demands: readonly number[]): number[] {
  const count = demands.length;
  if (limit <= 0) return demands.map(() => 0);
  const least = limit * SMALL_PART / count;
  const needs = demands.map((demand) => Math.max(demand * HEADROOM, least));
  const sum = needs.reduce((total, need) => total + need, 0);
  if (sum <= limit) {
    const half = (limit - sum) / 2;
    return needs.map((need) => need + half * (need / sum + 1 / count));
  }
  let left = limit;
  let others = count;
  for (const need of Float64Array.from(needs).sort()) {
    if (need * others >= left) break;
    left -= need;
    others--;
  }
  const most = left / others;
  return needs.map((need) => Math.min(need, most));
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

/** The fills of a divided limit; the largest demand has what the others lose. */
export function divideFills(limit: number, demands: readonly number[]): Fill[] {
  const fills = divide(limit, demands).map(fillOf);
  let largest = 0;
  let left = limit;
  for (const [index, fill] of fills.entries()) {
    left -= rateOfFill(fill);
    if ((demands[index] ?? 0) > (demands[largest] ?? 0)) largest = index;
  }
  const fill = fills[largest];
  if (fill !== undefined) fills[largest] = fillOf(Math.max(0, rateOfFill(fill) + left));
  return fills;
}
