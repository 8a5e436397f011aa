import type { Clock } from "../base/clock.ts";
import { EpisodeLog } from "../base/episode_log.ts";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import { waitUnlessAborted } from "../base/wait.ts";

/** The reports of an accept guard. */
export interface AcceptGuardOptions {
  /** Names the listener in log lines, such as `gRPC`. */
  readonly name: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with the cause after accepting has failed for a second, and with nothing once it works again. */
  readonly onState: (problem: string | undefined) => void;
}

/** Time between two attempts. */
const PAUSE_MS = 100;
/** An accept that has waited this long is not failing: the queue has no connection left. */
const WAITING_MS = 100;
/** A failure of this duration is reported; a shorter one is a moment without free descriptors. */
const FAILING_MS = 1_000;

/**
 * Keeps one listener accepting: repeats a failing accept until it succeeds, and logs, counts and reports the failure. A
 * guard has one attempt at a time.
 */
export class AcceptGuard {
  readonly #options: AcceptGuardOptions;
  readonly #log: EpisodeLog;
  #failures = 0;
  /** Since when attempts fail, and how many had failed before; absent while they succeed. */
  #failing: { readonly since: number; readonly failuresBefore: number } | undefined;
  #isReported = false;
  readonly #closed = new AbortController();

  constructor(options: AcceptGuardOptions) {
    this.#options = options;
    this.#log = new EpisodeLog(options.clock);
  }

  /** Attempts that have failed so far. */
  get failures(): number {
    return this.#failures;
  }

  /** True when the last attempt failed. */
  get isFailing(): boolean {
    return this.#failing !== undefined;
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Ends a pause and with it the running `retry`; its owner closes what the attempt waits for. */
  close(): void {
    this.#closed.abort();
  }

  /** Returns the value of the first attempt that succeeds, or undefined once the guard is closed; never throws. */
  async retry<Value>(attempt: () => Value | Promise<Value>): Promise<Value | undefined> {
    while (!this.isClosed) {
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
        if (this.isClosed) break;
        this.#failed(error);
        await waitUnlessAborted(PAUSE_MS, this.#options.clock, this.#closed.signal);
      } finally {
        cancel?.();
      }
    }
    return undefined;
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

/** True when the process or the machine has no file descriptor left. */
export function isOutOfDescriptors(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EMFILE" || code === "ENFILE";
}
