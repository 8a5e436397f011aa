import type { Entry } from "../ratelimit/request.ts";
import { limitText } from "../ratelimit/rules_text.ts";
import { CHANGE_KINDS, type ChangeKind, type SimulatedStatus } from "../ratelimit/simulation.ts";
import type { ChangeCounts, RuleTally } from "../ratelimit/simulation_tally.ts";
import { timeText } from "../base/rfc3339.ts";
import { plainText, shortened } from "./plain_text.ts";
import type { FoundDecision, SimulationSummary } from "./simulate_report.ts";

/** Most characters of a descriptor that are shown. */
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
    ...(wrong === 0 ? [] : [`wrong lines: ${wrong}`]),
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
  return shortened(plainText(entries.map(({ key, value }) => `${key}=${value}`).join(",")), MAX_SHOWN);
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
    lines.push(`counters that had to give way: ${evicted}; a larger MEMORY_MAX_KEYS would be exact`);
  }
  return lines.length === 0 ? [] : ["", ...lines];
}
