import type { Clock } from "../base/clock.ts";
import type { LogFields, Logger } from "../base/log.ts";

/** How often a kind of line may be written. */
export interface ThrottledLogOptions {
  readonly clock: Clock;
  /** At most one line of a kind in this time; one second when absent. */
  readonly intervalMs?: number;
}

interface Kind {
  /** When a line was last written, in milliseconds since the epoch. */
  writtenAt: number;
  suppressed: number;
}

/**
 * Keeps a flood of equal mishaps from flooding the log: at most one line of a kind in an interval. The
 * next line of that kind tells in the field `suppressed` how many were left out. Kinds are few and come
 * from the program, never from a peer, because each is remembered.
 */
export class ThrottledLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #kinds = new Map<string, Kind>();

  constructor(logger: Logger, options: ThrottledLogOptions) {
    this.#logger = logger;
    this.#clock = options.clock;
    this.#intervalMs = options.intervalMs ?? 1_000;
  }

  /** Writes a warning, unless one of this kind was written within the interval. */
  warning(kind: string, message: string, fields: LogFields = {}): void {
    const suppressed = this.#admit(kind);
    if (suppressed !== undefined) this.#logger.warning(message, withCount(fields, suppressed));
  }

  /** Writes an error, unless a line of this kind was written within the interval. */
  error(kind: string, message: string, fields: LogFields = {}): void {
    const suppressed = this.#admit(kind);
    if (suppressed !== undefined) this.#logger.error(message, withCount(fields, suppressed));
  }

  /** How many lines were left out since the last one; undefined when this one is left out too. */
  #admit(kind: string): number | undefined {
    const now = this.#clock.now();
    const known = this.#kinds.get(kind);
    if (known === undefined) {
      this.#kinds.set(kind, { writtenAt: now, suppressed: 0 });
      return 0;
    }
    const elapsed = now - known.writtenAt;
    // A clock that was set back must not silence the log until it has caught up.
    if (elapsed >= 0 && elapsed < this.#intervalMs) {
      known.suppressed++;
      return undefined;
    }
    const { suppressed } = known;
    known.writtenAt = now;
    known.suppressed = 0;
    return suppressed;
  }
}

function withCount(fields: LogFields, suppressed: number): LogFields {
  return suppressed === 0 ? fields : { ...fields, suppressed };
}
