import { setImmediate } from "node:timers";
import { byteLength } from "../../base/exact_json.ts";
import { type Lease, Leases } from "../../threads/leases.ts";
import { WakeLoop } from "../../threads/wake_loop.ts";
import type { Execution } from "../model/records.ts";
import type { Acceptance, NewExecution, WriteExecution } from "../store/operations/accept.ts";
import { releaseClaims } from "../store/operations/claims.ts";
import {
  type ClaimedExecution,
  claimExecutions,
  dueExecutions,
  type ExecutionQueue,
  MAX_COUNTED_BYTES,
  type QueueClaim,
  SUSPECT_EXPIRED_CLAIMS,
} from "../store/operations/execution_claims.ts";
import { renewExecutionClaims } from "../store/operations/executions.ts";
import { WorkflowRun, type WorkflowRunOptions } from "./run.ts";
import { WorkflowShares } from "./shares.ts";

/** Options of `WorkflowRunner`. */
export interface WorkflowRunnerOptions extends WorkflowRunOptions {
  /** Executions that run concurrently; waiting ones are not counted. */
  readonly maxRunning: number;
  /** Bytes of inputs and results that they hold; 64 MiB when absent. */
  readonly maxBytes?: number | undefined;
  /** Called for each execution that has ended; its event may have due deliveries. */
  readonly onEnd?: ((status: "succeeded" | "failed" | "cancelled") => void) | undefined;
}

/** Due rows are looked up at least this often. */
const LOOK_MS = 1_000;
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
/** An input of 1 MiB takes several MiB while it is sent. */
const MAX_BYTES = 64 * 1_048_576;
/** Executions that are claimed per round. */
const MOST_CLAIMED = 50;
const MOST_CLAIMED_BYTES = MAX_COUNTED_BYTES;
/** An execution this large begins in its own turn of the event loop, so that calls are answered in between. */
const LARGE_BYTES = 65_536;

interface Running {
  readonly claimed: ClaimedExecution;
  /** The queue for which its input and results are counted. */
  bytes: number;
}

/**
 * Runs executions: claims those that are due, as many as may run concurrently and in turn over workflows and triggers, and
 * works on each until it ends or has to wait. Several runners may share a store, each with its own claims.
 */
export class WorkflowRunner {
  readonly #options: WorkflowRunnerOptions;
  readonly #shares: WorkflowShares;
  readonly #leases: Leases<Running>;
  readonly #loop: WakeLoop;
  /** True if more may be due than was claimed. */
  #isHot = false;
  /** True if executions wait in the store for a place, which new ones must not take. */
  #hasWaiting = true;
  #isFailureLogged = false;

  constructor(options: WorkflowRunnerOptions) {
    const { store, clock, newId, logger, maxRunning, maxBytes = MAX_BYTES } = options;
    this.#options = options;
    this.#shares = new WorkflowShares({ runs: maxRunning, bytes: maxBytes });
    this.#leases = new Leases({
      clock,
      newId,
      lengthMs: () => LEASE_MS,
      renewMs: RENEW_MS,
      renew: (claimIds, leaseUntil) => store.write(renewExecutionClaims, claimIds, leaseUntil),
      release: (claimIds, now) => store.write(releaseClaims, claimIds, now),
      onError: (error) => logger.warning("Cannot renew the leases of executions; retrying", { error }),
      onEnd: ({ claimed: { queue }, bytes }) => {
        this.#shares.add(queue, { runs: -1, bytes: -bytes });
        // Behind a suspect others may wait.
        if (this.#isHot || queue.expiredClaims >= SUSPECT_EXPIRED_CLAIMS) this.wake();
      },
    });
    this.#loop = new WakeLoop({ clock, pollMs: LOOK_MS, round: () => this.#round() });
  }

  get running(): number {
    return this.#leases.size;
  }

  start(): void {
    this.#leases.start();
    this.#loop.start();
  }

  /** An execution may be due: one that was just accepted, or cancelled. */
  wake(): void {
    this.#loop.wake();
  }

  /** Writes a new execution and begins it, if it may begin immediately; otherwise it waits in the store for its turn. */
  async accept(execution: NewExecution, write: WriteExecution): Promise<Acceptance<Execution>> {
    const { workflow, triggerId, versionId, text, input } = execution;
    const queue: ExecutionQueue = { workflow, triggerId, stage: "new", expiredClaims: 0 };
    const bytes = byteLength(input);
    if (text === undefined || !this.#mayBegin(queue, bytes)) {
      this.#hasWaiting = true;
      const acceptance = await write(execution);
      this.wake();
      return acceptance;
    }
    this.#shares.add(queue, { runs: 1, bytes });
    try {
      return await this.#leases.claim(async ({ newClaimId, leaseUntil }) => {
        const claimId = newClaimId();
        const acceptance = await write({ ...execution, claim: { id: claimId, leaseUntil } });
        if (acceptance.kind === "new") {
          const version = { id: versionId, workflow, text };
          this.#begin({ execution: acceptance.value, queue, claimId, version, steps: [], bytes });
        }
        return acceptance;
      });
    } catch (error) {
      // The next look releases the claim; until then no further one can be left over.
      this.#hasWaiting = true;
      throw error;
    } finally {
      this.#shares.add(queue, { runs: -1, bytes: -bytes });
    }
  }

  /**
   * Begins no further step, lets those in flight run for so long and then aborts them. What is not over goes back to the
   * store, and is due immediately.
   */
  async stop(graceMs: number): Promise<void> {
    await this.#loop.stop();
    // Claims that cannot be released expire.
    await this.#leases.stop(graceMs).catch(() => {});
  }

  /**
   * Renews the claims of what is in flight, also before expired claims are taken back: after a step of the clock, or an
   * outage of the store, they would be among them. False when the store cannot.
   */
  async keepClaims(): Promise<boolean> {
    return await this.#leases.renew();
  }

  async #round(): Promise<boolean> {
    this.#isHot = true;
    if (this.#shares.free.runs <= 0) return false;
    const claimed = await this.#claim();
    for (const one of claimed) {
      this.#begin(one);
      if (one.bytes >= LARGE_BYTES) await new Promise((resolve) => setImmediate(resolve));
    }
    return this.#isHot && claimed.length > 0;
  }

  async #claim(): Promise<readonly ClaimedExecution[]> {
    const { store, clock, logger } = this.#options;
    try {
      // They hide their executions from the look.
      await this.#leases.releaseUnused();
      const due = await store.read(dueExecutions, clock.now());
      this.#isHot = due.length > 0;
      const queues = this.#shares.claims(due, MOST_CLAIMED);
      const maxBytes = Math.min(this.#shares.free.bytes, MOST_CLAIMED_BYTES);
      const claimed = queues.length === 0
        ? []
        : await this.#leases.claim((terms) =>
          store.write(claimExecutions, { ...terms, queues, maxBytes, logger })
        );
      this.#hasWaiting = due.length > queues.length || !queues.every((queue) => isEmptied(queue, claimed));
      this.#isFailureLogged = false;
      return claimed;
    } catch (error) {
      if (!this.#isFailureLogged) logger.warning("Cannot look for due executions; retrying", { error });
      this.#isFailureLogged = true;
      return [];
    }
  }

  #mayBegin(queue: ExecutionQueue, bytes: number): boolean {
    if (!this.#loop.isRunning || this.#hasWaiting || bytes >= LARGE_BYTES) return false;
    const [claim] = this.#shares.claims([{ ...queue, dueAt: 0 }], 1);
    return claim !== undefined && bytes <= claim.maxBytes;
  }

  #begin(claimed: ClaimedExecution): void {
    const { claimId, execution, bytes } = claimed;
    const running: Running = { claimed, bytes };
    this.#shares.add(claimed.queue, { runs: 1, bytes });
    this.#leases.run(claimId, running, execution.leaseUntil ?? Infinity, async (lease) => {
      try {
        return await this.#run(running, lease);
      } catch (error) {
        this.#options.logger.error("Work on an execution failed", { execution: execution.id, error });
        return false;
      }
    });
  }

  /** Answers whether the claim is to be released. */
  async #run(running: Running, { signal }: Lease): Promise<boolean> {
    const { store, clock, onEnd } = this.#options;
    const isStopping = () => !this.#loop.isRunning;
    const hasRoom = (bytes: number) => this.#hasRoom(running, bytes);
    const result = await new WorkflowRun(running.claimed, this.#options, { signal, isStopping, hasRoom })
      .run();
    if (result === "succeeded" || result === "failed" || result === "cancelled") onEnd?.(result);
    if (result === "yielded") this.#isHot = true;
    if (result !== "interrupted") return false;
    // Others may go on with it while the rest of a stopping process is awaited.
    if (!signal.aborted) {
      await store.write(releaseClaims, [running.claimed.claimId], clock.now()).catch(() => {});
    }
    return true;
  }

  /** Counts a result that a run holds from now on; alone it may hold any. */
  #hasRoom(running: Running, bytes: number): boolean {
    running.bytes += bytes;
    this.#shares.add(running.claimed.queue, { runs: 0, bytes });
    return this.#shares.free.bytes >= 0 || this.#leases.size === 1;
  }
}

/** True if a queue had fewer executions than might be claimed. */
function isEmptied(
  { max, workflow, triggerId, stage, expiredClaims }: QueueClaim,
  claimed: readonly ClaimedExecution[],
) {
  const ofQueue = claimed.filter(({ queue }) =>
    queue.workflow === workflow && queue.triggerId === triggerId && queue.stage === stage &&
    queue.expiredClaims === expiredClaims
  );
  return ofQueue.length < max;
}
