import { compilePattern, matchesPattern } from "../rules/pattern_index.ts";
import { type Entry, shownEntry } from "../request.ts";
import { nodeFor } from "../rules/match_rules.ts";
import type { KeyRules, RateLimit, RuleNode, RuleTable } from "../rules/rules.ts";

/** The kind of match of a rule with an entry: exact value, pattern, or key only. */
type MatchKind = "exact" | "pattern" | "key";

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
    node = rules === undefined ? undefined : nodeFor(rules, entry.value);
    const walked = walkedLevel(level, rules, entry, node);
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

function walkedLevel(
  level: RuleTable,
  rules: KeyRules | undefined,
  entry: Entry,
  chosen: RuleNode | undefined,
): WalkedLevel {
  const otherKeys = level.keys().filter((key) => key !== entry.key).take(MAX_SHOWN).toArray();
  const others = level.size - (rules === undefined ? 0 : 1);
  const walked = rules === undefined ? [] : walkedRules(rules, entry, chosen);
  const count = (rules?.exact?.size ?? 0) + (rules?.keyOnly === undefined ? 0 : 1);
  return {
    entry: shownEntry(entry),
    rules: walked,
    furtherRules: count - walked.length,
    otherKeys,
    furtherKeys: others - otherKeys.length,
  };
}

function walkedRules(rules: KeyRules, { key, value }: Entry, chosen: RuleNode | undefined): WalkedRule[] {
  const choice = chosen === undefined ? undefined : kindOf(rules, value, chosen);
  const groups: Record<"chosen" | "matching" | "rest", WalkedRule[]> = { chosen: [], matching: [], rest: [] };
  const add = (rule: string, by: MatchKind, matches: boolean, chosen: boolean) => {
    const group = chosen ? groups.chosen : matches ? groups.matching : groups.rest;
    group.push({ rule, by, matches, chosen, why: reason({ by, matches, chosen }, choice) });
  };
  let compared = 0;
  for (const [text, node] of rules.exact ?? []) {
    const isChosen = node === chosen;
    if (++compared > MAX_COMPARED && !isChosen) {
      if (groups.chosen.length > 0 || choice === undefined || choice === "key") break;
      continue;
    }
    const isPattern = text.includes("*") && !(isChosen && choice === "exact");
    const matches = isPattern ? matchesPattern(compilePattern(text), value) : text === value;
    add(`${key}_${text}`, isPattern ? "pattern" : "exact", matches, isChosen);
  }
  if (rules.keyOnly !== undefined) add(key, "key", true, rules.keyOnly === chosen);
  return [...groups.chosen, ...groups.matching, ...groups.rest].slice(0, MAX_SHOWN);
}

function kindOf(rules: KeyRules, value: string, chosen: RuleNode): MatchKind {
  if (rules.exact?.get(value) === chosen) return "exact";
  return rules.keyOnly === chosen ? "key" : "pattern";
}

function reason(
  { by, matches, chosen }: Omit<WalkedRule, "rule" | "why">,
  choice: MatchKind | undefined,
): string {
  if (chosen) return CHOSEN[by];
  if (!matches) return by === "pattern" ? "its pattern does not match" : "another value";
  if (by === "key") return "it matches any value, but a rule with a matching value takes precedence";
  return choice === "exact"
    ? "its pattern matches, but an exact value takes precedence"
    : "its pattern matches, but an earlier pattern takes precedence";
}

const CHOSEN: Readonly<Record<MatchKind, string>> = {
  exact: "exact value",
  pattern: "first matching pattern",
  key: "it matches any value, and no rule with a value matches",
};
