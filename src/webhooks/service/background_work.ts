import { WakeLoop } from "../../threads/wake_loop.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import { Dispatcher, type DispatcherOptions } from "../deliveries/dispatcher.ts";
import { DurationSamples, prefixed, type SharedStoreMetrics, type WebhookMetrics } from "./metrics.ts";
import { WorkflowRunner, type WorkflowRunnerOptions } from "../workflows/runner.ts";
import type { Execution } from "../model/records.ts";
import type { Acceptance, NewExecution, WriteExecution } from "../store/operations/accept.ts";
import { voidClaims } from "../store/operations/claims.ts";
import { endEpisodes, isEpisodeOver } from "../store/operations/limit_episodes.ts";
import { continueReplay, isReplayDue, STEP_MS } from "../store/operations/replays.ts";
import { removeFinished } from "../store/operations/retention.ts";
import { HealthRecorder } from "./health_recorder.ts";

/** The right to do the work of a store. */
export interface TakenWork {
  /** True if no other process has it; claims of others are void then. */
  readonly isSole: boolean;
  /** True if it is still held; called several times a second. */
  keep(): boolean;
  release(): void;
}

/** Options and parts of `BackgroundWork`. */
export interface BackgroundWorkParts extends DispatcherOptions, WorkflowRunnerOptions {
  /** Takes over the work of the store; nothing while another process has it alone. */
  readonly takeLock: () => TakenWork | undefined;
  /** Finished work is kept this long. */
  readonly retentionMs: number;
  /** An endpoint whose attempts only fail is disabled after this time; 0 for never. */
  readonly disableAfterMs: number;
  /** Of the open deliveries of each endpoint; no limit when absent. */
  readonly maxBacklog?: number | undefined;
  /** True while the store accepts no events; never when absent. */
  readonly isStoreFull?: (() => boolean) | undefined;
  /** Takes the durations of commits since the last call, in milliseconds. */
  readonly takeCommitTimes?: (() => readonly number[]) | undefined;
  /** The metrics of a store that several machines share. */
  readonly sharedStoreMetrics?: (() => SharedStoreMetrics) | undefined;
  /** Called when another process has taken the lock and voided the claims: all work has to end. */
  readonly onLockLost?: ((state: string) => void) | undefined;
}

/** A process tries to take the lock this often, and checks that it still holds it. */
const LOCK_MS = 250;
/** Old work is removed this often, with so many rows per transaction. */
const SWEEP_MS = 60_000;
const SWEPT_ROWS = 500;
/** The rest of removed records is cleared this often. */
const CLEAR_MS = 1_000;
/** Replays are continued this often, and sooner after a step that others may follow. */
const REPLAY_MS = 1_000;
/** Replays add to the open deliveries of an endpoint up to this number, or to half of their maximum. */
const MAX_REPLAYED = 10_000;
/** Attempts are added to the health of their endpoints this often. */
const RECORD_MS = 1_000;
const LOG_MS = 10_000;
/** Episodes of limits are ended this often, so many per transaction. */
const EPISODES_MS = 1_000;
const MAX_EPISODES = 50;

/**
 * The part that only one process does at a time where the store is a file: deliveries, workflows and the removal of old
 * work. It begins once the lock of the store is taken. With a store that several machines share, every process has it.
 */
export class BackgroundWork {
  readonly #parts: BackgroundWorkParts;
  readonly #ended = new Map<string, number>();
  readonly #attemptTimes = new DurationSamples();
  readonly #lockCheck: WakeLoop;
  readonly #sweeping: WakeLoop;
  readonly #clearing: WakeLoop;
  readonly #health: HealthRecorder;
  readonly #recording: WakeLoop;
  readonly #ending: WakeLoop;
  readonly #replaying: WakeLoop;
  #replayed = 0;
  #lock: TakenWork | undefined;
  #dispatcher: Dispatcher | undefined;
  #runner: WorkflowRunner | undefined;
  #isStopping = false;
  readonly #log: ThrottledLog;

  constructor(parts: BackgroundWorkParts) {
    const { clock } = this.#parts = parts;
    this.#log = new ThrottledLog(parts.logger, { clock, intervalMs: LOG_MS });
    const loop = (pollMs: number, round: () => Promise<boolean>) => new WakeLoop({ clock, pollMs, round });
    this.#lockCheck = loop(LOCK_MS, () => this.#checkLock());
    this.#sweeping = loop(SWEEP_MS, () => this.#sweep());
    this.#clearing = loop(CLEAR_MS, () => this.#clear());
    this.#health = new HealthRecorder({ ...parts, wake: (ids) => this.wakeDispatcher(ids) });
    this.#recording = loop(RECORD_MS, () => this.#record());
    this.#ending = loop(EPISODES_MS, () => this.#endEpisodes());
    this.#replaying = loop(REPLAY_MS, () => this.#replay());
  }

  /** Begins to try for the lock. */
  start(): void {
    this.#lockCheck.start();
  }

  /** True if the lock is taken and the work has begun. */
  get isWorking(): boolean {
    return this.#dispatcher !== undefined && !this.#isStopping;
  }

  /** The running attempts of an endpoint; unknown where other processes may make some of them. */
  inFlight(endpointId: string): number | undefined {
    return this.#lock?.isSole === true ? this.#dispatcher?.inFlight(endpointId) : undefined;
  }

  /** Deliveries became due, of these endpoints or of any, or endpoints changed. */
  wakeDispatcher(endpointIds?: readonly string[]): void {
    this.#dispatcher?.wake(endpointIds);
  }

  /** Attempts of an endpoint are due now, even if it is failing. */
  retryNow(endpointId: string): void {
    this.#dispatcher?.retryNow(endpointId);
  }

  /** Executions became due. */
  wakeRunner(): void {
    this.#runner?.wake();
  }

  /** Writes a new execution, which begins immediately if this process does the work and has room. */
  acceptExecution(execution: NewExecution, write: WriteExecution): Promise<Acceptance<Execution>> {
    return this.#runner?.accept(execution, write) ?? write(execution);
  }

  /** Counters since the start, and the durations since the last call; `storeErrors` are those of calls. */
  metrics(storeErrors = 0): WebhookMetrics {
    const counted = this.#dispatcher?.metrics;
    const shared = this.#parts.sharedStoreMetrics?.();
    const durations = {
      attempt_time: this.#attemptTimes.take(),
      commit_time: this.#parts.takeCommitTimes?.() ?? [],
    };
    return {
      counters: {
        ...prefixed("attempts", Object.entries(counted?.attempts ?? {})),
        ...prefixed("executions_ended", this.#ended),
        lost_claims: counted?.lostClaims ?? 0,
        expired_claims: counted?.expiredClaims ?? 0,
        replayed_deliveries: this.#replayed,
        store_errors: storeErrors + (counted?.storeErrors ?? 0),
        transaction_retries: shared?.retries ?? 0,
        store_credentials_reloaded: shared?.logins?.reloaded ?? 0,
        store_credentials_rejected: shared?.logins?.rejected ?? 0,
        store_logins_refused: shared?.logins?.refused ?? 0,
      },
      gauges: {
        attempts_in_flight: this.#dispatcher?.running ?? 0,
        executions_in_flight: this.#runner?.running ?? 0,
        is_dispatcher: this.isWorking ? 1 : 0,
        clock_offset_seconds: (shared?.wallAheadMs ?? 0) / 1_000,
      },
      durations,
      note: shared?.problem,
    };
  }

  /** Gives attempts and steps this long, and releases the lock. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    await this.#lockCheck.stop();
    await Promise.all([
      ...[this.#dispatcher?.stop(graceMs), this.#runner?.stop(graceMs)],
      ...[this.#sweeping.stop(), this.#clearing.stop(), this.#ending.stop(), this.#recording.stop()],
      this.#replaying.stop(),
    ]);
    while (await this.#record());
    this.#lock?.release();
    this.#lock = undefined;
  }

  async #checkLock(): Promise<boolean> {
    const { logger, onLockLost } = this.#parts;
    if (this.#dispatcher !== undefined) {
      if (this.#lock?.keep() !== false) return false;
      void this.#lockCheck.stop();
      onLockLost?.("Cannot keep the lock of the store: another process holds it");
      return false;
    }
    try {
      this.#lock ??= this.#parts.takeLock();
      if (this.#lock === undefined) return false;
      await this.#begin(this.#lock);
      logger.info("Delivering and running workflows", { isStoreShared: !this.#lock.isSole });
    } catch (error) {
      this.#logError("Cannot take over the work of the store yet", error);
    }
    return false;
  }

  async #begin({ isSole }: TakenWork): Promise<void> {
    const { store, clock } = this.#parts;
    // Under a sole lock all claims are left over from processes that ended.
    await store.write(voidClaims, { now: clock.now(), which: isSole ? "all" : "expired" });
    if (this.#isStopping) return;
    const dispatcher = this.#dispatcher = new Dispatcher({
      ...this.#parts,
      keepOtherClaims: () => this.#runner?.keepClaims() ?? Promise.resolve(true),
      onAttempt: (report) => {
        this.#attemptTimes.add(report.tookMs);
        this.#health.add(report);
        this.#parts.onAttempt?.(report);
      },
    });
    const runner = this.#runner = new WorkflowRunner({
      ...this.#parts,
      onEnd: (status) => {
        this.#ended.set(status, (this.#ended.get(status) ?? 0) + 1);
        this.wakeDispatcher();
        this.#parts.onEnd?.(status);
      },
    });
    dispatcher.start();
    runner.start();
    this.#sweeping.start();
    this.#clearing.start();
    this.#ending.start();
    this.#replaying.start();
    this.#recording.start();
  }

  /** Adds the attempts since the last round to the health of their endpoints. */
  async #record(): Promise<boolean> {
    try {
      return await this.#health.record();
    } catch (error) {
      this.#logError("Cannot record the health of endpoints", error);
      return false;
    }
  }

  /** Clears a portion of what belonged to removed records; what a crash leaves over is found again. */
  async #clear(): Promise<boolean> {
    const { store, clock, newId } = this.#parts;
    try {
      return await store.clearRemoved({ now: clock.now(), newId });
    } catch (error) {
      this.#logError("Cannot clear what belonged to a removed record", error);
      return false;
    }
  }

  /** Reports ends of episodes. */
  async #endEpisodes(): Promise<boolean> {
    const { store, clock, newId } = this.#parts;
    try {
      const now = clock.now();
      if (!await store.read(isEpisodeOver, now)) return false;
      const { count, endpointIds } = await store.write(endEpisodes, { now, max: MAX_EPISODES, newId });
      if (endpointIds.length > 0) this.wakeDispatcher(endpointIds);
      return count === MAX_EPISODES;
    } catch (error) {
      this.#logError("Cannot report the ends of episodes of limits", error);
      return false;
    }
  }

  /** Continues a replay by a portion, so that others can write in between. */
  async #replay(): Promise<boolean> {
    const { store, clock, newId, maxBacklog = Infinity, isStoreFull = () => false } = this.#parts;
    try {
      const now = clock.now();
      if (isStoreFull() || !await store.read(isReplayDue, now)) return false;
      const maxOpen = Math.min(MAX_REPLAYED, Math.floor(maxBacklog / 2));
      const step = await store.write(continueReplay, { now, newId, maxOpen });
      this.#replayed += step?.count ?? 0;
      if (step === undefined) return false;
      if (step.count > 0) this.wakeDispatcher([step.endpointId]);
      this.#replaying.wakeIn(STEP_MS);
      return true;
    } catch (error) {
      this.#logError("Cannot continue a replay", error);
      return false;
    }
  }

  /** Removes a portion of the old work, so that others can write in between. */
  async #sweep(): Promise<boolean> {
    const { store, clock, retentionMs, logger } = this.#parts;
    try {
      const now = clock.now();
      return await store.write(removeFinished, { before: now - retentionMs, now, max: SWEPT_ROWS }) > 0;
    } catch (error) {
      logger.error("Cannot remove old work from the store", { error });
      return false;
    }
  }

  /** Logs an error that comes back with each round, now and then. */
  #logError(message: string, error: unknown): void {
    this.#log.error(message, message, { error });
  }
}
