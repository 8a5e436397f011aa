import type { ExecutionChange } from "../model/completion_event.ts";
import type { Execution, ExecutionStep, NewEvent, WorkflowVersion } from "../model/records.ts";

/** An execution to be worked on. */
export interface ClaimedExecution {
  readonly execution: Execution;
  readonly claimId: string;
  readonly version: WorkflowVersion;
  /** The steps that are over, in their order. */
  readonly steps: readonly ExecutionStep[];
  /** How often a claim of it was void since anything was written of it: whoever had it has ended in its next step. */
  readonly voids: number;
  /** The input and the results of its steps, as `MAX_COUNTED_BYTES` counts them. */
  readonly bytes: number;
}

/** Executions of one trigger of a workflow at one stage: they are scheduled as one queue. */
export interface ExecutionQueue {
  readonly workflow: string;
  readonly triggerId: string;
  /** Whether they began; `voided` are those whose claims were void since anything was written of them. */
  readonly stage: "new" | "begun" | "voided";
  /** How many claims of each were void. */
  readonly voids: number;
}

/** A queue with executions that are due and unclaimed. */
export interface DueQueue extends ExecutionQueue {
  /** When the first of them was due. */
  readonly dueAt: number;
}

/** How much of a queue may be claimed. */
export interface QueueClaim extends ExecutionQueue {
  readonly max: number;
  readonly maxBytes: number;
}

/** An execution counts for at most so many bytes, so that every one fits into an idle service. */
export const MAX_COUNTED_BYTES = 8 * 1_048_576;

/** Executions with so many void claims are suspects: they are claimed after all others, one at a time. */
export const SUSPECT_VOIDS = 3;

/** Running workflows. */
export interface ExecutionStore {
  /** Keeps a text of a workflow; one that is there already stays. */
  saveWorkflowVersion(version: WorkflowVersion): Promise<void>;
  /** The queues with executions that are due and unclaimed, in no order. */
  dueExecutions(now: number): Promise<readonly DueQueue[]>;
  /**
   * Claims executions of these queues, queue by queue, those due longest first, of suspects at most one at any time. A queue ends before the first execution that does not fit into
   * its bytes, or into those of all. An execution whose workflow's text is gone fails instead, with its event.
   */
  claimExecutions(options: {
    readonly now: number;
    readonly leaseUntil: number;
    readonly newClaimId: () => string;
    readonly queues: readonly QueueClaim[];
    /** Of all queues together. */
    readonly maxBytes: number;
  }): Promise<readonly ClaimedExecution[]>;
  /** Prolongs claims; answers those that are still held. */
  renewExecutionClaims(claimIds: readonly string[], leaseUntil: number): Promise<readonly string[]>;
  /**
   * Writes a step that is over and the state after it; with `event` (of a final status) that event and its deliveries
   * as well. With `keepClaim` the work goes on under the same claim. Answers nothing when the claim is no longer
   * held, in which case nothing is changed; else whether cancelling was asked for.
   */
  commitExecution(options: {
    readonly executionId: string;
    readonly claimId: string;
    readonly now: number;
    readonly step?: ExecutionStep | undefined;
    readonly change: ExecutionChange;
    readonly event?: NewEvent | undefined;
    readonly keepClaim: boolean;
  }): Promise<{ readonly cancelRequested: boolean } | undefined>;
  /** The text of a workflow that is kept; nothing when there is none. */
  findWorkflowVersion(id: string): Promise<WorkflowVersion | undefined>;
  /** Asks that an execution end; it is due at once. False when it has ended, nothing when there is none. */
  cancelExecution(id: string, now: number): Promise<boolean | undefined>;
}
