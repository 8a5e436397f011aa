import type { Clock } from "../../base/clock.ts";
import type { Fetch } from "../../rest/mod.ts";
import type { TemplateScope } from "../model/template.ts";
import type { LimitCall } from "../model/limit_call.ts";

/** How one attempt of a step went. */
export type StepOutcome =
  /** Its result as JSON. */
  | { readonly kind: "done"; readonly result: string }
  /** For people; holds nothing of the request. */
  | { readonly kind: "failed"; readonly error: string }
  /** It is tried again at that time. */
  | { readonly kind: "again"; readonly dueAt: number; readonly error: string }
  /** It was ended by the signal, and nothing is known of it. */
  | { readonly kind: "interrupted" };

/** What a step is carried out with. */
export interface StepContext {
  readonly executionId: string;
  readonly scope: TemplateScope;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  /** How long the execution may still take. */
  readonly remainingMs: number;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
  readonly fetch: Fetch;
  readonly limit: LimitCall;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}
