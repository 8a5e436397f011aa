import type { ConfigurationLoad, ConfigurationState, OverLimitKey, RuleStatistics } from "../snapshot.ts";
import { type Fields, fieldsOf, flagOf, numberOf, numbersOf, recordsOf, textOf, textsOf } from "./fields.ts";

/** The state of a component. */
export interface Remark {
  readonly component: string;
  readonly text: string;
}

/** The part of a snapshot that is kept for two minutes. */
export interface Counts {
  readonly at: number;
  readonly decisions: {
    readonly total: number;
    readonly overLimit: number;
    readonly perSecond: number | null;
    readonly overLimitShare: number | null;
  };
  /** Counters and gauges by full name. */
  readonly metrics: ReadonlyMap<string, number>;
  /** The buckets of timers by full name. */
  readonly timers: ReadonlyMap<string, readonly number[]>;
}

/** The state of the service. */
export interface Snapshot extends Counts {
  /** Counts of each minute of the last hour by name, the current minute last. */
  readonly hour: ReadonlyMap<string, readonly number[]>;
  readonly version: string;
  readonly startedAt: number;
  /** `ok`, `degraded` or `failing`. */
  readonly health: string;
  readonly failing: readonly Remark[];
  readonly degraded: readonly Remark[];
  readonly rules: readonly RuleStatistics[];
  readonly rulesTotal: number;
  readonly topOverLimited: readonly OverLimitKey[];
  readonly configuration: ConfigurationState;
  readonly administration: boolean;
  readonly webhooks: boolean;
  /** The kind of the cache. */
  readonly cache: string;
  /** The bounds of the buckets of timers. */
  readonly boundsMs: readonly number[];
}

/** Number of seconds that are kept and shown. */
export const KEPT_SECONDS = 120;

/** Appends counts and drops those older than two minutes, and those of a clock that was set back. */
export function withCounts(history: readonly Counts[], next: Counts): readonly Counts[] {
  const since = next.at - KEPT_SECONDS * 1_000;
  const { at, decisions, metrics, timers } = next;
  return [...history.filter((one) => one.at > since && one.at < at), { at, decisions, metrics, timers }];
}

/** Parses a snapshot; throws on invalid JSON. */
export function readSnapshot(text: string): Snapshot {
  const all = fieldsOf(JSON.parse(text));
  const health = fieldsOf(all["health"]);
  const decisions = fieldsOf(all["decisions"]);
  const [metrics, timers] = [fieldsOf(all["metrics"]), fieldsOf(all["timers"])];
  const hour = fieldsOf(all["history"]);
  return {
    at: count(all, "at"),
    version: textOf(all, "version"),
    startedAt: count(all, "startedAt"),
    health: textOf(health, "state"),
    failing: recordsOf(health, "failing").map(remark),
    degraded: recordsOf(health, "degraded").map(remark),
    decisions: {
      total: count(decisions, "total"),
      overLimit: count(decisions, "overLimit"),
      perSecond: numberOf(decisions, "perSecond") ?? null,
      overLimitShare: numberOf(decisions, "overLimitShare") ?? null,
    },
    hour: new Map(Object.keys(hour).map((name) => [name, numbersOf(hour, name)])),
    metrics: new Map(Object.keys(metrics).map((name) => [name, count(metrics, name)])),
    timers: new Map(Object.keys(timers).map((name) => [name, numbersOf(timers, name)])),
    rules: recordsOf(all, "rules").map(ruleOf),
    rulesTotal: count(all, "rulesTotal"),
    topOverLimited: recordsOf(all, "topOverLimited").map((one) => ({
      key: textOf(one, "key"),
      count: count(one, "count"),
      errorAtMost: count(one, "errorAtMost"),
    })),
    configuration: configurationOf(fieldsOf(all["configuration"])),
    administration: flagOf(all, "administration"),
    webhooks: flagOf(all, "webhooks"),
    cache: textOf(all, "cache"),
    boundsMs: numbersOf(all, "boundsMs"),
  };
}

function configurationOf(fields: Fields): ConfigurationState {
  return {
    loadedAt: numberOf(fields, "loadedAt") ?? null,
    version: textOf(fields, "version"),
    loaded: count(fields, "loaded"),
    failed: count(fields, "failed"),
    error: textOf(fields, "error") || null,
    loads: recordsOf(fields, "loads").map(loadOf),
  };
}

function loadOf(fields: Fields): ConfigurationLoad {
  return {
    at: count(fields, "at"),
    ok: flagOf(fields, "ok"),
    changed: textsOf(fields, "changed"),
    limits: count(fields, "limits"),
    version: textOf(fields, "version"),
    problems: textsOf(fields, "problems"),
    problemCount: count(fields, "problemCount"),
  };
}

function ruleOf(fields: Fields): RuleStatistics {
  return {
    name: textOf(fields, "name"),
    domain: textOf(fields, "domain"),
    entries: recordsOf(fields, "entries").map((one) => ({
      key: textOf(one, "key"),
      value: textOf(one, "value"),
    })),
    limit: textOf(fields, "limit"),
    at: textOf(fields, "at"),
    shadowMode: flagOf(fields, "shadowMode"),
    quotaMode: flagOf(fields, "quotaMode"),
    hits: count(fields, "hits"),
    overLimit: count(fields, "overLimit"),
    nearLimit: count(fields, "nearLimit"),
    withinLimit: count(fields, "withinLimit"),
  };
}

function remark(fields: Fields): Remark {
  return { component: textOf(fields, "component"), text: textOf(fields, "reason") };
}

function count(fields: Fields, name: string): number {
  return numberOf(fields, name) ?? 0;
}
