import type { AttemptErrorKind, AttemptResult } from "../model/records.ts";

/** An attempt that is over, for metrics and spans. */
export interface AttemptReport {
  readonly deliveryId: string;
  readonly endpointId: string;
  readonly event: string;
  readonly number: number;
  readonly manual: boolean;
  /** Wall clock time in milliseconds since the Unix epoch. */
  readonly startedAt: number;
  /** Milliseconds from the begin of the request to its result. */
  readonly tookMs: number;
  readonly result: AttemptResult;
  readonly status?: number | undefined;
  readonly errorKind?: AttemptErrorKind | undefined;
  /** True if the endpoint is gone, which disables it. */
  readonly isGone?: boolean | undefined;
  /** True if its body could not be rendered, so that nothing was sent: it tells nothing about the receiver. */
  readonly isUnrenderable?: boolean | undefined;
}

/** Counters of a dispatcher since its start. */
export class DispatcherMetrics {
  readonly #attempts = new Map<string, number>();
  /** Attempts whose claim was lost, so that their results were not written. */
  lostClaims = 0;
  /** Claims of processes that did not return in time. */
  expiredClaims = 0;
  storeErrors = 0;

  count({ result, errorKind }: Pick<AttemptReport, "result" | "errorKind">): void {
    const name = result === "acknowledged" ? result : errorKind ?? result;
    this.#attempts.set(name, (this.#attempts.get(name) ?? 0) + 1);
  }

  /** Attempts by result: `acknowledged`, or the kind of error. */
  get attempts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#attempts);
  }
}
