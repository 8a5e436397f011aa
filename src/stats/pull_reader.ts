import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Families, Labels } from "./pull_families.ts";
import { mapperOf, type MetricMapping, metricName } from "./pull_mapping.ts";
import { type PullRules, type PullSource, scrape } from "./pull_scrape.ts";

/** Which metrics are read, and under which names. */
export interface PullReaderOptions {
  /** The statistics. */
  readonly store: PullSource;
  /** The mappings of a file; the built-in mapping when absent. */
  readonly mapping?: readonly MetricMapping[] | undefined;
  /** Labels come from the rules themselves, with the limit of each rule. */
  readonly native: boolean;
  /** The built-in mapping keeps the response time in milliseconds. */
  readonly timeAsMilliseconds: boolean;
  /** Labels of every metric. */
  readonly extraTags: ReadonlyMap<string, string>;
  /** The current rules. */
  readonly rules?: (() => PullRules | undefined) | undefined;
  /** Brings the statistics up to date before a read. */
  readonly refresh?: (() => Promise<void>) | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Most name conflicts that are logged. */
const MAX_CONFLICTS = 10;

/** Reads all metrics under their names. */
export class PullReader {
  /** Labels of every sample. */
  readonly constantLabels: Labels;
  readonly startedAtSeconds: number;
  readonly #options: PullReaderOptions;
  readonly #mapper: ReturnType<typeof mapperOf> | undefined;
  readonly #conflicts = new Set<string>();

  /** `setting` is the one that requires labels, for the error where a tag cannot be one. */
  constructor(options: PullReaderOptions, setting = "USE_PULL_METRICS") {
    this.#options = options;
    this.#mapper = options.mapping === undefined ? undefined : mapperOf(options.mapping);
    this.constantLabels = labelsOfTags(options.extraTags, setting);
    this.startedAtSeconds = Math.floor((options.clock.now() - performance.now()) / 1_000);
  }

  /** Brings the statistics up to date and reads them. */
  async read(): Promise<Families> {
    const { store, rules = () => undefined, native, timeAsMilliseconds, refresh } = this.#options;
    await refresh?.();
    return await scrape({
      source: store,
      rules,
      mapper: this.#mapper,
      native,
      timeAsMilliseconds,
      startedAtSeconds: this.startedAtSeconds,
      onConflict: (name) => this.#logConflict(name),
    });
  }

  #logConflict(name: string): void {
    if (this.#conflicts.has(name) || this.#conflicts.size >= MAX_CONFLICTS) return;
    this.#conflicts.add(name);
    this.#options.logger.warning("Metric omitted: another kind of metric has its name", { metric: name });
  }
}

/** Labels that histograms and summaries use. */
const RESERVED: ReadonlySet<string> = new Set(["le", "quantile"]);

/** The labels of EXTRA_TAGS, such as `zone_a` for `zone-a`. Throws with a line for each tag that cannot be one. */
export function labelsOfTags(tags: ReadonlyMap<string, string>, setting = "USE_PULL_METRICS"): Labels {
  const problems: string[] = [];
  const labels: Record<string, string> = {};
  const tagOf = new Map<string, string>();
  for (const [tag, value] of tags) {
    const label = metricName(tag);
    const expected = expectedLabel(label, tagOf.get(label));
    if (expected === undefined) labels[label] = value;
    else {problems.push(
        `Invalid EXTRA_TAGS ${JSON.stringify(tag)} with ${setting}: expected ${expected}`,
      );}
    tagOf.set(label, tag);
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
  return labels;
}

/** The expectation that a label fails; `other` is the tag that has it already. */
function expectedLabel(label: string, other: string | undefined): string | undefined {
  if (label === "") return "a name of letters, digits and _";
  if (RESERVED.has(label)) return `another name: label "${label}" belongs to histograms and summaries`;
  if (label.startsWith("__")) return `a name without __ at the start: label "${label}" is reserved`;
  if (other === undefined) return undefined;
  return `another name: tag ${JSON.stringify(other)} has label "${label}" already`;
}
