import type { AttemptErrorKind, AttemptResult } from "../model/records.ts";

/** An attempt that is over, for statistics and spans. */
export interface AttemptReport {
  readonly deliveryId: string;
  readonly endpointId: string;
  readonly event: string;
  readonly number: number;
  readonly manual: boolean;
  /** Wall clock time in milliseconds since the Unix epoch. */
  readonly startedAt: number;
  /** Milliseconds from the begin of the request to its result, by a clock that never goes back. */
  readonly tookMs: number;
  readonly result: AttemptResult;
  readonly status?: number | undefined;
  readonly errorKind?: AttemptErrorKind | undefined;
}

/** What a dispatcher counts, since its start. */
export interface DispatchFigures {
  /** Attempts by how they ended: `acknowledged`, or the kind of error. */
  readonly attempts: Readonly<Record<string, number>>;
  /** Results that could not be written because the claim was no longer held. */
  readonly lostClaims: number;
  /** Claims that were taken back from a worker that did not come back in time. */
  readonly expiredClaims: number;
  /** Times that the store could not be asked. */
  readonly storeErrors: number;
}

/** Counts what a dispatcher does. */
export class DispatchCounts {
  readonly #attempts = new Map<string, number>();
  lostClaims = 0;
  expiredClaims = 0;
  storeErrors = 0;

  /** Counts an attempt that is over. */
  count({ result, errorKind }: Pick<AttemptReport, "result" | "errorKind">): void {
    const name = result === "acknowledged" ? result : errorKind ?? result;
    this.#attempts.set(name, (this.#attempts.get(name) ?? 0) + 1);
  }

  get figures(): DispatchFigures {
    const { lostClaims, expiredClaims, storeErrors } = this;
    return { attempts: Object.fromEntries(this.#attempts), lostClaims, expiredClaims, storeErrors };
  }
}
