import type { Clock } from "../base/clock.ts";
import type { Health } from "../base/health.ts";

/** A component and its state. */
interface ComponentState {
  readonly name: string;
  readonly reason: string;
}

/** A rule and its counters. */
export interface RuleStatistics {
  readonly name: string;
  readonly domain: string;
  /** The levels of its path; an empty value is any. */
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  readonly limit: string;
  /** `file:line`, or the resource of a configuration server. */
  readonly at: string;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  readonly hits: number;
  readonly overLimit: number;
  readonly nearLimit: number;
  readonly withinLimit: number;
}

/** The current rules. */
export interface RuleStatisticsSource {
  readonly count: number;
  hits(index: number): number;
  at(index: number): RuleStatistics | undefined;
}

/** A key that is often over its limit. */
export interface OverLimitKey {
  readonly key: string;
  readonly count: number;
  readonly errorAtMost: number;
}

/** An attempt to load the configuration. */
export interface ConfigurationLoad {
  readonly at: number;
  readonly ok: boolean;
  /** The first files that changed. */
  readonly changed: readonly string[];
  readonly limits: number;
  readonly version: string;
  /** The first problems, with their positions. */
  readonly problems: readonly string[];
  readonly problemCount: number;
}

/** The state of the configuration. */
export interface ConfigurationState {
  /** When the current rules were loaded, in milliseconds since the epoch; null before the first load. */
  readonly loadedAt: number | null;
  readonly version: string;
  readonly loaded: number;
  readonly failed: number;
  /** Why the last load failed; null if it succeeded. */
  readonly error: string | null;
  /** The newest first. */
  readonly loads: readonly ConfigurationLoad[];
}

/** The sources of a snapshot. */
export interface SnapshotSources {
  readonly clock: Pick<Clock, "now" | "elapsed">;
  readonly constants: {
    readonly version: string;
    readonly startedAt: number;
    readonly administration: boolean;
    readonly webhooks: boolean;
    readonly debugToken: boolean;
    /** `BACKEND_TYPE`. */
    readonly cache: string;
    /** The bounds of every timer. */
    readonly boundsMs: readonly number[];
  };
  readonly health: Pick<Health, "state"> & Record<"failing" | "degraded", () => readonly ComponentState[]>;
  readonly decisions: () => { readonly total: number; readonly overLimit: number };
  /** Counts of each minute of the last hour by name, the current minute last. */
  readonly history: () => Readonly<Record<string, readonly number[]>>;
  readonly rules: () => RuleStatisticsSource;
  readonly topOverLimited: (limit: number) => readonly OverLimitKey[];
  readonly configuration: () => ConfigurationState;
  /** Counters and gauges by full name, without those of rules. */
  readonly metrics: () => Readonly<Record<string, number>>;
  /** Counts of durations by the bound that they were within; the last is beyond all. */
  readonly timers: () => Readonly<Record<string, readonly number[]>>;
}

const MAX_RULES = 200;
const MAX_KEYS = 20;
const SORT_BATCH = 1_000;
const MAX_TEXT = 1_000;
const MAX_PROBLEMS = 3;
const MAX_PROBLEM_TEXT = 300;
/** Rates over a longer interval are not current. */
const MAX_INTERVAL_MS = 5_000;

interface Candidate {
  readonly index: number;
  readonly hits: number;
}

interface DecisionCounts {
  readonly at: number;
  readonly total: number;
  readonly overLimit: number;
}

/** Creates snapshots of the service for the web page. */
export class Snapshots {
  readonly #sources: SnapshotSources;
  #previous: DecisionCounts | undefined;

  constructor(sources: SnapshotSources) {
    this.#sources = sources;
  }

  /** Rates are per second since the previous snapshot; null if that was too long ago. */
  make(): Record<string, unknown> {
    const { clock, constants, health, history, rules, topOverLimited, ...sources } = this.#sources;
    const { configuration, metrics, timers } = sources;
    const { version, startedAt, ...flags } = constants;
    const current = rules();
    const loads = configuration();
    return {
      at: Math.round(clock.now()),
      version,
      startedAt,
      health: {
        state: health.state,
        failing: health.failing().map(shownComponent),
        degraded: health.degraded().map(shownComponent),
      },
      decisions: this.#decisions(),
      history: history(),
      rules: rulesOf(current),
      rulesTotal: current.count,
      topOverLimited: topOverLimited(MAX_KEYS).map(({ key, count, errorAtMost }) => ({
        key,
        count: Math.round(count),
        errorAtMost: Math.ceil(errorAtMost),
      })),
      configuration: {
        ...loads,
        version: truncate(loads.version),
        error: loads.error === null ? null : truncate(loads.error),
        loads: loads.loads.map(shownLoad),
      },
      metrics: metrics(),
      timers: timers(),
      ...flags,
    };
  }

  #decisions(): Record<string, number | null> {
    const { clock, decisions } = this.#sources;
    const { total, overLimit } = decisions();
    const previous = this.#previous;
    const at = clock.elapsed();
    this.#previous = { at, total, overLimit };
    const elapsed = previous === undefined ? 0 : at - previous.at;
    if (previous === undefined || elapsed <= 0 || elapsed > MAX_INTERVAL_MS) {
      return { total, overLimit, perSecond: null, overLimitShare: null };
    }
    const added = total - previous.total;
    return {
      total,
      overLimit,
      perSecond: rounded(added * 1_000 / elapsed),
      overLimitShare: added === 0 ? null : rounded((overLimit - previous.overLimit) / added),
    };
  }
}

function rulesOf(rules: RuleStatisticsSource): RuleStatistics[] {
  return busiest(rules.count, (index) => rules.hits(index), MAX_RULES).flatMap((index) => {
    const rule = rules.at(index);
    return rule === undefined ? [] : [shownRule(rule)];
  });
}

function shownRule(rule: RuleStatistics): RuleStatistics {
  const entries = rule.entries.map(({ key, value }) => ({ key: truncate(key), value: truncate(value) }));
  return {
    ...rule,
    name: truncate(rule.name),
    domain: truncate(rule.domain),
    entries,
    at: truncate(rule.at),
  };
}

/** The indexes with the most hits, highest first; a single pass in bounded memory, because there may be very many. */
export function busiest(count: number, hitsOf: (index: number) => number, limit: number): number[] {
  let candidates: Candidate[] = [];
  let threshold = -1;
  for (let index = 0; index < count; index++) {
    const hits = hitsOf(index);
    if (hits <= threshold) continue;
    candidates.push({ index, hits });
    if (candidates.length < limit + SORT_BATCH) continue;
    candidates = first(candidates, limit);
    threshold = candidates.at(-1)?.hits ?? threshold;
  }
  return first(candidates, limit).map(({ index }) => index);
}

function first(candidates: Candidate[], limit: number): Candidate[] {
  return candidates.sort((a, b) => b.hits - a.hits || a.index - b.index).slice(0, limit);
}

function shownComponent({ name, reason }: ComponentState): Readonly<Record<"component" | "reason", string>> {
  return { component: name, reason: truncate(reason) };
}

function shownLoad(load: ConfigurationLoad): ConfigurationLoad {
  const problems = load.problems.slice(0, MAX_PROBLEMS).map((text) => truncate(text, MAX_PROBLEM_TEXT));
  const changed = load.changed.map((path) => truncate(path, MAX_PROBLEM_TEXT));
  return { ...load, changed, problems, version: truncate(load.version, MAX_PROBLEM_TEXT) };
}

function truncate(text: string, most = MAX_TEXT): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
