import { compilePattern, matchesPattern } from "../rules/pattern_index.ts";
import { isTooLongForExpressions, matchesExpression } from "../rules/value_match.ts";
import { type Entry, shownEntry } from "../request.ts";
import { nodeFor } from "../rules/match_rules.ts";
import type { KeyRules, NamedRule, RateLimit, RuleNode, RuleTable } from "../rules/rules.ts";

/** The kind of match of a rule with an entry: exact value, list of values, pattern, expression, or key only. */
export const MATCH_KINDS = ["exact", "in", "pattern", "regex", "key"] as const;
type MatchKind = typeof MATCH_KINDS[number];

/** A rule that was compared with an entry. */
interface WalkedRule {
  readonly rule: string;
  readonly by: MatchKind;
  /** True if it matches, even if another rule is more specific. */
  readonly matches: boolean;
  /** True if it is the most specific match. */
  readonly chosen: boolean;
  readonly why: string;
}

/** One level of the rules, compared with an entry. */
export interface WalkedLevel {
  readonly entry: Entry;
  /** Rules of the key: the chosen one, other matches, the rest in order of declaration. */
  readonly rules: readonly WalkedRule[];
  readonly furtherRules: number;
  readonly otherKeys: readonly string[];
  readonly furtherKeys: number;
}

/** The path of a descriptor through the levels. */
export interface Walk {
  readonly levels: readonly WalkedLevel[];
  readonly limit: RateLimit | undefined;
  /** Why there is no limit; empty with one. */
  readonly end: string;
}

/** Maximum number of rules and keys per level. */
const MAX_SHOWN = 20;
/** Maximum number of rules to compare per level, which may have 100,000. */
const MAX_COMPARED = 1_000;

/** Follows the entries through the levels, with the same choices as decisions. */
export function walkRules(table: RuleTable, entries: readonly Entry[]): Walk {
  const levels: WalkedLevel[] = [];
  let level: RuleTable | undefined = table;
  let node: RuleNode | undefined;
  let name = "";
  const without = (end: string): Walk => ({ levels, limit: undefined, end });
  for (const entry of entries) {
    if (level === undefined) return without(`nothing is nested in the rule "${name}"`);
    const rules: KeyRules | undefined = level.get(entry.key);
    const parent: RuleNode | undefined = node;
    node = rules === undefined ? undefined : nodeFor(rules, entry.value);
    const walked = walkedLevel(level, rules, entry, { chosen: node, parent });
    levels.push(walked);
    if (rules === undefined) {
      return without(`no rule of level ${levels.length} has the key "${shownEntry(entry).key}"`);
    }
    if (node === undefined) return without(`no rule of level ${levels.length} matches this value`);
    name = walked.rules[0]?.rule ?? "";
    level = node.children;
  }
  if (node === undefined) return without("the descriptor has no entries");
  if (node.limit !== undefined) return { levels, limit: node.limit, end: "" };
  const further = node.children === undefined ? "" : ": nested rules require more entries";
  return without(`the rule "${name}" has no limit${further}`);
}

/** The rule that was chosen at a level, and the one above it. */
interface WalkedNodes {
  readonly chosen: RuleNode | undefined;
  readonly parent: RuleNode | undefined;
}

function walkedLevel(
  level: RuleTable,
  rules: KeyRules | undefined,
  entry: Entry,
  nodes: WalkedNodes,
): WalkedLevel {
  const otherKeys = level.keys().filter((key) => key !== entry.key).take(MAX_SHOWN).toArray();
  const others = level.size - (rules === undefined ? 0 : 1);
  const walked = rules === undefined ? [] : walkedRules(rules, entry, nodes);
  const count = rules === undefined ? 0 : ruleCount(rules);
  return {
    entry: shownEntry(entry),
    rules: walked,
    furtherRules: count - walked.length,
    otherKeys,
    furtherKeys: others - otherKeys.length,
  };
}

/** Counts a list of values as one rule. */
function ruleCount(rules: KeyRules): number {
  const listed = namedRules(rules).reduce((sum, { match }) => sum + ("in" in match ? match.in.length : 0), 0);
  return (rules.exact?.size ?? 0) - listed + namedRules(rules).length + (rules.keyOnly === undefined ? 0 : 1);
}

function namedRules({ named }: KeyRules): NamedRule[] {
  return named?.values().toArray().flat() ?? [];
}

function walkedRules(rules: KeyRules, { key, value }: Entry, { chosen, parent }: WalkedNodes): WalkedRule[] {
  const choice = chosen === undefined ? undefined : kindOf(rules, value, chosen);
  let isFallback = false;
  const groups: Record<"chosen" | "matching" | "rest", WalkedRule[]> = { chosen: [], matching: [], rest: [] };
  const add = (rule: string, by: MatchKind, matches: boolean, chosen: boolean) => {
    const group = chosen ? groups.chosen : matches ? groups.matching : groups.rest;
    const why = by === "regex" && isTooLongForExpressions(value)
      ? "the value is too long: none of more than 1,024 bytes matches an expression"
      : reason({ by, matches, chosen }, choice);
    group.push({
      rule,
      by,
      matches,
      chosen,
      why: isFallback ? `${why}; it takes the limit of its parent` : why,
    });
  };
  let compared = 0;
  const named = namedRules(rules);
  for (const { text, match, node } of named) {
    const isChosen = node === chosen;
    if (++compared > MAX_COMPARED && !isChosen) continue;
    const [by, matches] = "in" in match
      ? ["in", match.in.includes(value)] as const
      : ["regex", matchesExpression(match.regex, value)] as const;
    add(`${key}_${text}`, by, matches, isChosen);
  }
  const lists = new Set(named.map(({ node }) => node));
  for (const [text, node] of rules.exact ?? []) {
    if (lists.has(node)) continue;
    const isChosen = node === chosen;
    if (++compared > MAX_COMPARED && !isChosen) {
      if (groups.chosen.length > 0 || choice === undefined || choice === "key") break;
      continue;
    }
    const isPattern = text.includes("*") && !(isChosen && choice === "exact");
    const matches = isPattern ? matchesPattern(compilePattern(text), value) : text === value;
    add(`${key}_${text}`, isPattern ? "pattern" : "exact", matches, isChosen);
  }
  const { keyOnly } = rules;
  if (keyOnly !== undefined) {
    isFallback = keyOnly.limit !== undefined && keyOnly.limit === parent?.limit;
    add(key, "key", true, keyOnly === chosen);
  }
  return [...groups.chosen, ...groups.matching, ...groups.rest].slice(0, MAX_SHOWN);
}

function kindOf(rules: KeyRules, value: string, chosen: RuleNode): MatchKind {
  const named = namedRules(rules).find(({ node }) => node === chosen);
  if (named !== undefined) return "in" in named.match ? "in" : "regex";
  if (rules.exact?.get(value) === chosen) return "exact";
  return rules.keyOnly === chosen ? "key" : "pattern";
}

function reason(
  { by, matches, chosen }: Omit<WalkedRule, "rule" | "why">,
  choice: MatchKind | undefined,
): string {
  if (chosen) return CHOSEN[by];
  if (!matches) return MISSED[by];
  if (by === "key") return "it matches any value, but a rule with a matching value takes precedence";
  const matching = by === "regex" ? "its expression matches" : "its pattern matches";
  if (choice === "exact" || choice === "in") return `${matching}, but an exact value takes precedence`;
  if (by === "pattern") return `${matching}, but an earlier pattern takes precedence`;
  return `${matching}, but ${choice === "pattern" ? "a pattern" : "an earlier expression"} takes precedence`;
}

const MISSED: Readonly<Record<MatchKind, string>> = {
  exact: "another value",
  in: "its list does not have this value",
  pattern: "its pattern does not match",
  regex: "its expression does not match",
  key: "another key",
};

const CHOSEN: Readonly<Record<MatchKind, string>> = {
  exact: "exact value",
  in: "its list has this value",
  pattern: "first matching pattern",
  regex: "first matching expression",
  key: "it matches any value, and no rule with a value matches",
};
