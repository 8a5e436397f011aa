import { type Fields, fieldsOf, flagOf, numberOf, recordsOf, textOf } from "./fields.ts";

/** A rule and what was counted for it. */
export interface RuleFigures {
  readonly name: string;
  readonly limit: string;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  readonly hits: number;
  readonly overLimit: number;
  readonly nearLimit: number;
  readonly withinLimit: number;
}

/** A key that was over its limit often. */
export interface OverLimitedKey {
  readonly key: string;
  readonly count: number;
  /** How much too high the count may be. */
  readonly errorAtMost: number;
}

/** Something that a component says about itself. */
export interface Remark {
  readonly component: string;
  readonly text: string;
}

/** The service at one moment. */
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
  readonly rules: readonly RuleFigures[];
  readonly rulesTotal: number;
  readonly topOverLimited: readonly OverLimitedKey[];
  readonly configuration: {
    readonly loadedAt: number | null;
    readonly version: string;
    readonly loaded: number;
    readonly failed: number;
    readonly error: string | null;
  };
  /** Whether the service has a token for its administration. */
  readonly administration: boolean;
  /** Whether the webhook service is on. */
  readonly webhooks: boolean;
}

/** Reads a snapshot as the stream brings it; throws where it is no JSON. */
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

function configurationOf(fields: Fields): Snapshot["configuration"] {
  return {
    loadedAt: numberOf(fields, "loadedAt") ?? null,
    version: textOf(fields, "version"),
    loaded: count(fields, "loaded"),
    failed: count(fields, "failed"),
    error: textOf(fields, "error") || null,
  };
}

function ruleOf(fields: Fields): RuleFigures {
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
