import { setImmediate } from "node:timers";
import { settledWithin } from "../../base/wait.ts";
import { runExecution, type RunResult, type WorkflowRunOptions } from "./run.ts";
import { WorkflowShares } from "./shares.ts";
import { releaseClaims } from "../store/claims.ts";
import {
  type ClaimedExecution,
  claimExecutions,
  dueExecutions,
  type ExecutionQueue,
  MAX_COUNTED_BYTES,
  SUSPECT_VOIDS,
} from "../store/execution_claims.ts";
import { renewExecutionClaims } from "../store/executions.ts";
import type { WebhookStore } from "../store/store.ts";

/** What a runner works with. */
export interface WorkflowRunnerOptions extends WorkflowRunOptions {
  readonly store: WebhookStore;
  /** How many executions run at once; those that wait are not counted. */
  readonly maxRunning: number;
  /** How many bytes of inputs and results they hold; 64 MiB when absent. */
  readonly maxBytes?: number | undefined;
  /** Told of each execution that has ended; its event may have deliveries that are due. */
  readonly onEnd?: ((status: "succeeded" | "failed" | "cancelled") => void) | undefined;
}

/** Due rows are looked up at least this often. */
const LOOK_MS = 1_000;
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
/** An input of 1 MiB takes several of them in memory while it is sent. */
const MAX_BYTES = 64 * 1_048_576;
/** How much is claimed at once. */
const MOST_CLAIMED = 50;
const MOST_CLAIMED_BYTES = MAX_COUNTED_BYTES;
/** One so large begins in its own turn of the event loop: calls are answered in between. */
const LARGE_BYTES = 65_536;
/** How long the end waits for steps that were told to end. */
const ABORT_MS = 5_000;

interface Running {
  readonly claimId: string;
  readonly queue: ExecutionQueue;
  /** What its input and results are counted for. */
  bytes: number;
  readonly controller: AbortController;
  /** Settles when the work is over; never rejects. */
  readonly done: Promise<void>;
  isLost: boolean;
}

/**
 * Carries out executions: claims those that are due, as many as may run at once and in turn over workflows and
 * triggers, and works on each until it ends or has to wait. Several may work on a store that machines share, each with
 * claims of its own.
 */
export class WorkflowRunner {
  readonly #options: WorkflowRunnerOptions;
  readonly #running = new Map<string, Running>();
  readonly #shares: WorkflowShares;
  /** Claims that this process may hold without working on them. */
  #unused: readonly string[] = [];
  #state: "new" | "running" | "stopping" = "new";
  #looking: Promise<void> = Promise.resolve();
  #isLooking = false;
  #lookAgain = false;
  /** Whether more may be due than was claimed. */
  #isHot = false;
  #warned = false;
  /** Whether the last claims could not be prolonged. */
  #isBehind = false;
  #cancelLook = () => {};
  #cancelRenew = () => {};

  constructor(options: WorkflowRunnerOptions) {
    this.#options = options;
    this.#shares = new WorkflowShares({ runs: options.maxRunning, bytes: options.maxBytes ?? MAX_BYTES });
  }

  /** How many executions are in work. */
  get running(): number {
    return this.#running.size;
  }

  /** Begins to work. */
  start(): void {
    if (this.#state !== "new") return;
    this.#state = "running";
    this.#scheduleLook();
    this.#scheduleRenewal();
    this.wake();
  }

  /** Tells that an execution may be due: one that was just accepted, or cancelled. */
  wake(): void {
    if (this.#state !== "running") return;
    this.#lookAgain = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#looking = this.#look();
  }

  /**
   * Begins no further step, lets those in work run for so long and then ends them. What is not over goes back to the
   * store, and is due at once.
   */
  async stop(graceMs: number): Promise<void> {
    const { clock } = this.#options;
    this.#state = "stopping";
    this.#cancelLook();
    await this.#looking;
    if (graceMs > 0) await settledWithin(this.#allDone(), graceMs, clock);
    for (const { controller } of this.#running.values()) controller.abort();
    await settledWithin(this.#allDone(), ABORT_MS, clock);
    this.#cancelRenew();
    // Without an answer their leases end by themselves.
    await this.#giveBack().catch(() => {});
  }

  async #allDone(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #scheduleLook(): void {
    this.#cancelLook = this.#options.clock.after(LOOK_MS, () => {
      this.#scheduleLook();
      this.wake();
    });
  }

  #scheduleRenewal(): void {
    this.#cancelRenew = this.#options.clock.after(this.#isBehind ? LOOK_MS : RENEW_MS, () => {
      this.#scheduleRenewal();
      void this.keepClaims();
    });
  }

  /** One look after the other until nothing more can be claimed. */
  async #look(): Promise<void> {
    while (this.#lookAgain && this.#state === "running") {
      this.#lookAgain = false;
      this.#isHot = true;
      if (this.#shares.free.runs <= 0) break;
      const claimed = await this.#claim();
      for (const one of claimed) {
        this.#begin(one);
        if (one.bytes >= LARGE_BYTES) await new Promise((resolve) => setImmediate(resolve));
      }
      if (this.#isHot && claimed.length > 0) this.#lookAgain = true;
    }
    // In the same turn as the last question, so that no wake falls in between.
    this.#isLooking = false;
  }

  async #claim(): Promise<readonly ClaimedExecution[]> {
    const { store, clock, newId, logger } = this.#options;
    const now = clock.now();
    const claimIds: string[] = [];
    const newClaimId = () => claimIds[claimIds.push(newId()) - 1] ?? "";
    try {
      // They hide their executions from the look.
      await this.#giveBack();
      const due = await store.read(dueExecutions, now);
      this.#isHot = due.length > 0;
      const queues = this.#shares.claims(due, MOST_CLAIMED);
      const leaseUntil = now + LEASE_MS;
      const maxBytes = Math.min(this.#shares.free.bytes, MOST_CLAIMED_BYTES);
      const claimed = queues.length === 0
        ? []
        : await store.write(claimExecutions, { now, leaseUntil, newClaimId, queues, maxBytes, logger });
      this.#warned = false;
      return claimed;
    } catch (error) {
      // The store may have committed them before its answer was lost.
      this.#unused = [...this.#unused, ...claimIds];
      if (!this.#warned) {
        logger.warning("cannot look for executions that are due, it is tried again", { error });
      }
      this.#warned = true;
      return [];
    }
  }

  /** Releases unused claims, so that their executions do not wait for the end of a lease. */
  async #giveBack(): Promise<void> {
    if (this.#unused.length === 0) return;
    await this.#options.store.write(releaseClaims, this.#unused, this.#options.clock.now());
    this.#unused = [];
  }

  #begin(claimed: ClaimedExecution): void {
    const { claimId, execution, bytes } = claimed;
    const queue = queueOf(claimed);
    const controller = new AbortController();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const running: Running = { claimId, queue, bytes, controller, done, isLost: false };
    this.#running.set(claimId, running);
    this.#shares.add(queue, { runs: 1, bytes });
    const stops = {
      signal: controller.signal,
      isStopping: () => this.#state === "stopping",
      hasRoom: (more: number) => this.#hasRoom(running, more),
    };
    runExecution(claimed, this.#options, stops).then(
      (result) => this.#take(running, result),
      (error) =>
        this.#options.logger.error("the work on an execution broke off", { execution: execution.id, error }),
    ).finally(() => {
      this.#running.delete(claimId);
      this.#shares.add(queue, { runs: -1, bytes: -running.bytes });
      resolve();
      // Behind a suspect others may wait.
      if (this.#isHot || claimed.voids >= SUSPECT_VOIDS) this.wake();
    });
  }

  /** Counts a result that a run holds from now on; alone it may hold any. */
  #hasRoom(running: Running, bytes: number): boolean {
    running.bytes += bytes;
    this.#shares.add(running.queue, { runs: 0, bytes });
    return this.#shares.free.bytes >= 0 || this.#running.size === 1;
  }

  async #take({ claimId, isLost }: Running, result: RunResult): Promise<void> {
    const { store, clock, logger, onEnd } = this.#options;
    switch (result) {
      case "succeeded":
      case "failed":
      case "cancelled":
        onEnd?.(result);
        break;
      case "interrupted":
        if (isLost) break;
        try {
          await store.write(releaseClaims, [claimId], clock.now());
        } catch (error) {
          // Its lease ends by itself.
          logger.warning("cannot give an execution back, it is taken up when its lease is over", { error });
        }
        break;
      case "yielded":
        this.#isHot = true;
        break;
      case "waiting":
      case "lost":
        break;
    }
  }

  /**
   * Prolongs the claims of what is in work. Asked as well before claims are taken back whose lease is over: after a
   * clock has leapt, or the store was away for a while, work that goes on here would be among them. False when the
   * store cannot be asked.
   */
  async keepClaims(): Promise<boolean> {
    const { store, clock, logger } = this.#options;
    const claimIds = [...this.#running.keys()];
    this.#isBehind = false;
    if (claimIds.length === 0) return true;
    try {
      const held = new Set(await store.write(renewExecutionClaims, claimIds, clock.now() + LEASE_MS));
      for (const claimId of claimIds) if (!held.has(claimId)) this.#lose(claimId);
      return true;
    } catch (error) {
      this.#isBehind = true;
      logger.warning("cannot prolong the leases of executions, it is tried again", { error });
      return false;
    }
  }

  /** Somebody else may work on it by now: whatever it does here counts no more. */
  #lose(claimId: string): void {
    const running = this.#running.get(claimId);
    if (running === undefined) return;
    running.isLost = true;
    running.controller.abort();
  }
}

function queueOf({ execution: { workflow, triggerId, startedAt }, voids }: ClaimedExecution): ExecutionQueue {
  const began = startedAt === undefined ? "new" : "begun";
  return { workflow, triggerId, stage: voids > 0 ? "voided" : began, voids };
}
