import type { Family, Labels, Sample } from "./pull_families.ts";

/** The text format of Prometheus, or OpenMetrics. */
export type PullFormat = "text" | "openmetrics";

/** The `content-type` of each format. */
export const CONTENT_TYPES: Readonly<Record<PullFormat, string>> = {
  text: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** Approximate length of a piece, in characters. */
const PIECE_LENGTH = 65_536;

/** The text of a scrape in pieces; `constantLabels` are on every sample without a label of that name. */
export function* metricsText(
  families: Iterable<Family>,
  { format, constantLabels }: { readonly format: PullFormat; readonly constantLabels: Labels },
): Generator<string, void, void> {
  let text = "";
  for (const family of families) {
    text += headOf(family, format);
    for (const { metricName = family.name, labels, value, exemplar } of family.samples()) {
      const end = format === "openmetrics" ? exemplarText(exemplar) : "";
      text += `${metricName}${labelsText(labels, constantLabels)} ${valueText(value)}${end}\n`;
      if (text.length < PIECE_LENGTH) continue;
      yield text;
      text = "";
    }
  }
  yield format === "openmetrics" ? `${text}# EOF\n` : text;
}

function headOf({ name, help, kind }: Family, format: PullFormat): string {
  const isCounter = format === "openmetrics" && kind === "counter";
  // OpenMetrics requires the suffix of counters; one without it has no type there, to keep its name in both formats.
  const type = isCounter && !name.endsWith("_total") ? "unknown" : kind;
  const family = isCounter ? name.replace(/_total$/, "") : name;
  return `# HELP ${family} ${escaped(help)}\n# TYPE ${family} ${type}\n`;
}

function labelsText(labels: Labels, constantLabels: Labels): string {
  const texts: string[] = [];
  for (const name of Object.keys(labels)) texts.push(labelText(name, labels[name]));
  for (const name of Object.keys(constantLabels)) {
    if (!Object.hasOwn(labels, name)) texts.push(labelText(name, constantLabels[name]));
  }
  return texts.length === 0 ? "" : `{${texts.join(",")}}`;
}

/** Only OpenMetrics has exemplars; their labels have at most 128 characters. */
function exemplarText(exemplar: Sample["exemplar"]): string {
  if (exemplar === undefined) return "";
  const { span: { traceId, spanId }, value, endedAt } = exemplar;
  const seconds = (endedAt / 1_000).toFixed(3);
  return ` # {trace_id="${traceId}",span_id="${spanId}"} ${valueText(value)} ${seconds}`;
}

function labelText(name: string, value = ""): string {
  return `${name}="${escaped(value).replaceAll('"', '\\"')}"`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function valueText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value < 0 ? "-Inf" : "+Inf";
}
