import { BUCKET_STATE_SIZE, bucketLimit, takeFromBucket } from "../../ratelimit/algorithms/bucket.ts";
import type { Endpoint } from "./records.ts";

/** Attempts that the receiver of an endpoint takes in a unit of time. */
export type EndpointRate = NonNullable<Endpoint["rateLimit"]>;

/**
 * The state of a rate over all processes: that of its bucket, and since when the bucket is empty, in milliseconds since
 * the epoch; 0 if it is not.
 */
export type RateState = readonly number[];

/** Attempts that may begin, and what they leave. */
interface TakenRate {
  readonly count: number;
  readonly state: RateState;
  /** When the next attempt may begin; absent where it may begin now. */
  readonly nextAt?: number | undefined;
  /** From when to when the bucket was empty, so that deliveries waited for it; absent if it was not. */
  readonly empty?: { readonly since: number; readonly until: number } | undefined;
}

const UNIT_SECONDS = { second: 1, minute: 60, hour: 3_600, day: 86_400 } as const;
const FULL: RateState = Array(BUCKET_STATE_SIZE + 1).fill(0);
/** After a token that was left for longer, as other things held deliveries up, the bucket counts as empty from then on. */
const LEFT_MS = 60_000;

/** Takes the attempts that are due from a rate, as many as it allows; a full bucket holds those of a unit. */
export function takeRate(
  { unit, requestsPerUnit }: EndpointRate,
  before: RateState = FULL,
  { due, now }: { readonly due: number; readonly now: number },
): TakenRate {
  const limit = bucketLimit({
    burst: requestsPerUnit,
    hitsPerUnit: requestsPerUnit,
    unitSeconds: UNIT_SECONDS[unit],
  });
  const since = before[BUCKET_STATE_SIZE] ?? 0;
  // A bucket is filled to the microsecond, and a wait is stored in whole milliseconds.
  const filledAt = Math.ceil((before[1] ?? 0) / 1_000);
  const tokenAt = filledAt + takeFromBucket(Float64Array.from(before), 0, limit, filledAt * 1_000, 0).retryMs;
  const empty = since > 0 && since <= now ? { since, until: Math.min(now, tokenAt) } : undefined;
  const state = Float64Array.from(before);
  const { available } = takeFromBucket(state, 0, limit, now * 1_000, 0);
  const count = Math.min(due, available);
  const { available: left, retryMs } = takeFromBucket(state, 0, limit, now * 1_000, count);
  const isLasting = empty !== undefined && now - tokenAt <= LEFT_MS;
  state[BUCKET_STATE_SIZE] = left > 0 ? 0 : isLasting ? since : now;
  return { count, state: [...state], nextAt: left > 0 ? undefined : now + retryMs, empty };
}
