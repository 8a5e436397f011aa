import type { Entry } from "../request.ts";
import type { RateLimit, RuleNode, RuleTable } from "./rules.ts";

/** The most pairs of a bucket id. */
export const MAX_PAIRS = 8;
/** The most rules that are visited for one bucket; more than a file for people has at one place. */
const MAX_STEPS = 10_000;

/** Why no client may report a bucket with these pairs; undefined if it may. */
export function bucketProblem(pairs: readonly Entry[]): string | undefined {
  if (pairs.length > MAX_PAIRS) return `expected at most ${MAX_PAIRS} pairs`;
  return pairs.length === 0 || pairs.some(({ key }) => key === "") ? "expected pairs with keys" : undefined;
}

/** A limit with the pairs in the order of the path of its rule. */
export interface BucketMatch {
  readonly limit: RateLimit;
  readonly entries: readonly Entry[];
}

/** A rule that matches a pair; a lower rank is more specific. */
interface Candidate {
  readonly node: RuleNode;
  readonly rank: number;
  readonly entry: Entry;
}

/**
 * The limit for a bucket, whose pairs have no order: at each level, over the pairs that are left, an exact value takes
 * precedence over a pattern, a pattern over an expression and that over any value, and then the first rule of the file. All pairs must match; a
 * branch that ends early is left for the next one.
 */
export function matchBucket(table: RuleTable, pairs: readonly Entry[]): BucketMatch | undefined {
  const walk = { path: [], steps: MAX_STEPS };
  const node = pairs.length > MAX_PAIRS ? undefined : walkDown(table, pairs, walk);
  // The copy has no room for more, which counts where there are a million.
  return node?.limit === undefined ? undefined : { limit: node.limit, entries: walk.path.slice() };
}

function walkDown(
  table: RuleTable,
  left: readonly Entry[],
  walk: { readonly path: Entry[]; steps: number },
): RuleNode | undefined {
  for (const { node, entry } of candidates(table, left)) {
    if (walk.steps-- <= 0) return undefined;
    walk.path.push(entry);
    if (left.length === 1) return node;
    const others = left.filter((other) => other !== entry);
    const found = node.children === undefined ? undefined : walkDown(node.children, others, walk);
    if (found !== undefined) return found;
    walk.path.pop();
  }
  return undefined;
}

function candidates(table: RuleTable, left: readonly Entry[]): Candidate[] {
  const found: Candidate[] = [];
  for (const entry of left) {
    const rules = table.get(entry.key);
    if (rules === undefined) continue;
    const { exact, patterns, expressions, keyOnly } = rules;
    const { value } = entry;
    const ranked = [exact?.get(value), patterns?.find(value), expressions?.find(value), keyOnly];
    for (const [rank, node] of ranked.entries()) {
      if (node !== undefined) found.push({ node, rank, entry });
    }
  }
  return found.sort((a, b) => a.rank - b.rank || a.node.order - b.node.order);
}
