import type { ConfigurationState, OverLimitKey, RuleStatistics } from "../snapshot.ts";
import { type Fields, fieldsOf, flagOf, numberOf, recordsOf, textOf } from "./fields.ts";

/** The state of a component. */
export interface Remark {
  readonly component: string;
  readonly text: string;
}

/** The state of the service. */
export interface Snapshot {
  readonly at: number;
  readonly version: string;
  readonly startedAt: number;
  readonly healthy: boolean;
  readonly failing: readonly Remark[];
  readonly noted: readonly Remark[];
  readonly decisions: {
    readonly total: number;
    readonly overLimit: number;
    readonly perSecond: number | null;
    readonly overLimitShare: number | null;
  };
  readonly rules: readonly RuleStatistics[];
  readonly rulesTotal: number;
  readonly topOverLimited: readonly OverLimitKey[];
  readonly configuration: ConfigurationState;
  readonly administration: boolean;
  readonly webhooks: boolean;
}

/** How many seconds of decision rates are kept and shown. */
export const RATE_SECONDS = 120;

/** The decisions of one second. */
export interface RatePoint {
  readonly at: number;
  readonly perSecond: number;
  /** 0 to 1. */
  readonly overShare: number;
}

/** Appends a point and drops those older than two minutes. */
export function withPoint(points: readonly RatePoint[], point: RatePoint): readonly RatePoint[] {
  const since = point.at - RATE_SECONDS * 1_000;
  return [...points.filter(({ at }) => at > since && at < point.at), point];
}

/** Parses a snapshot; throws on invalid JSON. */
export function readSnapshot(text: string): Snapshot {
  const all = fieldsOf(JSON.parse(text));
  const health = fieldsOf(all["health"]);
  const decisions = fieldsOf(all["decisions"]);
  return {
    at: count(all, "at"),
    version: textOf(all, "version"),
    startedAt: count(all, "startedAt"),
    healthy: flagOf(health, "healthy"),
    failing: recordsOf(health, "failing").map((one) => remark(one, "reason")),
    noted: recordsOf(health, "noted").map((one) => remark(one, "note")),
    decisions: {
      total: count(decisions, "total"),
      overLimit: count(decisions, "overLimit"),
      perSecond: numberOf(decisions, "perSecond") ?? null,
      overLimitShare: numberOf(decisions, "overLimitShare") ?? null,
    },
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
  };
}

function configurationOf(fields: Fields): ConfigurationState {
  return {
    loadedAt: numberOf(fields, "loadedAt") ?? null,
    version: textOf(fields, "version"),
    loaded: count(fields, "loaded"),
    failed: count(fields, "failed"),
    error: textOf(fields, "error") || null,
  };
}

function ruleOf(fields: Fields): RuleStatistics {
  return {
    name: textOf(fields, "name"),
    limit: textOf(fields, "limit"),
    shadowMode: flagOf(fields, "shadowMode"),
    quotaMode: flagOf(fields, "quotaMode"),
    hits: count(fields, "hits"),
    overLimit: count(fields, "overLimit"),
    nearLimit: count(fields, "nearLimit"),
    withinLimit: count(fields, "withinLimit"),
  };
}

function remark(fields: Fields, name: string): Remark {
  return { component: textOf(fields, "component"), text: textOf(fields, name) };
}

function count(fields: Fields, name: string): number {
  return numberOf(fields, name) ?? 0;
}
