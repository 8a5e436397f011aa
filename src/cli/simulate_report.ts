import { timeText } from "../base/rfc3339.ts";
import { shownText } from "../base/byte_text.ts";
import { type Entry, shownEntry } from "../ratelimit/request.ts";
import { limitText } from "../ratelimit/rules/rules_text.ts";
import {
  CHANGE_KINDS,
  type ChangeKind,
  type RequestChange,
  type SimulatedDecision,
  type SimulatedStatus,
} from "../ratelimit/forecast/simulation.ts";
import type { ChangeCounts, RuleTally, SimulationTally } from "../ratelimit/forecast/simulation_tally.ts";
import { plainText, shortened } from "./plain_text.ts";
import type { TimedRequest } from "./request_lines.ts";

/** A decision that is shown: one that changes, or one over its limit where nothing is compared. */
export interface FoundDecision {
  readonly line: number;
  readonly request: TimedRequest;
  readonly before: SimulatedDecision | undefined;
  readonly after: SimulatedDecision;
  readonly change: RequestChange | undefined;
}

/** The result after every line was read. Times are in milliseconds since the epoch. */
export interface SimulationSummary {
  readonly tally: SimulationTally;
  readonly compares: boolean;
  readonly wrong: number;
  readonly first: number;
  readonly last: number;
  readonly back: {
    readonly requests: number;
    readonly mostMs: number;
    /** Those whose window may have lost its counters. */
    readonly tooLate: number;
  };
  readonly evicted: number;
  readonly hidden: Readonly<Record<ChangeKind, number>>;
}

const MAX_SHOWN = 200;
const KIND_TEXTS: Readonly<Record<ChangeKind, string>> = {
  toOverLimit: "OK -> OVER_LIMIT",
  toOk: "OVER_LIMIT -> OK",
  otherLimit: "other limit",
};

/** A decision for people: what becomes of the request, then the descriptors that matter. */
export function decisionLines({ line, request, before, after, change }: FoundDecision): string[] {
  const overall = before === undefined || before.overallCode === after.overallCode
    ? after.overallCode
    : `${before.overallCode} -> ${after.overallCode}`;
  const lines = [`line ${line}, ${timeText(request.time)}: ${overall}`];
  for (const [index, status] of after.statuses.entries()) {
    const old = before?.statuses[index];
    const matters = old === undefined ? status.code === "OVER_LIMIT" : change?.statuses[index] !== undefined;
    if (!matters) continue;
    const texts = [...(old === undefined ? [] : [statusText(old)]), statusText(status)];
    lines.push(`  ${entriesText(request.descriptors[index]?.entries ?? [])}: ${texts.join(" -> ")}`);
  }
  return lines;
}

/** The summary for people. */
export function summaryLines(summary: SimulationSummary): string[] {
  const { tally, compares, wrong, first, last } = summary;
  const { requests, decisions, overLimit, changedRequests, changedDecisions } = tally;
  const pair = (old: number, now: number) => compares ? `${old} -> ${now}` : `${now}`;
  const changed = (counts: ChangeCounts) => compares ? `; changed: ${kindsText(counts)}` : "";
  const overDecisions = tally.rules.reduce(
    (sum, rule) => ({ old: sum.old + rule.old.overLimit, new: sum.new + rule.new.overLimit }),
    { old: 0, new: 0 },
  );
  return [
    ...hiddenLines(summary),
    `requests: ${requests}, over limit: ${pair(overLimit.old, overLimit.new)}${changed(changedRequests)}`,
    `decisions: ${decisions}, over limit: ${pair(overDecisions.old, overDecisions.new)}` +
    changed(changedDecisions),
    `times: ${timeText(first)} to ${timeText(last)}`,
    ...(wrong === 0 ? [] : [`invalid lines: ${wrong}`]),
    "",
    ...tableLines(tally.rules, compares),
    ...noteLines(summary),
  ];
}

function statusText({ code, limit, remaining, shadowed }: SimulatedStatus): string {
  if (limit === undefined) return `${code} without a limit`;
  const by = limit.rule === undefined ? "the limit of the request" : plainText(limit.rule.fullKey);
  if (limit.unlimited) return `${code} by ${by} (unlimited)`;
  const shadow = shadowed ? ", over in shadow mode" : "";
  return `${code} by ${by} (${limitText(limit)}), remaining ${remaining}${shadow}`;
}

function entriesText(entries: readonly Entry[]): string {
  return shortened(
    plainText(entries.map(shownEntry).map(({ key, value }) => `${key}=${value}`).join(",")),
    MAX_SHOWN,
  );
}

function kindsText(counts: Readonly<ChangeCounts>): string {
  return CHANGE_KINDS.map((kind) => `${counts[kind]} ${KIND_TEXTS[kind]}`).join(", ");
}

function hiddenLines({ hidden, compares }: SimulationSummary): string[] {
  const kinds = CHANGE_KINDS.filter((kind) => hidden[kind] > 0);
  if (kinds.length === 0) return [];
  const texts = kinds.map((kind) => `${hidden[kind]} ${compares ? KIND_TEXTS[kind] : "OVER_LIMIT"}`);
  return [`not shown, by --max-changes: ${texts.join(", ")}`];
}

function tableLines(rules: readonly RuleTally[], compares: boolean): string[] {
  const changes = compares ? CHANGE_KINDS.map((kind) => KIND_TEXTS[kind]) : [];
  const rows = [["rule", "decisions", "over limit", "over in shadow mode", ...changes]];
  for (const rule of rules) {
    const pair = (name: "decisions" | "overLimit" | "shadowed") => {
      return compares ? `${rule.old[name]} -> ${rule.new[name]}` : `${rule.new[name]}`;
    };
    const counts = compares ? CHANGE_KINDS.map((kind) => `${rule.changed[kind]}`) : [];
    rows.push([ruleName(rule), pair("decisions"), pair("overLimit"), pair("shadowed"), ...counts]);
  }
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd());
}

function ruleName({ source, rule }: RuleTally): string {
  if (source === "rule") return plainText(rule);
  return source === "request" ? "(limits of the requests)" : "(no limit)";
}

function noteLines({ back, evicted }: SimulationSummary): string[] {
  const lines: string[] = [];
  if (back.requests > 0) {
    const most = `by at most ${back.mostMs / 1_000} s`;
    lines.push(`requests that go back in time: ${back.requests}, ${most}; each was decided at its own time`);
  }
  if (back.tooLate > 0) {
    lines.push(`by more than a minute: ${back.tooLate}; windows that were over may have begun anew for them`);
  }
  if (evicted > 0) {
    lines.push(`evicted counters: ${evicted}; a larger MEMORY_MAX_KEYS would be exact`);
  }
  return lines.length === 0 ? [] : ["", ...lines];
}

/** A decision for machines: one line of JSON with every descriptor of the request. */
export function decisionJson({ line, request, before, after, change }: FoundDecision): string {
  return JSON.stringify({
    type: before === undefined ? "overLimit" : "change",
    line,
    time: timeText(request.time),
    domain: shownText(request.domain),
    change: change?.kind,
    overallCode: { old: before?.overallCode, new: after.overallCode },
    descriptors: after.statuses.map((status, index) => {
      const old = before?.statuses[index];
      return {
        entries: (request.descriptors[index]?.entries ?? []).map(shownEntry),
        change: change?.statuses[index],
        old: old === undefined ? undefined : statusJson(old),
        new: statusJson(status),
      };
    }),
  });
}

/** The summary for machines: one line of JSON. */
export function summaryJson(summary: SimulationSummary): string {
  const { tally, compares, wrong, first, last, back, evicted, hidden } = summary;
  const { requests, decisions, overLimit, changedRequests, changedDecisions } = tally;
  return JSON.stringify({
    type: "summary",
    requests,
    decisions,
    wrongLines: wrong,
    from: timeText(first),
    to: timeText(last),
    overLimitRequests: compares ? overLimit : { new: overLimit.new },
    ...(compares ? { changedRequests, changedDecisions } : {}),
    rules: tally.rules.map((rule) => {
      const { source, rule: name, old, new: now, changed } = rule;
      return {
        source,
        rule: source === "rule" ? name : undefined,
        ...(compares ? { old, new: now, changed } : { new: now }),
      };
    }),
    notShown: hidden,
    backInTime: {
      requests: back.requests,
      mostSeconds: back.mostMs / 1_000,
      byMoreThanAMinute: back.tooLate,
    },
    evictedCounters: evicted,
  });
}

function statusJson({ code, limit, remaining, shadowed }: SimulatedStatus): unknown {
  return {
    code,
    rule: limit?.rule?.fullKey,
    limit: limit === undefined ? undefined : limit.unlimited ? { unlimited: true } : {
      requestsPerUnit: limit.requestsPerUnit,
      unit: limit.unit,
      windowSeconds: limit.windowSeconds,
      timezone: limit.calendar?.timezone,
      algorithm: limit.conditional?.algorithm,
    },
    remaining: limit === undefined ? undefined : remaining,
    shadowed,
  };
}
