import type { Families, FamilyName, HistogramSample, Labels, SampleExemplar } from "./pull_families.ts";

/** The text format of Prometheus, or OpenMetrics. */
export type PullFormat = "text" | "openmetrics";

/** The `content-type` of each format. */
export const CONTENT_TYPES: Readonly<Record<PullFormat, string>> = {
  text: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** Approximate length of a piece, in characters. */
const PIECE_LENGTH = 65_536;

/** Options of `metricsText`. */
interface TextOptions {
  readonly format: PullFormat;
  /** On every sample without a label of that name. */
  readonly constantLabels: Labels;
}

/** The text of a scrape in pieces. */
export function* metricsText(families: Families, options: TextOptions): Generator<string, void, void> {
  const { format, constantLabels } = options;
  let text = "";
  for (const family of families.histograms.values()) {
    text += headOf(family, format);
    for (const sample of family.samples()) text += histogramText(family.name, sample, options);
  }
  for (const family of families.numbers.values()) {
    text += headOf(family, format);
    for (const { labels, value } of family.samples()) {
      text += `${family.name}${labelsText(labels, constantLabels)} ${valueText(value)}\n`;
      if (text.length < PIECE_LENGTH) continue;
      yield text;
      text = "";
    }
  }
  yield format === "openmetrics" ? `${text}# EOF\n` : text;
}

function histogramText(
  name: string,
  { labels, bounds, counts, exemplars, sum }: HistogramSample,
  { format, constantLabels }: TextOptions,
): string {
  let text = "";
  let within = 0;
  for (const [bucket, count] of counts.entries()) {
    within += count;
    const le = valueText(bounds[bucket] ?? Infinity);
    const end = format === "openmetrics" ? exemplarText(exemplars[bucket]) : "";
    text += `${name}_bucket${labelsText({ ...labels, le }, constantLabels)} ${within}${end}\n`;
  }
  const texts = labelsText(labels, constantLabels);
  return `${text}${name}_sum${texts} ${valueText(sum)}\n${name}_count${texts} ${within}\n`;
}

function headOf({ name, help, kind }: FamilyName, format: PullFormat): string {
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
function exemplarText(exemplar: SampleExemplar | undefined): string {
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
