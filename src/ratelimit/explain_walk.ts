import { compilePattern, matchesPattern } from "./pattern.ts";
import type { Entry } from "./request.ts";
import { type KeyRules, nodeFor, type RateLimit, type RuleNode, type RuleTable } from "./rules.ts";

/** How a rule of one level takes an entry: by its exact value, by its pattern, or by its key alone. */
export type MatchKind = "exact" | "pattern" | "key";

/** A rule that was looked at for an entry. */
export interface WalkedRule {
  /** As it stands in the full key of a rule: `key`, or `key_value`. */
  readonly rule: string;
  readonly by: MatchKind;
  /** It would take the entry if nothing more specific did. */
  readonly matches: boolean;
  /** It is the one that takes the entry; the walk goes on below it. */
  readonly chosen: boolean;
  readonly why: string;
}

/** One level of the rules, as an entry met it. */
export interface WalkedLevel {
  readonly entry: Entry;
  /** Rules of this key: the chosen one first, then others that match, then the rest as declared. */
  readonly rules: readonly WalkedRule[];
  /** Rules of this key beside those. */
  readonly furtherRules: number;
  /** Keys of the level that the entry does not have. */
  readonly otherKeys: readonly string[];
  /** Keys beside those. */
  readonly furtherKeys: number;
}

/** The way of a descriptor through the levels. */
export interface Walk {
  /** Up to the one at which it ends. */
  readonly levels: readonly WalkedLevel[];
  /** What the walk came to; absent where it ended without. */
  readonly limit: RateLimit | undefined;
  /** Why it ended without a limit; empty where it found one. */
  readonly end: string;
}

/** Most rules and keys of one level that are shown. */
const MOST_SHOWN = 20;
/** Most rules of one level that are tried for what they would do: a level may hold a hundred thousand. */
const MOST_TRIED = 1_000;

/** Follows the entries through the levels, with the choice that decisions make at each of them. */
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
    if (rules === undefined) return without(`no rule of level ${levels.length} has the key "${entry.key}"`);
    if (node === undefined) return without(`no rule of level ${levels.length} takes this value`);
    name = walked.rules[0]?.rule ?? "";
    level = node.children;
  }
  if (node === undefined) return without("the descriptor has no entries");
  if (node.limit !== undefined) return { levels, limit: node.limit, end: "" };
  const further = node.children === undefined ? "" : ": those nested in it want further entries";
  return without(`the rule "${name}" has no limit of its own${further}`);
}

function walkedLevel(
  level: RuleTable,
  rules: KeyRules | undefined,
  entry: Entry,
  chosen: RuleNode | undefined,
): WalkedLevel {
  const otherKeys: string[] = [];
  for (const key of level.keys()) {
    if (key === entry.key) continue;
    if (otherKeys.length === MOST_SHOWN) break;
    otherKeys.push(key);
  }
  const others = level.size - (rules === undefined ? 0 : 1);
  const walked = rules === undefined ? [] : walkedRules(rules, entry, chosen);
  const count = (rules?.exact?.size ?? 0) + (rules?.keyOnly === undefined ? 0 : 1);
  return {
    entry,
    rules: walked,
    furtherRules: count - walked.length,
    otherKeys,
    furtherKeys: others - otherKeys.length,
  };
}

function walkedRules(rules: KeyRules, { key, value }: Entry, chosen: RuleNode | undefined): WalkedRule[] {
  const choice = chosen === undefined ? undefined : kindOf(rules, value, chosen);
  const groups: Record<"chosen" | "matching" | "rest", WalkedRule[]> = { chosen: [], matching: [], rest: [] };
  const take = (rule: string, by: MatchKind, matches: boolean, isChosen: boolean) => {
    const why = reason({ by, matches, isChosen, choice });
    const group = isChosen ? groups.chosen : matches ? groups.matching : groups.rest;
    group.push({ rule, by, matches, chosen: isChosen, why });
  };
  let tried = 0;
  for (const [text, node] of rules.exact ?? []) {
    const isChosen = node === chosen;
    if (++tried > MOST_TRIED && !isChosen) {
      if (groups.chosen.length > 0 || choice === undefined || choice === "key") break;
      continue;
    }
    const isPattern = text.includes("*") && !(isChosen && choice === "exact");
    const matches = isPattern ? matchesPattern(compilePattern(text), value) : text === value;
    take(`${key}_${text}`, isPattern ? "pattern" : "exact", matches, isChosen);
  }
  if (rules.keyOnly !== undefined) take(key, "key", true, rules.keyOnly === chosen);
  return [...groups.chosen, ...groups.matching, ...groups.rest].slice(0, MOST_SHOWN);
}

function kindOf(rules: KeyRules, value: string, chosen: RuleNode): MatchKind {
  if (rules.exact?.get(value) === chosen) return "exact";
  return rules.keyOnly === chosen ? "key" : "pattern";
}

function reason({ by, matches, isChosen, choice }: {
  readonly by: MatchKind;
  readonly matches: boolean;
  readonly isChosen: boolean;
  /** How the chosen rule takes the entry; absent where none does. */
  readonly choice: MatchKind | undefined;
}): string {
  if (isChosen) return CHOSEN[by];
  if (!matches) return by === "pattern" ? "its pattern does not match" : "its value is another one";
  if (by === "key") return "it takes any value, but a rule with a value that fits wins";
  return choice === "exact"
    ? "its pattern matches, but an exact value wins"
    : "its pattern matches, but one that is declared before it wins";
}

const CHOSEN: Readonly<Record<MatchKind, string>> = {
  exact: "its value is exactly this one",
  pattern: "its pattern is the first that matches",
  key: "it takes any value, and no rule with a value fits",
};
