import type { CallRecord } from "../../src/load/load_record.ts";

/** The parts of an outage, in order: until code and memory have settled, before it, while it lasts, after it. */
const PHASES = ["warm-up", "before", "away", "back"] as const;
/** The name of a part of an outage. */
export type Phase = typeof PHASES[number];

/** Counts of one phase. */
export interface PhaseMetrics {
  readonly phase: Phase;
  seconds: number;
  /** Calls that were answered OK. */
  ok: number;
  /** Calls that were answered UNAVAILABLE. */
  refused: number;
  /** The longest time that a call of this phase took. */
  longestMs: number;
  /** The least and the most resident memory that was seen; 0 where none was. */
  leastMb: number;
  mostMb: number;
}

/** Everything that one outage showed. */
export interface OutageFacts {
  readonly phases: readonly PhaseMetrics[];
  /** From the return of the cache to the first OK; absent when there was none. */
  readonly firstOkMs: number | undefined;
  /** From the return of the cache to the start of the last call that was refused; absent when none was. */
  readonly lastRefusedMs: number | undefined;
  /** Number of times that each thing went wrong that must not, such as a call without an answer. */
  readonly faults: Readonly<Record<string, number>>;
}

/** The one refusal that is right while the cache is unavailable. */
const UNAVAILABLE = "UNAVAILABLE";
/** Different texts of faults that are kept; the rest is counted together. */
const MAX_FAULT_TEXTS = 20;

/** Gathers what happens to calls around one outage; a call belongs to the phase in which it was answered. */
export class OutageRecord implements CallRecord {
  readonly #phases: PhaseMetrics[] = [];
  readonly #faults = new Map<string, number>();
  #now: PhaseMetrics | undefined;
  #enteredAt = 0;
  #firstOkAt: number | undefined;
  #lastRefusedAt: number | undefined;

  /** A phase begins at `now`, and the previous one it ends. */
  enter(phase: Phase, now: number): void {
    this.#endPhase(now);
    this.#now = { phase, seconds: 0, ok: 0, refused: 0, longestMs: 0, leastMb: 0, mostMb: 0 };
    this.#phases.push(this.#now);
    this.#enteredAt = now;
  }

  begin(): void {
    // A call is counted when it is answered; one that never is counts as a fault.
  }

  goodAnswer(start: number, end: number): void {
    const metrics = this.#answered(start, end);
    if (metrics === undefined) return;
    metrics.ok++;
    if (metrics.phase === "back") this.#firstOkAt ??= end;
  }

  badAnswer(statuses: string, start: number, end: number): void {
    const metrics = statuses === UNAVAILABLE ? this.#answered(start, end) : undefined;
    if (metrics === undefined) return;
    metrics.refused++;
    // Calls that were under way when the cache came back may still fail.
    if (metrics.phase === "back" && start >= this.#enteredAt) this.#lastRefusedAt = start;
  }

  lost(text: string, calls: number): void {
    this.error(text, calls);
  }

  error(text: string, times = 1): void {
    if (text.startsWith(UNAVAILABLE) || times === 0) return;
    const isKept = this.#faults.has(text) || this.#faults.size < MAX_FAULT_TEXTS;
    const kept = isKept ? text : "other faults";
    this.#faults.set(kept, (this.#faults.get(kept) ?? 0) + times);
  }

  /** So much memory is resident. */
  memory(residentMb: number): void {
    const metrics = this.#now;
    if (metrics === undefined) return;
    metrics.leastMb = metrics.mostMb === 0 ? residentMb : Math.min(metrics.leastMb, residentMb);
    metrics.mostMb = Math.max(metrics.mostMb, residentMb);
  }

  /** Returns whether calls have been answered OK since the cache is back, and nothing else for so long. */
  isSteady(forMs: number, now: number): boolean {
    if (this.#firstOkAt === undefined) return false;
    return now - Math.max(this.#firstOkAt, this.#lastRefusedAt ?? 0) >= forMs;
  }

  /** Everything, once it is over. */
  facts(now: number): OutageFacts {
    this.#endPhase(now);
    const sinceBack = (at: number | undefined) => at === undefined ? undefined : at - this.#enteredAt;
    return {
      phases: this.#phases,
      firstOkMs: sinceBack(this.#firstOkAt),
      lastRefusedMs: sinceBack(this.#lastRefusedAt),
      faults: Object.fromEntries(this.#faults),
    };
  }

  #endPhase(now: number): void {
    if (this.#now !== undefined) this.#now.seconds = (now - this.#enteredAt) / 1_000;
  }

  #answered(start: number, end: number): PhaseMetrics | undefined {
    const metrics = this.#now;
    if (metrics !== undefined) metrics.longestMs = Math.max(metrics.longestMs, end - start);
    return metrics;
  }
}
