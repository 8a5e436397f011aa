import type { ExplainedDescriptor, ExplainedLimit, Explanation } from "../ratelimit/explain.ts";
import type { WalkedLevel } from "../ratelimit/explain_walk.ts";
import type { Entry } from "../ratelimit/request.ts";
import { plainText } from "./plain_text.ts";

/** An explanation as lines for people. What others wrote is shown as plain text. */
export function explanationLines(explanation: Explanation): string[] {
  const { domain, at, descriptors } = explanation;
  const blocks = descriptors.flatMap((descriptor, index) => ["", ...descriptorLines(descriptor, index)]);
  return [`domain ${domain} at ${at}`, ...blocks].map(plainText);
}

function descriptorLines(descriptor: ExplainedDescriptor, index: number): string[] {
  const { entries, levels, cacheKey, windowEnds } = descriptor;
  const counter = cacheKey === undefined ? [] : [
    `  cache key    ${cacheKey}`,
    `  window ends  ${windowEnds}`,
  ];
  return [
    `descriptor ${index}: ${entries.map(entryText).join(",")}`,
    ...levels.flatMap(levelLines),
    ...resultLines(descriptor),
    ...counter,
  ];
}

function levelLines(
  { entry, rules, furtherRules, otherKeys, furtherKeys }: WalkedLevel,
  index: number,
): string[] {
  const width = Math.max(0, ...rules.map(({ rule }) => rule.length));
  const rows = rules.map(({ rule, chosen, why }) =>
    `    ${chosen ? ">" : "-"} ${rule.padEnd(width)}  ${why}`
  );
  if (furtherRules > 0) rows.push(`    - and ${furtherRules} more with this key`);
  if (otherKeys.length > 0) {
    const more = furtherKeys > 0 ? ` and ${furtherKeys} more` : "";
    rows.push(`    - other keys of this level: ${otherKeys.join(", ")}${more}`);
  }
  return [`  level ${index + 1}: ${entryText(entry)}`, ...rows];
}

function resultLines({ outcome, why, limit, replacedBy = [] }: ExplainedDescriptor): string[] {
  switch (outcome) {
    case "none":
      return [`  no limit     ${why}`];
    case "replaced": {
      const by = replacedBy.map(({ descriptor, rule }) => `${rule} of descriptor ${descriptor}`).join(", ");
      return [`  no limit     ${limit?.rule ?? ""} falls away: ${by} replaces "${limit?.name ?? ""}"`];
    }
    case "unlimited":
      return [`  unlimited    ${limit?.rule ?? ""}: nothing is counted`];
    case "limited":
      return limit === undefined ? [] : [
        `  limit        ${amountOf(limit)}`,
        `  rule         ${limit.rule ?? "none: the request brings its limit along"}`,
        ...remarksOf(limit),
      ];
  }
}

function amountOf({ requestsPerUnit = 0, unit, windowSeconds, name }: ExplainedLimit): string {
  const named = name === undefined ? "" : `, named "${name}"`;
  return `${requestsPerUnit} per ${unit ?? ""} (a window of ${windowSeconds} s)${named}`;
}

function remarksOf({ shadowMode, quotaMode, replaces }: ExplainedLimit): string[] {
  const lines: string[] = [];
  if (shadowMode) lines.push("  shadow mode  it is counted, and answered as OK");
  if (quotaMode) lines.push("  quota mode   the call is over its limit only when all its quotas are");
  if (replaces.length > 0) lines.push(`  replaces     ${replaces.join(", ")}`);
  return lines;
}

function entryText({ key, value }: Entry): string {
  return value === "" ? key : `${key}=${value}`;
}
