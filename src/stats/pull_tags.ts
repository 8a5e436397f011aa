import type { Labels } from "./pull_families.ts";
import { metricName } from "./pull_mapping.ts";

/** Labels that mean something of their own on histograms and summaries. */
const RESERVED: ReadonlySet<string> = new Set(["le", "quantile"]);

/**
 * The labels of EXTRA_TAGS, which stand on every sample. Names become label names, as `zone-a` becomes
 * `zone_a`; throws with every tag, a line each, that cannot be one.
 */
export function labelsOfTags(tags: ReadonlyMap<string, string>): Labels {
  const problems: string[] = [];
  const labels: Record<string, string> = {};
  const tagOf = new Map<string, string>();
  for (const [tag, value] of tags) {
    const label = metricName(tag);
    const state = stateOf(label, tagOf.get(label));
    if (state === undefined) labels[label] = value;
    else problems.push(`Cannot use EXTRA_TAGS ${JSON.stringify(tag)} with USE_PULL_METRICS: ${state}`);
    tagOf.set(label, tag);
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
  return labels;
}

/** Why a label cannot be made; `other` is the tag that has it already. */
function stateOf(label: string, other: string | undefined): string | undefined {
  if (label === "") return "it has no name; a name of letters, digits and _ would be right";
  if (RESERVED.has(label)) {
    return `label "${label}" belongs to histograms and summaries; another name would be right`;
  }
  if (label.startsWith("__")) {
    return `label "${label}" is reserved; a name without __ before it would be right`;
  }
  if (other === undefined) return undefined;
  return `tag ${JSON.stringify(other)} has label "${label}" already; one of the two would be right`;
}
