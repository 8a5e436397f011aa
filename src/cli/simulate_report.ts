import type { ChangeKind, RequestChange, SimulatedDecision } from "../ratelimit/simulation.ts";
import type { SimulationTally } from "../ratelimit/simulation_tally.ts";
import type { TimedRequest } from "./request_lines.ts";

/** A decision that is shown: one that changes, or one over its limit where nothing is compared. */
export interface FoundDecision {
  /** Number of its line. */
  readonly line: number;
  readonly request: TimedRequest;
  readonly before: SimulatedDecision | undefined;
  readonly after: SimulatedDecision;
  readonly change: RequestChange | undefined;
}

/** What is known when every line was read. Times are in milliseconds since the epoch. */
export interface SimulationSummary {
  readonly tally: SimulationTally;
  readonly compares: boolean;
  /** Lines that were wrong. */
  readonly wrong: number;
  readonly first: number;
  readonly last: number;
  /** Requests before one that stands above them. */
  readonly back: {
    readonly requests: number;
    readonly mostMs: number;
    /** Those whose window may have lost its counters. */
    readonly tooLate: number;
  };
  /** Counters that had to give way. */
  readonly evicted: number;
  /** Requests that were found and not shown. */
  readonly hidden: Readonly<Record<ChangeKind, number>>;
}
