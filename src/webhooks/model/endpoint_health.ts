import { LAST_SLOT_MS } from "./schedule.ts";

/** An endpoint is failing after this many consecutive failures. */
export const FAILING_AFTER = 20;
/** A longer time without an attempt does not count as failing: the endpoint may have worked. */
const MAX_GAP_MS = LAST_SLOT_MS;

/** The failures of an endpoint since its last success. */
export interface FailureRun {
  readonly failures: number;
  /** The first and the last of them; absent for none. */
  readonly failingSince?: number | undefined;
  readonly lastFailureAt?: number | undefined;
  /** Time in which attempts only failed, without gaps of more than `MAX_GAP_MS`. */
  readonly failingMs: number;
  /** True if an event has reported that the endpoint is failing. */
  readonly isReported: boolean;
}

/** An endpoint whose last attempt succeeded, or that had none. */
export const NO_FAILURES: FailureRun = { failures: 0, failingMs: 0, isReported: false };

/** Consecutive failures. */
export interface Failures {
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** True if one of them is of an event that is not operational: no other failure causes an operational event. */
  readonly areReportable: boolean;
  /** The start of the last attempt to which the endpoint returned 410, if that disables it. */
  readonly goneAt?: number | undefined;
}

/** The attempts of an endpoint in some time. */
export interface AttemptSums {
  readonly succeeded: number;
  readonly failed: number;
  /** Attempts with a response, how long they took together, and the longest. */
  readonly answered: number;
  readonly totalMs: number;
  readonly maxMs: number;
}

/** The attempts of an endpoint in some time, and the failures after the last success. */
export interface AttemptSummary extends AttemptSums {
  readonly failures?: Failures | undefined;
}

/** A change of the health of an endpoint. Weir disables it, as `disabled` for its failures, or as it is `gone`. */
export type HealthChange = "recovered" | "failing" | "disabled" | "gone";

/** The summary of attempts and of those that followed. */
export function followedBy(earlier: AttemptSummary, later: AttemptSummary): AttemptSummary {
  return {
    succeeded: earlier.succeeded + later.succeeded,
    failed: earlier.failed + later.failed,
    answered: earlier.answered + later.answered,
    totalMs: earlier.totalMs + later.totalMs,
    maxMs: Math.max(earlier.maxMs, later.maxMs),
    failures: later.succeeded > 0 ? later.failures : joined(earlier.failures, later.failures),
  };
}

/** The failures of an endpoint after further attempts, and what happened to it, in order. */
export function afterAttempts(
  before: FailureRun,
  { succeeded, failures }: Pick<AttemptSummary, "succeeded" | "failures">,
  { disableAfterMs }: { readonly disableAfterMs: number },
): { readonly run: FailureRun; readonly changes: readonly HealthChange[] } {
  const changes: HealthChange[] = succeeded > 0 && before.isReported ? ["recovered"] : [];
  const base = succeeded > 0 ? NO_FAILURES : before;
  if (failures === undefined) return { run: base, changes };
  const run = longerRun(base, failures);
  const isFailing = !run.isReported && run.failures >= FAILING_AFTER && failures.areReportable;
  if (isFailing) changes.push("failing");
  if (failures.goneAt !== undefined) changes.push("gone");
  if (disableAfterMs > 0 && run.failingMs >= disableAfterMs) changes.push("disabled");
  return { run: isFailing ? { ...run, isReported: true } : run, changes };
}

function longerRun(run: FailureRun, { count, firstAt, lastAt }: Failures): FailureRun {
  // A clock may have been set back.
  const gapMs = Math.max(0, firstAt - (run.lastFailureAt ?? firstAt));
  return {
    failures: run.failures + count,
    failingSince: run.failingSince ?? firstAt,
    lastFailureAt: lastAt,
    failingMs: run.failingMs + (gapMs > MAX_GAP_MS ? 0 : gapMs) + Math.max(0, lastAt - firstAt),
    isReported: run.isReported,
  };
}

function joined(earlier: Failures | undefined, later: Failures | undefined): Failures | undefined {
  if (earlier === undefined || later === undefined) return later ?? earlier;
  const { goneAt = earlier.goneAt } = later;
  return {
    count: earlier.count + later.count,
    firstAt: earlier.firstAt,
    lastAt: later.lastAt,
    areReportable: earlier.areReportable || later.areReportable,
    ...(goneAt === undefined ? {} : { goneAt }),
  };
}
