import type { Entry } from "../request.ts";
import type { KeyRules, RateLimit, RuleNode, RuleTable } from "./rules.ts";

/** The rule for a value: exact or in a list, then patterns and then expressions in order of declaration, then any value. */
export function nodeFor(rules: KeyRules, value: string): RuleNode | undefined {
  return rules.exact?.get(value) ?? rules.patterns?.find(value) ?? rules.expressions?.find(value) ??
    rules.keyOnly;
}

/**
 * The limit for the entries, one level per entry. The most specific rule of each level is chosen without backtracking:
 * there is no limit if its branch ends early.
 */
export function matchLimit(table: RuleTable, entries: readonly Entry[]): RateLimit | undefined {
  let level: RuleTable | undefined = table;
  let limit: RateLimit | undefined;
  for (const { key, value } of entries) {
    const rules: KeyRules | undefined = level?.get(key);
    const node: RuleNode | undefined = rules === undefined ? undefined : nodeFor(rules, value);
    if (node === undefined) return undefined;
    limit = node.limit;
    level = node.children;
  }
  return limit;
}
