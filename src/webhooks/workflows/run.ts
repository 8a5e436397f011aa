import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { Logger } from "../../base/log.ts";
import { waitUnlessAborted } from "../../base/wait.ts";
import type { Fetch } from "../../rest/mod.ts";
import { byteLength } from "../../base/exact_json.ts";
import type { Execution, ExecutionStep } from "../model/records.ts";
import type { LimitCall } from "../model/limit_call.ts";
import type { Workflow, Workflows, WorkflowStep } from "../model/workflow.ts";
import { completion, type ExecutionEnd, storedError } from "../model/completion_event.ts";
import { WorkflowScope } from "./scope.ts";
import { runStep } from "./step.ts";
import type { StepOutcome } from "./step_context.ts";
import type { ClaimedExecution } from "../store/operations/execution_claims.ts";
import { cancelExecution, commitExecution, type ExecutionCommit } from "../store/operations/executions.ts";
import { StoreError, type WebhookStore } from "../store/store.ts";

/** Places at which a test may end everything. */
export type WorkflowPoint = "claimed" | "before_step" | "after_step" | "committed";

/** Options of `runExecution`. */
export interface WorkflowRunOptions {
  readonly store: WebhookStore;
  readonly workflows: Workflows;
  readonly fetch: Fetch;
  readonly limit: LimitCall;
  readonly clock: Clock;
  readonly random: () => number;
  readonly newId: () => string;
  readonly env: Readonly<Record<string, string>>;
  readonly logger: Logger;
  readonly onStep?: ((report: StepReport) => void) | undefined;
  /** Called at each point; what it throws ends the work on the execution, which keeps its claim. */
  readonly atStep?: ((point: WorkflowPoint, executionId: string) => void | Promise<void>) | undefined;
}

/** One attempt of a step, for metrics and spans. */
export interface StepReport {
  readonly executionId: string;
  readonly workflow: string;
  readonly step: string;
  readonly kind: WorkflowStep["kind"];
  readonly attempt: number;
  readonly result: StepOutcome["kind"];
  /** Wall clock time in milliseconds since the Unix epoch. */
  readonly startedAt: number;
  readonly tookMs: number;
}

/** The end of work on an execution: with its final status, until it is due or has room again, or before either. */
type RunResult = "succeeded" | "failed" | "cancelled" | "waiting" | "yielded" | "lost" | "interrupted";

/** The signals that stop work on an execution early. */
interface RunStops {
  /** Aborts the running step, without a result. */
  readonly signal: AbortSignal;
  readonly isStopping: () => boolean;
  /** Counts the bytes of a result; false when the execution has to continue later, loaded from the store again. */
  readonly hasRoom: (bytes: number) => boolean;
}

/** After so many void claims at one step the execution fails: the step may end each process that runs it. */
const MAX_EXPIRED_CLAIMS = 20;

const FIRST_COMMIT_WAIT_MS = 100;
const LONGEST_COMMIT_WAIT_MS = 5_000;

/** The work on one claimed execution. */
export class WorkflowRun {
  readonly #options: WorkflowRunOptions;
  readonly #stops: RunStops;
  readonly #claimed: ClaimedExecution;
  #execution: Execution;
  #cancelRequested: boolean;

  constructor(claimed: ClaimedExecution, options: WorkflowRunOptions, stops: RunStops) {
    this.#claimed = claimed;
    this.#options = options;
    this.#stops = stops;
    this.#execution = claimed.execution;
    this.#cancelRequested = claimed.execution.cancelRequested;
  }

  /** Runs until the execution has ended, has to wait, or is stopped. */
  async run(): Promise<RunResult> {
    await this.#at("claimed");
    let workflow: Workflow;
    try {
      workflow = this.#options.workflows.parse(this.#claimed.version);
    } catch (error) {
      return await this.#fail(`its workflow cannot be read: ${errorText(error)}`);
    }
    if (this.#cancelRequested) return await this.#endCancelled();
    if (this.#stops.isStopping()) return "interrupted";
    if (this.#claimed.queue.expiredClaims >= MAX_EXPIRED_CLAIMS) return await this.#endVoided(workflow);
    return await this.#steps(workflow);
  }

  async #steps(workflow: Workflow): Promise<RunResult> {
    const { clock, env } = this.#options;
    const { startedAt = clock.now(), deadlineAt = startedAt + workflow.timeoutMs } = this.#execution;
    this.#execution = { ...this.#execution, deadlineAt };
    const scope = new WorkflowScope(this.#execution, env, startedAt);
    for (const { name, result } of this.#claimed.steps) if (result !== undefined) scope.add(name, result);
    for (let index = this.#claimed.steps.length;; index++) {
      if (this.#cancelRequested) return await this.#endCancelled();
      if (this.#isOverdue()) return await this.#endOverdue(workflow, index);
      if (this.#stops.isStopping() || this.#stops.signal.aborted) return "interrupted";
      const step = workflow.steps[index];
      if (step === undefined) return await this.#fail("its workflow has no more steps");
      const result = await this.#step(workflow, { step, index, scope });
      if (result !== undefined) return result;
    }
  }

  /** One attempt of a step; a result ends the work. */
  async #step(
    workflow: Workflow,
    { step, index, scope }: { step: WorkflowStep; index: number; scope: WorkflowScope },
  ): Promise<RunResult | undefined> {
    const { clock } = this.#options;
    await this.#at("before_step");
    const startedAt = clock.now();
    const begin = clock.elapsed();
    const outcome = await this.#attempt(step, scope);
    this.#tell(step, { result: outcome.kind, startedAt, tookMs: clock.elapsed() - begin });
    await this.#at("after_step");
    const attempts = this.#execution.stepAttempts + 1;
    const row = { index, name: step.name, kind: step.kind, attempts, startedAt, finishedAt: clock.now() };
    switch (outcome.kind) {
      case "interrupted":
        return "interrupted";
      case "skipped":
        return await this.#next(workflow, scope, { ...row, status: "skipped", attempts: 0 });
      case "done": {
        const { result } = outcome;
        scope.add(step.name, result);
        return await this.#next(workflow, scope, { ...row, status: "succeeded", result });
      }
      case "failed": {
        const { error } = outcome;
        if (this.#isOverdue()) return await this.#endOverdue(workflow, index);
        const failed: ExecutionStep = { ...row, status: "failed", error };
        return await this.#fail(`step "${step.name}" failed: ${error}`, failed);
      }
      case "again":
        if (this.#isOverdue()) return await this.#endOverdue(workflow, index);
        return await this.#wait(attempts, outcome);
    }
  }

  /** Goes on behind a step that succeeded or was skipped. */
  async #next(workflow: Workflow, scope: WorkflowScope, step: ExecutionStep): Promise<RunResult | undefined> {
    this.#execution = { ...this.#execution, stepAttempts: 0 };
    if (step.index + 1 === workflow.steps.length) {
      return await this.#end({ status: "succeeded", output: scope.last }, step);
    }
    const keepClaim = this.#stops.hasRoom(byteLength(step.result ?? ""));
    if (!await this.#commit({ ...this.#going(0, this.#options.clock.now()), step, keepClaim })) {
      return this.#stopped();
    }
    await this.#at("committed");
    return keepClaim ? undefined : "yielded";
  }

  async #attempt(step: WorkflowStep, scope: WorkflowScope): Promise<StepOutcome> {
    const { fetch, limit, clock, random, logger } = this.#options;
    const { id, deadlineAt = Infinity, stepAttempts } = this.#execution;
    const { signal } = this.#stops;
    const facts = { executionId: id, attempt: stepAttempts + 1, remainingMs: deadlineAt - clock.now() };
    try {
      return await runStep(step, { ...facts, scope, signal, fetch, limit, clock, random });
    } catch (error) {
      logger.error("Step of a workflow failed with an internal error", {
        execution: id,
        step: step.name,
        error,
      });
      return { kind: "failed", error: "an internal error; see the log" };
    }
  }

  /** Releases the execution until the step is due again, or its timeout. */
  async #wait(attempts: number, { dueAt, error }: { dueAt: number; error: string }): Promise<RunResult> {
    const { store, clock } = this.#options;
    const { id, deadlineAt = Infinity } = this.#execution;
    const { change } = this.#going(attempts, Math.min(dueAt, deadlineAt));
    const waiting = { ...change, error: storedError(error) };
    if (!await this.#commit({ change: waiting, keepClaim: false })) return this.#stopped();
    // A cancellation during the step could not make it due.
    if (this.#cancelRequested) await store.write(cancelExecution, id, clock.now());
    return "waiting";
  }

  #going(stepAttempts: number, dueAt: number): Pick<ExecutionCommit, "change"> {
    const { deadlineAt } = this.#execution;
    return { change: { status: "running", stepAttempts, deadlineAt, dueAt } };
  }

  #isOverdue(): boolean {
    return this.#options.clock.now() >= (this.#execution.deadlineAt ?? Infinity);
  }

  async #endOverdue({ timeoutMs, steps }: Workflow, index: number): Promise<RunResult> {
    const where = steps[index] === undefined ? "" : `; it was at step "${steps[index].name}"`;
    return await this.#fail(`it was not finished within ${timeoutMs / 1_000} s${where}`);
  }

  async #endVoided({ steps }: Workflow): Promise<RunResult> {
    const name = steps[this.#claimed.steps.length]?.name ?? "";
    return await this.#fail(
      `step "${name}" did not end in ${MAX_EXPIRED_CLAIMS} attempts: each process that ran it ended before`,
    );
  }

  async #endCancelled(): Promise<RunResult> {
    return await this.#end({ status: "cancelled", error: "it was cancelled" });
  }

  async #fail(error: string, step?: ExecutionStep): Promise<RunResult> {
    return await this.#end({ status: "failed", error }, step);
  }

  async #end(end: ExecutionEnd, step?: ExecutionStep): Promise<RunResult> {
    const { clock, newId } = this.#options;
    const { change, event } = completion(this.#execution, end, { now: clock.now(), eventId: newId() });
    if (!await this.#commit({ change, event, step, keepClaim: false })) return this.#stopped();
    await this.#at("committed");
    return end.status;
  }

  /** Retries until it is written, since a step is not repeated; false when the claim was lost. */
  async #commit(change: Omit<ExecutionCommit, "executionId" | "claimId" | "now">): Promise<boolean> {
    const { store, clock, logger } = this.#options;
    const executionId = this.#execution.id;
    for (let waitMs = FIRST_COMMIT_WAIT_MS;; waitMs = Math.min(2 * waitMs, LONGEST_COMMIT_WAIT_MS)) {
      try {
        // The event of an end has the time of the end.
        const now = change.change.finishedAt ?? clock.now();
        const options = { ...change, executionId, claimId: this.#claimed.claimId, now };
        const written = await store.write(commitExecution, options);
        if (written !== undefined) this.#cancelRequested = written.cancelRequested;
        return written !== undefined;
      } catch (error) {
        const { signal } = this.#stops;
        if (!(error instanceof StoreError) || error.code === "closed" || signal.aborted) throw error;
        logger.warning("Cannot write an execution; retrying", { execution: executionId, error });
        await waitUnlessAborted(waitMs, clock, signal);
      }
    }
  }

  #tell(
    { name: step, kind }: WorkflowStep,
    report: Pick<StepReport, "result" | "startedAt" | "tookMs">,
  ): void {
    const { id: executionId, workflow, stepAttempts } = this.#execution;
    this.#options.onStep?.({ executionId, workflow, step, kind, attempt: stepAttempts + 1, ...report });
  }

  #stopped(): RunResult {
    return this.#stops.signal.aborted ? "interrupted" : "lost";
  }

  async #at(point: WorkflowPoint): Promise<void> {
    await this.#options.atStep?.(point, this.#execution.id);
  }
}
