import type { AttemptStep } from "../../src/webhooks/deliveries/attempt.ts";
import type { WorkflowPoint } from "../../src/webhooks/workflows/run.ts";

/** A named place at which a process may die. */
export type KillPoint = `${"before" | "after"} ${AttemptStep}` | `execution ${WorkflowPoint}`;

/** Faults of a Weir in a test. No setting can ask for any of them. */
export interface WebhookFaults {
  /** The process ends by SIGKILL when it comes to that place for the nth time. */
  readonly kill?: { readonly at: KillPoint; readonly nth: number } | undefined;
  /** The process is stopped by SIGSTOP when it comes to that place for the nth time. */
  readonly stop?: { readonly at: KillPoint; readonly nth: number } | undefined;
  /** Time that the wall clock of the process is ahead. */
  readonly wallAheadMs?: number | undefined;
  /** The work on the store goes by a clock of which time can be skipped. */
  readonly isHurried?: boolean | undefined;
  /** Said to the database of the store when it is opened, such as `max_page_count = 100`. */
  readonly pragmas?: readonly string[] | undefined;
}

/** The last log line of a process before it is stopped. */
export const STOPPING = "stopping for the test";

/** The places around the steps of an attempt. */
export const ATTEMPT_POINTS: readonly KillPoint[] = [
  "before claim",
  "after claim",
  "before send",
  "after send",
  "before write_back",
  "after write_back",
];

/** The places in the work on an execution. */
export const EXECUTION_POINTS: readonly KillPoint[] = [
  "execution claimed",
  "execution before_step",
  "execution after_step",
  "execution committed",
];
