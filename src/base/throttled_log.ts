import type { Clock } from "./clock.ts";
import type { LogFields, Logger } from "./log.ts";

/** Bounds of a `ThrottledLog`. */
interface ThrottledLogOptions {
  readonly clock: Clock;
  /** Time between two lines of a kind; one second when absent. */
  readonly intervalMs?: number;
}

/**
 * Writes at most one line of a kind in an interval; the next line has the number of the others in the field
 * `suppressed`. Kinds are remembered, so they must be few and never come from a peer.
 */
export class ThrottledLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #kinds = new Map<string, { writtenAt: number; suppressed: number }>();

  constructor(logger: Logger, options: ThrottledLogOptions) {
    this.#logger = logger;
    this.#clock = options.clock;
    this.#intervalMs = options.intervalMs ?? 1_000;
  }

  /** Writes an information, unless a line of this kind was written within the interval. */
  info(kind: string, message: string, fields: LogFields = {}): void {
    const suppressed = this.#admit(kind);
    if (suppressed !== undefined) this.#logger.info(message, { ...fields, ...suppressed });
  }

  /** Writes a warning, unless a line of this kind was written within the interval. */
  warning(kind: string, message: string, fields: LogFields = {}): void {
    const suppressed = this.#admit(kind);
    if (suppressed !== undefined) this.#logger.warning(message, { ...fields, ...suppressed });
  }

  /** Writes an error, unless a line of this kind was written within the interval. */
  error(kind: string, message: string, fields: LogFields = {}): void {
    const suppressed = this.#admit(kind);
    if (suppressed !== undefined) this.#logger.error(message, { ...fields, ...suppressed });
  }

  /** The field for lines that were suppressed since the last one; undefined to suppress this one too. */
  #admit(kind: string): { readonly suppressed?: number } | undefined {
    const now = this.#clock.elapsed();
    const known = this.#kinds.get(kind);
    if (known === undefined) {
      this.#kinds.set(kind, { writtenAt: now, suppressed: 0 });
      return {};
    }
    if (now - known.writtenAt < this.#intervalMs) {
      known.suppressed++;
      return undefined;
    }
    const { suppressed } = known;
    known.writtenAt = now;
    known.suppressed = 0;
    return suppressed === 0 ? {} : { suppressed };
  }
}
