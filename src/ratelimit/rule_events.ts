import type { Position } from "../base/problem.ts";

/** The kinds of events that a rule may report. */
export const LIMIT_EVENTS = ["over_limit", "near_limit"] as const;

/** The name of an event in rule files. */
export type LimitEvent = typeof LIMIT_EVENTS[number];

/** The substitutes for values of entries in events. */
export const REDACTIONS = ["hash", "omit"] as const;

/** A keyed hash of each value, or nothing. */
export type Redaction = typeof REDACTIONS[number];

/** The events of a rule. */
export interface RuleEvents {
  /** Of the rule. */
  readonly at: Position;
  readonly overLimit: boolean;
  readonly nearLimit: boolean;
  /** Undefined for events with the values. */
  readonly redact: Redaction | undefined;
}
