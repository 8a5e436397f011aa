import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { Dispatcher, type DispatcherOptions } from "../deliveries/dispatcher.ts";
import { type SharedFigures, storeGauges, type WebhookFigures } from "./metrics.ts";
import { WorkflowRunner, type WorkflowRunnerOptions } from "../workflows/runner.ts";
import { voidClaims } from "../store/claims.ts";
import { removeFinished } from "../store/retention.ts";
import type { WebhookStore } from "../store/store.ts";

/** The right to do the work of a store. */
export interface TakenWork {
  /** Whether nobody else has it; claims that others have are void then. */
  readonly isSole: boolean;
  /** Whether it is still held; asked several times a second. */
  keep(): boolean;
  /** Gives it up. */
  release(): void;
}

/** What deliveries and workflows are worked on with. */
export interface WebhookWorkParts
  extends Omit<DispatcherOptions, "store" | "at">, Omit<WorkflowRunnerOptions, "store" | "at"> {
  readonly store: WebhookStore;
  /** Takes over the work of the store; nothing while another process alone has it. */
  readonly takeLock: () => TakenWork | undefined;
  /** The time of all that is stored. */
  readonly clock: Clock;
  readonly newId: () => string;
  readonly logger: Logger;
  /** How long finished work is kept. */
  readonly retentionMs: number;
  /** How long commits took since the last call, in milliseconds. */
  readonly takeCommitTimes?: (() => readonly number[]) | undefined;
  /** How a store that several machines share stands. */
  readonly sharedFigures?: (() => SharedFigures) | undefined;
  /** Called with the reason when another process has taken the lock and voided the claims; all work has to end. */
  readonly onLockLost?: ((state: string) => void) | undefined;
  /** Called around each step of an attempt. */
  readonly atAttempt?: DispatcherOptions["at"];
  /** Called around each step of a workflow. */
  readonly atStep?: WorkflowRunnerOptions["at"];
}

/** How often a process tries to take the lock, and checks that it still holds it. */
const LOCK_MS = 250;
/** How often what is too old is removed, and how many rows at once. */
const SWEEP_MS = 60_000;
const SWEPT_ROWS = 500;
/** How often what removals have left is gone on with. */
const CLEAR_MS = 1_000;
/** How often it is said that the work cannot be taken over. */
const TELL_MS = 10_000;
/** Attempts whose time is kept between two takes. */
const MAX_TIMES = 10_000;

/**
 * The part that only one process does at a time where the store is a file: deliveries, workflows and the removal of old
 * work. It begins once the lock of the store is had. Of a store that several machines share every process has it.
 */
export class WebhookWork {
  readonly #parts: WebhookWorkParts;
  readonly #ended = new Map<string, number>();
  #times: number[] = [];
  #lock: TakenWork | undefined;
  #dispatcher: Dispatcher | undefined;
  #runner: WorkflowRunner | undefined;
  #isStopping = false;
  /** By the clock's `elapsed`. */
  #nextTell = -Infinity;
  #taking: Promise<void> = Promise.resolve();
  #sweeping: Promise<void> = Promise.resolve();
  #clearing: Promise<void> = Promise.resolve();
  #cancelTake = () => {};
  #cancelKeep = () => {};
  #cancelClear = () => {};
  #cancelSweep = () => {};

  constructor(parts: WebhookWorkParts) {
    this.#parts = parts;
  }

  /** Begins to look for the lock. */
  start(): void {
    this.#taking = this.#take();
  }

  /** Whether the lock is had and the work has begun. */
  get isWorking(): boolean {
    return this.#dispatcher !== undefined && !this.#isStopping;
  }

  /** How many attempts of an endpoint run; nothing where other processes make them, or some of them. */
  inFlight(endpointId: string): number | undefined {
    return this.#lock?.isSole === true ? this.#dispatcher?.inFlight(endpointId) : undefined;
  }

  /** Deliveries became due, of these endpoints or of any, or endpoints changed. */
  wakeDispatcher(endpointIds?: readonly string[]): void {
    this.#dispatcher?.wake(endpointIds);
  }

  /** Executions became due. */
  wakeRunner(): void {
    this.#runner?.wake();
  }

  /** What was counted since the start, and the durations since the last call. */
  figures(): WebhookFigures {
    const counted = this.#dispatcher?.figures;
    const shared = this.#parts.sharedFigures?.();
    const durations = { attempt_time: this.#times, commit_time: this.#parts.takeCommitTimes?.() ?? [] };
    this.#times = [];
    return {
      counters: {
        ...prefixed("attempts", Object.entries(counted?.attempts ?? {})),
        ...prefixed("executions_ended", this.#ended),
        lost_claims: counted?.lostClaims ?? 0,
        expired_claims: counted?.expiredClaims ?? 0,
        store_errors: counted?.storeErrors ?? 0,
        store_repeats: shared?.repeats ?? 0,
      },
      gauges: {
        attempts_in_flight: this.#dispatcher?.running ?? 0,
        executions_in_work: this.#runner?.running ?? 0,
        dispatching: this.isWorking ? 1 : 0,
        clock_offset_seconds: (shared?.wallAheadMs ?? 0) / 1_000,
      },
      durations,
      note: shared?.problem,
    };
  }

  /** What the store tells of itself. */
  async storeGauges(store: WebhookStore): Promise<Record<string, number>> {
    const now = this.#parts.clock.now();
    return storeGauges(await store.metrics(now), now);
  }

  /** Lets attempts and steps run for so long, and gives the lock back. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    this.#cancelTake();
    await this.#taking;
    this.#cancelKeep();
    this.#cancelSweep();
    this.#cancelClear();
    const chores = [this.#sweeping, this.#clearing];
    await Promise.all([this.#dispatcher?.stop(graceMs), this.#runner?.stop(graceMs), ...chores]);
    this.#lock?.release();
    this.#lock = undefined;
  }

  async #take(): Promise<void> {
    if (this.#isStopping) return;
    const { clock, logger } = this.#parts;
    try {
      this.#lock ??= this.#parts.takeLock();
      if (this.#lock !== undefined) {
        await this.#begin(this.#lock);
        this.#keep(this.#lock);
        const others = this.#lock.isSole ? "" : ", as others do that share it";
        return logger.info(`This process makes the deliveries and runs the workflows of the store${others}`);
      }
    } catch (error) {
      // It is tried again four times a second.
      const elapsed = clock.elapsed();
      if (elapsed >= this.#nextTell) {
        logger.error("Cannot take over the work of the store yet", { error });
        this.#nextTell = elapsed + TELL_MS;
      }
    }
    this.#cancelTake = clock.after(LOCK_MS, () => void (this.#taking = this.#take()));
  }

  #keep(lock: TakenWork): void {
    this.#cancelKeep = this.#parts.clock.after(LOCK_MS, () => {
      if (lock.keep()) this.#keep(lock);
      else this.#parts.onLockLost?.("Cannot keep the lock of the store: another process holds it");
    });
  }

  async #begin({ isSole }: TakenWork): Promise<void> {
    const { store, clock, atAttempt, atStep } = this.#parts;
    // Where nobody else has the lock, whoever had these claims is gone.
    await store.write(voidClaims, { now: clock.now(), which: isSole ? "all" : "expired" });
    if (this.#isStopping) return;
    const dispatcher = this.#dispatcher = new Dispatcher({
      ...this.#parts,
      at: atAttempt,
      keepOtherClaims: () => this.#runner?.keepClaims() ?? Promise.resolve(true),
      onAttempt: (report) => {
        if (this.#times.length < MAX_TIMES) this.#times.push(report.tookMs);
        this.#parts.onAttempt?.(report);
      },
    });
    const runner = this.#runner = new WorkflowRunner({
      ...this.#parts,
      at: atStep,
      onEnd: (status) => {
        this.#ended.set(status, (this.#ended.get(status) ?? 0) + 1);
        this.wakeDispatcher();
        this.#parts.onEnd?.(status);
      },
    });
    dispatcher.start();
    runner.start();
    this.#sweepAndAgain();
    this.#clearAndAgain();
  }

  #clearAndAgain(): void {
    this.#clearing = this.#clear().then(() => {
      if (this.#isStopping) return;
      this.#cancelClear = this.#parts.clock.after(CLEAR_MS, () => this.#clearAndAgain());
    });
  }

  /** In portions, as what is too old is removed; what is left after a crash is found again. */
  async #clear(): Promise<void> {
    const { store, clock, newId, logger } = this.#parts;
    try {
      let isMore = true;
      while (isMore && !this.#isStopping) isMore = await store.clearRemoved({ now: clock.now(), newId });
    } catch (error) {
      const elapsed = clock.elapsed();
      if (elapsed < this.#nextTell) return;
      logger.error("Cannot end what belonged to something that was removed", { error });
      this.#nextTell = elapsed + TELL_MS;
    }
  }

  #sweepAndAgain(): void {
    this.#sweeping = this.#sweep().then(() => {
      if (this.#isStopping) return;
      this.#cancelSweep = this.#parts.clock.after(SWEEP_MS, () => this.#sweepAndAgain());
    });
  }

  /** In portions, so that others get at the store in between. */
  async #sweep(): Promise<void> {
    const { store, clock, retentionMs, logger } = this.#parts;
    try {
      let removed = 1;
      while (removed > 0 && !this.#isStopping) {
        const now = clock.now();
        removed = await store.write(removeFinished, { before: now - retentionMs, now, max: SWEPT_ROWS });
      }
    } catch (error) {
      logger.error("Cannot remove old work from the store", { error });
    }
  }
}

function prefixed(prefix: string, counts: Iterable<readonly [string, number]>): Record<string, number> {
  return Object.fromEntries([...counts].map(([name, count]) => [`${prefix}.${name}`, count]));
}
