import { Counter, Registry, type RegistryContentType } from "prom-client";
import type { Family, Labels, Sample } from "./pull_families.ts";

/** How metrics are written. */
export type PullFormat = "text" | "openmetrics";

/** What `content-type` says of each format. */
export const CONTENT_TYPES: Readonly<Record<PullFormat, RegistryContentType>> = {
  text: Registry.PROMETHEUS_CONTENT_TYPE,
  openmetrics: Registry.OPENMETRICS_CONTENT_TYPE,
};

/** Lines that are written without a turn for others. */
const MAX_LINES = 500;
/** Characters of a piece, about. */
const PIECE_LENGTH = 65_536;
/** The registry's own name for what stands in for one metric after the other. */
const STAND_IN = "metric";

/** The text of a scrape in pieces; `constantLabels` stand on every sample that has no such label itself. */
export async function* metricsText(
  families: Iterable<Family>,
  { format, constantLabels }: { readonly format: PullFormat; readonly constantLabels: Labels },
): AsyncGenerator<string, void, void> {
  const registry = new Registry<RegistryContentType>();
  registry.setContentType(CONTENT_TYPES[format]);
  registry.setDefaultLabels(constantLabels);
  const standIn = new StandIn(format);
  registry.registerMetric(standIn);
  let text = "";
  for (const family of families) {
    const samples = family.samples();
    for (let from = 0; from < samples.length; from += MAX_LINES) {
      standIn.show(family, samples.slice(from, from + MAX_LINES));
      const part = await registry.getSingleMetricAsString(STAND_IN);
      text += `${from === 0 ? part : withoutHead(part)}\n`;
      if (text.length < PIECE_LENGTH) continue;
      yield text;
      text = "";
    }
  }
  yield format === "openmetrics" ? `${text}# EOF\n` : text;
}

/** One metric of the registry that shows whatever it is told: our samples are counted elsewhere. */
class StandIn extends Counter {
  readonly #format: PullFormat;
  #shown: { readonly family: Family; readonly samples: readonly Sample[] } | undefined;

  constructor(format: PullFormat) {
    super({ name: STAND_IN, help: STAND_IN, registers: [] });
    this.#format = format;
  }

  show(family: Family, samples: readonly Sample[]): void {
    this.#shown = { family, samples };
  }

  override get(): ReturnType<Counter["get"]> {
    if (this.#shown === undefined) return super.get();
    const { family: { name, help, kind }, samples } = this.#shown;
    const shown = { name, help, type: kind, values: samples, aggregator: "sum" };
    if (this.#format === "openmetrics" && kind === "counter") {
      // The registry puts the end back on every line. A counter without it has no type there, for a metric
      // must have one name in both formats.
      if (name.endsWith("_total")) shown.name = name.slice(0, -"_total".length);
      else return answer({ ...shown, type: "unknown" });
    }
    return answer(shown);
  }
}

/** The library's types say that a type is a number, where it reads and writes a text. */
function answer(shown: unknown): ReturnType<Counter["get"]> {
  return Promise.resolve(shown as Awaited<ReturnType<Counter["get"]>>);
}

/** The text without its first two lines, which explain the metric. */
function withoutHead(text: string): string {
  return text.slice(text.indexOf("\n", text.indexOf("\n") + 1) + 1);
}
