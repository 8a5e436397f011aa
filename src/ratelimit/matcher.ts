import type { Entry } from "./request.ts";
import { type KeyRules, nodeFor, type RateLimit, type RuleNode, type RuleTable } from "./rules.ts";

/**
 * The limit of the rule that the entries lead to, one level an entry. The most specific rule of a
 * level decides and there is no way back: where its branch ends early, nothing limits the request.
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
