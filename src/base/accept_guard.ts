import type { Clock } from "./clock.ts";
import { errorText } from "./error_text.ts";
import type { Logger } from "./log.ts";

/** Which listener is guarded, and who learns of its state. */
export interface AcceptGuardOptions {
  /** Names the listener in log lines, such as `gRPC`. */
  readonly name: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with the cause once accepting has failed for a second, and with nothing once it works again. */
  readonly onState: (problem: string | undefined) => void;
}

/** Time between two attempts. */
const PAUSE_MS = 100;
/** An accept that has been waiting for this long is not failing: no connection is left in the queue. */
const WAITING_MS = 100;
/** Failing for this long is a state of the listener; less is a moment in which descriptors ran out. */
const FAILING_MS = 1_000;

/**
 * Keeps one listener accepting: an attempt that fails is repeated until it succeeds, and the failure is
 * logged, counted and reported. An attempt accepts the next connection, or reopens a listener that ended:
 *
 * ```ts
 * while (!guard.isClosed) {
 *   const connection = await guard.retry(() => listener.accept());
 *   if (connection !== undefined) serve(connection);
 * }
 * ```
 * ```ts
 * await server.finished;
 * const next = await guard.retry(() => listen());
 * ```
 * A guard has one attempt at a time. `retry` never throws; it returns undefined once the guard is closed.
 */
export class AcceptGuard {
  readonly #options: AcceptGuardOptions;
  readonly #log: EpisodeLog;
  #failures = 0;
  /** When the run of failures began, and how many there had been; absent while attempts succeed. */
  #failing: { readonly since: number; readonly failuresBefore: number } | undefined;
  #isReported = false;
  #endPause = () => {};
  #isClosed = false;

  constructor(options: AcceptGuardOptions) {
    this.#options = options;
    this.#log = new EpisodeLog(options.clock);
  }

  /** Attempts that have failed so far. */
  get failures(): number {
    return this.#failures;
  }

  /** Whether the last attempt failed, so that no connection is accepted now. */
  get isFailing(): boolean {
    return this.#failing !== undefined;
  }

  /** Whether `close` was called. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Ends a pause, and with it the running `retry`; its owner closes what the attempt waits for. */
  close(): void {
    this.#isClosed = true;
    this.#endPause();
  }

  /** The value of the first attempt that succeeds; undefined once the guard is closed. */
  async retry<Value>(attempt: () => Value | Promise<Value>): Promise<Value | undefined> {
    while (!this.#isClosed) {
      const { clock } = this.#options;
      const cancel = this.#failing === undefined
        ? undefined
        : clock.after(WAITING_MS, () => this.#succeeded());
      try {
        const value = await attempt();
        this.#succeeded();
        return value;
      } catch (error) {
        cancel?.();
        if (this.#isClosed) break;
        this.#failed(error);
        await this.#pause();
      } finally {
        cancel?.();
      }
    }
    return undefined;
  }

  async #pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(PAUSE_MS, resolve);
    this.#endPause = resolve;
    await promise;
    cancel();
  }

  #failed(error: unknown): void {
    const { name, clock, logger, onState } = this.#options;
    const now = clock.elapsed();
    const problem = errorText(error);
    this.#failing ??= { since: now, failuresBefore: this.#failures };
    this.#failures++;
    const fields = { listener: name, error: problem };
    this.#log.begin(() => logger.error("Cannot accept connections; retrying", fields));
    if (this.#isReported || now - this.#failing.since < FAILING_MS) return;
    this.#isReported = true;
    onState(`connections are not accepted: ${problem}`);
  }

  #succeeded(): void {
    if (this.#failing === undefined) return;
    const { since, failuresBefore } = this.#failing;
    this.#failing = undefined;
    const { name, clock, logger, onState } = this.#options;
    const failures = this.#failures - failuresBefore;
    const fields = { listener: name, failures, pausedMs: Math.round(clock.elapsed() - since) };
    this.#log.end(() => logger.warning("Accepting connections again", fields));
    if (this.#isReported) onState(undefined);
    this.#isReported = false;
  }
}

/** Whether an error says that the process or the machine has no file descriptor left. */
export function isOutOfDescriptors(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EMFILE" || code === "ENFILE";
}

/** A state that comes back within this time is not logged again. */
const INTERVAL_MS = 10_000;

/** Logs when a state begins and ends, and keeps one that comes and goes from filling the log. */
export class EpisodeLog {
  readonly #clock: Pick<Clock, "elapsed">;
  #isLogged = false;
  #loggedAt = -Infinity;

  constructor(clock: Pick<Clock, "elapsed">) {
    this.#clock = clock;
  }

  /** The state holds; called again while it does. `write` is called when it begins, or soon after another one. */
  begin(write: () => void): void {
    if (this.#isLogged) return;
    const now = this.#clock.elapsed();
    this.#isLogged = now - this.#loggedAt >= INTERVAL_MS;
    if (!this.#isLogged) return;
    this.#loggedAt = now;
    write();
  }

  /** The state is over; `write` is called when its beginning was logged. */
  end(write: () => void): void {
    if (this.#isLogged) write();
    this.#isLogged = false;
  }
}
