import { HELD_US, type Taken } from "./taken.ts";

/**
 * A token bucket. Its level is what was taken and has not been refilled, in parts of a hit, so that all numbers are
 * integers below 2^53. It is refilled in ticks, which are late by less than a millionth of the unit, and never early. The
 * tick in which a reload changes the rate may have the new one.
 */
export interface BucketLimit {
  readonly kind: "bucket";
  /** Hits that a full bucket holds, at most 2^31. */
  readonly burst: number;
  /** Parts of one hit, at most 2^21. */
  readonly partsPerHit: number;
  /** Parts that each tick refills. */
  readonly partsPerTick: number;
  /** In microseconds. */
  readonly tickUs: number;
}

/** The largest burst. */
export const MAX_BURST = 2 ** 31;
const MAX_PARTS_PER_HIT = 2 ** 21;
/** The longest announced wait; longer ones would not fit the integers of redis. */
const LONGEST_MS = 1e15;

/**
 * Numbers of the state of one counter: the level, until when it is refilled, in microseconds since the epoch, and the
 * parts of a tick at which it is refilled from then on. A reload changes the rate, and the time before it keeps its own.
 */
export const BUCKET_STATE_SIZE = 3;

/** A bucket that is refilled by so many hits per unit. */
export function bucketLimit(
  { burst, hitsPerUnit, unitSeconds }: {
    readonly burst: number;
    readonly hitsPerUnit: number;
    readonly unitSeconds: number;
  },
): BucketLimit {
  const unitUs = unitSeconds * 1_000_000;
  const tickUs = Math.ceil(unitUs / MAX_PARTS_PER_HIT);
  // Rounded up: the bucket is refilled more slowly, by at most one hit in a million.
  return {
    kind: "bucket",
    burst,
    partsPerHit: Math.ceil(unitUs / tickUs),
    partsPerTick: hitsPerUnit,
    tickUs,
  };
}

/**
 * Takes hits from the counter whose state starts at `at`: all of them or none. 0 asks, and a negative number gives back.
 */
export function takeFromBucket(
  state: Float64Array,
  at: number,
  limit: BucketLimit,
  nowUs: number,
  hits: number,
): Taken {
  const { burst, partsPerHit } = limit;
  const capacity = burst * partsPerHit;
  refill(state, at, limit, nowUs);
  state[at + 2] = limit.partsPerTick;
  let level = state[at] ?? 0;
  const granted = hits < 0 || level + Math.max(1, hits) * partsPerHit <= capacity;
  if (granted && hits !== 0) {
    state[at] = level + hits * partsPerHit;
    if (hits < 0) refill(state, at, limit, nowUs);
    level = state[at] ?? 0;
  }
  const available = Math.max(0, Math.floor((capacity - level) / partsPerHit));
  return {
    granted,
    used: Math.ceil(level / partsPerHit),
    available,
    retryMs: available > 0 ? 0 : msUntil(state, at, limit, nowUs, capacity - partsPerHit),
    freeMs: level === 0 ? 0 : msUntil(state, at, limit, nowUs, 0),
  };
}

/**
 * Refills by the ticks that have passed, at the rate of the state; the rest of the last one is not lost, unless it fills
 * the bucket.
 */
function refill(
  state: Float64Array,
  at: number,
  { partsPerTick, tickUs }: BucketLimit,
  nowUs: number,
): void {
  const until = state[at + 1] ?? 0;
  const rate = state[at + 2] ?? 0;
  const isFuture = until - nowUs > HELD_US;
  // A clock that was set back: time stands still for up to a second, unless the bucket is full.
  const from = isFuture || (state[at] ?? 0) <= 0 ? nowUs : until;
  const ticks = Math.max(0, Math.floor((nowUs - from) / tickUs));
  const level = Math.max(0, (state[at] ?? 0) - ticks * rate);
  const restUs = nowUs - from - ticks * tickUs;
  const isFull = level * tickUs <= restUs * Math.max(rate, partsPerTick);
  state[at] = isFull ? 0 : level;
  state[at + 1] = isFull ? nowUs : from + ticks * tickUs;
}

/** Milliseconds until the level is no higher than this. */
function msUntil(
  state: Float64Array,
  at: number,
  { burst, partsPerHit, partsPerTick, tickUs }: BucketLimit,
  nowUs: number,
  level: number,
): number {
  // No hit ever passes: any wait would do.
  if (burst === 0 || partsPerTick === 0) return Math.ceil(partsPerHit * tickUs / 1_000);
  const parts = (state[at] ?? 0) - level;
  // Only the last tick, which fills the bucket, may be a part of one.
  const us = level === 0
    ? Math.ceil(parts * tickUs / partsPerTick)
    : Math.ceil(parts / partsPerTick) * tickUs;
  return Math.min(LONGEST_MS, Math.max(0, Math.ceil(((state[at + 1] ?? 0) + us - nowUs) / 1_000)));
}
