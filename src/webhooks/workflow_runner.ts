import { settledWithin } from "../base/wait.ts";
import { type ClaimedExecution, type DeliveryStore, type ExecutionStore, SUSPECT_VOIDS } from "./store.ts";
import { runExecution, type RunResult, type WorkflowRunOptions } from "./workflow_run.ts";

/** What a runner works with. */
export interface WorkflowRunnerOptions extends WorkflowRunOptions {
  readonly store: ExecutionStore & Pick<DeliveryStore, "releaseClaims">;
  /** How many executions run at once; those that wait are not counted. */
  readonly maxRunning: number;
  /** Told of each execution that has ended; its event may have deliveries that are due. */
  readonly onEnd?: ((status: "succeeded" | "failed" | "cancelled") => void) | undefined;
}

/** Due rows are looked up at least this often. */
const LOOK_MS = 1_000;
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
/** How many executions are claimed at once: their inputs and results are in memory from then on. */
const MOST_CLAIMED = 50;
/** How long the end waits for steps that were told to end. */
const ABORT_MS = 5_000;

interface Running {
  readonly claimId: string;
  readonly controller: AbortController;
  /** Settles when the work is over; never rejects. */
  readonly done: Promise<void>;
  isLost: boolean;
}

/**
 * Carries out executions: claims those that are due, as many as may run at once, and works on each until it ends or has
 * to wait. Several may work on a store that machines share, each with claims of its own.
 */
export class WorkflowRunner {
  readonly #options: WorkflowRunnerOptions;
  readonly #running = new Map<string, Running>();
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
      const free = Math.min(this.#options.maxRunning - this.#running.size, MOST_CLAIMED);
      this.#isHot = free <= 0;
      if (free <= 0) break;
      const claimed = await this.#claim(free);
      this.#isHot = claimed.length === free;
      for (const one of claimed) this.#begin(one);
      if (this.#isHot) this.#lookAgain = true;
    }
    // In the same turn as the last question, so that no wake falls in between.
    this.#isLooking = false;
  }

  async #claim(max: number): Promise<readonly ClaimedExecution[]> {
    const { store, clock, newId, logger } = this.#options;
    const now = clock.now();
    try {
      const claimed = await store.claimExecutions({
        now,
        leaseUntil: now + LEASE_MS,
        newClaimId: newId,
        max,
      });
      this.#warned = false;
      return claimed;
    } catch (error) {
      if (!this.#warned) {
        logger.warning("cannot look for executions that are due, it is tried again", { error });
      }
      this.#warned = true;
      return [];
    }
  }

  #begin(claimed: ClaimedExecution): void {
    const { claimId, execution } = claimed;
    const controller = new AbortController();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const running: Running = { claimId, controller, done, isLost: false };
    this.#running.set(claimId, running);
    const stops = { signal: controller.signal, isStopping: () => this.#state === "stopping" };
    runExecution(claimed, this.#options, stops).then(
      (result) => this.#take(running, result),
      (error) =>
        this.#options.logger.error("the work on an execution broke off", { execution: execution.id, error }),
    ).finally(() => {
      this.#running.delete(claimId);
      resolve();
      // Behind a suspect others may wait.
      if (this.#isHot || claimed.voids >= SUSPECT_VOIDS) this.wake();
    });
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
          await store.releaseClaims([claimId], clock.now());
        } catch (error) {
          // Its lease ends by itself.
          logger.warning("cannot give an execution back, it is taken up when its lease is over", { error });
        }
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
      const held = new Set(await store.renewExecutionClaims(claimIds, clock.now() + LEASE_MS));
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
