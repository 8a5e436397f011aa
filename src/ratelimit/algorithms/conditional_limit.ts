import { BUCKET_STATE_SIZE, type BucketLimit, takeFromBucket } from "./bucket.ts";
import type { LeaseLimit } from "./leases.ts";
import { SLICE_STATE_SIZE, type SliceLimit, SLICES, takeFromSlices } from "./slices.ts";
import { HELD_US, type Taken } from "./taken.ts";

/** A limit whose hits are taken only if they pass: all of them or none. */
export type ConditionalLimit = StateLimit | LeaseLimit;

/** One whose counters are a few numbers each. */
export type StateLimit = SliceLimit | BucketLimit;

/** Limits whose hits are taken together, all or none: conditional ones, and the most hits in fixed windows. */
export interface JointLimits {
  readonly limits: readonly (StateLimit | number)[];
}

/** The longest expiry of a counter: one that takes longer to become free is forgotten earlier. */
const MAX_SECONDS = 100 * 31_536_000;

/** Numbers of the state of one counter, which are all zero in a new one. */
export function stateSize(kind: StateLimit["kind"]): number {
  return kind === "slices" ? SLICE_STATE_SIZE : BUCKET_STATE_SIZE;
}

/**
 * Takes hits from the counter whose state starts at `at`. 0 asks whether one hit would pass, and a negative number gives
 * back. The time is in microseconds since the epoch.
 */
export function take(
  state: Float64Array,
  at: number,
  limit: StateLimit,
  nowUs: number,
  hits: number,
): Taken {
  return limit.kind === "slices"
    ? takeFromSlices(state, at, limit, nowUs, hits)
    : takeFromBucket(state, at, limit, nowUs, hits);
}

/** True if a counter was last changed after this time, in microseconds since the epoch: the clock was set back. */
export function isInFuture(
  state: Float64Array,
  at: number,
  limit: StateLimit,
  nowUs: number,
): boolean {
  const changedUs = limit.kind === "slices" ? (state[at] ?? 0) * limit.sliceUs : state[at + 1] ?? 0;
  return changedUs > nowUs;
}

/** The longest time until all of a counter is free again, in whole seconds. */
export function longestSeconds(limit: ConditionalLimit): number {
  return Math.min(MAX_SECONDS, Math.ceil(longestUs(limit) / 1_000_000));
}

function longestUs(limit: ConditionalLimit): number {
  switch (limit.kind) {
    case "slices":
      return (SLICES + 1) * limit.sliceUs;
    case "bucket":
      return (limit.burst * limit.partsPerHit / Math.max(1, limit.partsPerTick) + 1) * limit.tickUs;
    case "leases":
      return limit.leaseUs + HELD_US;
  }
}
