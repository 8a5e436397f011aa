import type { Clock } from "../base/clock.ts";

/** Dependencies of the parts of a shared cache. */
export interface SharedCacheOptions {
  /** Longest time from asking to the answer, and longest time to connect, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** A number from 0 to below 1, for the jitter of waits. */
  readonly random: () => number;
  /** Called with the milliseconds from each write to its last reply, with fractions. */
  readonly roundTrip?: ((ms: number) => void) | undefined;
}

/** Reports of one node, or of a cache that is one. */
export interface ConnectionEvents {
  /** Called at the first connection, and once an outage, with the reason. */
  readonly onConnection?: ((connected: boolean, reason: string) => void) | undefined;
}
