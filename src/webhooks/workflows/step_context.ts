import type { Clock } from "../../base/clock.ts";
import type { Fetch } from "../../rest/mod.ts";
import type { TemplateScope } from "../model/template.ts";
import type { LimitCall } from "../model/limit_call.ts";

/** The outcome of one attempt of a step. */
export type StepOutcome =
  /** Its result as JSON. */
  | { readonly kind: "done"; readonly result: string }
  /** Its condition does not hold. */
  | { readonly kind: "skipped" }
  /** For people; holds nothing of the request. */
  | { readonly kind: "failed"; readonly error: string }
  /** It is retried at that time. */
  | { readonly kind: "again"; readonly dueAt: number; readonly error: string }
  /** It was aborted, and its result is unknown. */
  | { readonly kind: "interrupted" };

/** Options of `runStep`. */
export interface StepContext {
  readonly executionId: string;
  readonly scope: TemplateScope;
  /** From 1. */
  readonly attempt: number;
  /** Of the execution. */
  readonly remainingMs: number;
  readonly signal: AbortSignal;
  readonly fetch: Fetch;
  readonly limit: LimitCall;
  readonly clock: Clock;
  readonly random: () => number;
}
