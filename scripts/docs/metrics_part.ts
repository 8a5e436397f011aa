import type { MetricGroup, MetricKind, NamedMetric } from "../../src/base/metrics.ts";
import { namedMetrics } from "../../src/base/metrics.ts";
import { METRIC_SECTIONS } from "../../src/serve/metric_groups.ts";
import { RULE_METRICS } from "../../src/stats/declarations.ts";
import { builtInMapping } from "../../src/stats/pull_rule_mapping.ts";
import { table } from "./generated_page.ts";

const KINDS: readonly MetricKind[] = ["counter", "gauge", "timer"];
const HEAD = ["Statistic", "Pull metric", "Kind", "Unit", "Meaning"];

/** The metrics reference of docs/observability.md. */
export function metricsPart(): string {
  return METRIC_SECTIONS.map(({ title, note, groups }) => {
    const rows = groups.flatMap((group) => declaredRows(group));
    return [`### ${title}`, note, table(HEAD, rows)].filter((text) => text !== "").join("\n\n");
  }).join("\n\n");
}

/** A row for each declaration, in the order of the group. */
function declaredRows(group: MetricGroup): string[][] {
  const named = KINDS.flatMap((kind) => namedMetrics(group, kind));
  return Object.entries(group.metrics).map(([name, { kind, unit, meaning, label, values }]) => {
    const [first] = named.filter(({ declaration }) => declaration === group.metrics[name]);
    const isPullOnly = group.prefix === "";
    const choice = values === undefined ? "" : `.<${label ?? "result"}>`;
    const options = values === undefined
      ? ""
      : ` One of: ${values.map((value) => `\`${value}\``).join(", ")}.`;
    return [
      isPullOnly ? `\`${name}\`` : `\`${group.prefix}${name}${choice}\``,
      isPullOnly ? "the same name" : `\`${first === undefined ? "" : pullText(first, group, choice)}\``,
      kind,
      unit,
      meaning + options,
    ];
  });
}

function pullText(metric: NamedMetric, { metrics }: MetricGroup, choice: string): string {
  const { fullName, pullName, labels, declaration } = metric;
  if (metrics !== RULE_METRICS) {
    const isPlainChoice = choice !== "" && declaration.label === undefined;
    const plain = isPlainChoice ? pullName.slice(0, pullName.lastIndexOf(".")) + choice : pullName;
    return withLabels(plain.replaceAll(".", "_"), Object.keys(labels));
  }
  const sample = fullName.replace("<key>", "domain.key1.key2");
  const mapped = builtInMapping({ domains: new Map(), timeAsMilliseconds: false, declared: () => undefined })(
    sample,
    "counter",
  );
  if (mapped === undefined || mapped === "drop") return fullName.replaceAll(".", "_");
  return withLabels(mapped.name, Object.keys(mapped.labels));
}

function withLabels(name: string, labels: readonly string[]): string {
  return labels.length === 0 ? name : `${name}{${labels.join(",")}}`;
}
