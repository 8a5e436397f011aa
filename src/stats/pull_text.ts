import type { RegistryContentType } from "prom-client";
// The registry alone: the whole package brings servers, clusters and metrics of its own, 4 MB that nobody asks for.
import registryClass from "prom-client/lib/registry.js";
import type { Family, Labels, Sample } from "./pull_families.ts";

/** How metrics are written. */
export type PullFormat = "text" | "openmetrics";

/** A metric as the registry asks for it. */
interface AskedMetric {
  readonly name: string;
  get(): Promise<unknown>;
}

/** What is used of the registry. */
interface TextRegistry {
  setDefaultLabels(labels: Labels): void;
  registerMetric(metric: AskedMetric): void;
  getSingleMetricAsString(name: string): Promise<string>;
}

/** Its file has no types of its own. */
const Registry: {
  new (contentType: RegistryContentType): TextRegistry;
  readonly PROMETHEUS_CONTENT_TYPE: RegistryContentType;
  readonly OPENMETRICS_CONTENT_TYPE: RegistryContentType;
} = registryClass;

/** What `content-type` says of each format. */
export const CONTENT_TYPES: Readonly<Record<PullFormat, RegistryContentType>> = {
  text: Registry.PROMETHEUS_CONTENT_TYPE,
  openmetrics: Registry.OPENMETRICS_CONTENT_TYPE,
};

/** The registry's own name for what stands in for one metric after the other. */
const STAND_IN = "metric";
/** Lines that are written without a turn for others. */
const MAX_LINES = 500;
/** Characters of a piece, about. */
const PIECE_LENGTH = 65_536;

/** The text of a scrape in pieces; `constantLabels` stand on every sample that has no such label itself. */
export async function* metricsText(
  families: Iterable<Family>,
  { format, constantLabels }: { readonly format: PullFormat; readonly constantLabels: Labels },
): AsyncGenerator<string, void, void> {
  const registry = new Registry(CONTENT_TYPES[format]);
  registry.setDefaultLabels(constantLabels);
  let shown: unknown;
  registry.registerMetric({ name: STAND_IN, get: () => Promise.resolve(shown) });
  let text = "";
  for (const family of families) {
    const samples = family.samples();
    for (let from = 0; from < samples.length; from += MAX_LINES) {
      shown = shownAs(format, family, samples.slice(from, from + MAX_LINES));
      const part = await registry.getSingleMetricAsString(STAND_IN);
      text += `${from === 0 ? part : withoutHead(part)}\n`;
      if (text.length < PIECE_LENGTH) continue;
      yield text;
      text = "";
    }
  }
  yield format === "openmetrics" ? `${text}# EOF\n` : text;
}

/** Our samples are counted elsewhere; so they look to the registry. */
function shownAs(format: PullFormat, { name, help, kind }: Family, values: readonly Sample[]) {
  const shown = { name, help, type: kind, values };
  if (format !== "openmetrics" || kind !== "counter") return shown;
  // The registry puts the end back on every line. A counter without it has no type there, for a metric must have one
  // name in both formats.
  if (!name.endsWith("_total")) return { ...shown, type: "unknown" };
  return { ...shown, name: name.slice(0, -"_total".length) };
}

/** The text without its first two lines, which explain the metric. */
function withoutHead(text: string): string {
  return text.slice(text.indexOf("\n", text.indexOf("\n") + 1) + 1);
}
