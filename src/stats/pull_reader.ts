import process from "node:process";
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { PULL_METRICS } from "./declarations.ts";
import { Families, type FamilyName, type Labels, type MetricKind } from "./pull_families.ts";
import { type LevelTables, readDomain } from "./pull_levels.ts";
import { mapperOf, type MetricMapping, metricName } from "./pull_mapping.ts";
import { builtInMapping, type DeclaredMetrics, nativeMapping, plainMapping } from "./pull_rule_mapping.ts";
import { sanitizeStatName } from "../base/stat_name.ts";
import type { Timer } from "./timer.ts";

/** The source of metrics. It is read in slices, with turns of the event loop in between. */
export interface PullSource {
  counters(): Iterable<readonly [string, number]>;
  gauges(): Iterable<readonly [string, number]>;
  timers(): Iterable<readonly [string, Timer]>;
  readonly declared: DeclaredMetrics;
}

/** The loaded rules, as metrics need them. */
export interface PullRules {
  readonly domains: LevelTables;
  readonly limits: readonly PullLimit[];
}

/** A limit of a loaded rule. */
interface PullLimit {
  /** Its windows, if it has several. */
  readonly windows: { readonly limits: readonly PullLimit[] } | undefined;
  readonly requestsPerUnit: number;
  /** Absent for a rule without a limit. */
  readonly unit: string | undefined;
  readonly windowSeconds: number;
  readonly rule: { readonly fullKey: string; readonly metricKey: string | undefined } | undefined;
}

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

/** Names read in one turn of the event loop. */
const MAX_NAMES = 500;
const NO_RULES: PullRules = { domains: new Map(), limits: [] };
const LIMITS = pullMetric("ratelimit_rule_limit");
const WINDOWS = pullMetric("ratelimit_rule_window_seconds");
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
    const { store, native, timeAsMilliseconds, refresh } = this.#options;
    await refresh?.();
    const rules = this.#options.rules?.() ?? NO_RULES;
    const { domains } = rules;
    const families = new Families((name) => this.#logConflict(name));
    const ofRules = native ? nativeMapping(domains) : () => undefined;
    const declared: DeclaredMetrics = (name) => store.declared(name);
    const ofRest = this.#mapper ?? builtInMapping({ domains, timeAsMilliseconds, declared });
    const mapped = (name: string, kind: MetricKind) =>
      ofRules(name, kind) ?? ofRest(name, kind) ?? plainMapping(name, declared);
    for (const [name, timer] of store.timers()) {
      const one = mapped(name, "histogram");
      if (one === "drop") continue;
      const options = { factor: one.scale / 1_000, bounds: one.bounds };
      families.addTimer({ ...one, kind: "histogram" }, one.labels, timer, options);
    }
    for (const kind of ["counter", "gauge"] as const) {
      const numbers = kind === "counter" ? store.counters() : store.gauges();
      await inTurns(numbers, ([name, value]) => {
        const one = mapped(name, kind);
        if (one === "drop") return;
        families.add({ name: one.name, kind, help: one.help }, one.labels, value * one.scale);
      });
    }
    if (native) {
      await inTurns(rules.limits, (limit) => {
        for (const window of limit.windows?.limits ?? [limit]) addLimit(families, window, domains);
      });
    }
    addProcessMetrics(families, this.startedAtSeconds);
    return families;
  }

  #logConflict(name: string): void {
    if (this.#conflicts.has(name) || this.#conflicts.size >= MAX_CONFLICTS) return;
    this.#conflicts.add(name);
    this.#options.logger.warning("Metric omitted: another kind of metric has its name", { metric: name });
  }
}

function addLimit(families: Families, limit: PullLimit, domains: LevelTables): void {
  const { rule, unit, requestsPerUnit, windowSeconds } = limit;
  if (rule === undefined || unit === undefined) return;
  const { domain, rest } = readDomain(sanitizeStatName(rule.metricKey ?? rule.fullKey), domains);
  const labels = { domain, rule: rest, unit: unit.toLowerCase() };
  // Of rules that share a metric key, the first one decides.
  families.addOnce(LIMITS, labels, requestsPerUnit);
  families.addOnce(WINDOWS, labels, windowSeconds);
}

async function inTurns<T>(items: Iterable<T>, each: (item: T) => void): Promise<void> {
  let count = 0;
  for (const item of items) {
    each(item);
    if (++count % MAX_NAMES === 0) await setImmediate();
  }
}

/** Metrics of this process under their usual names. */
function addProcessMetrics(families: Families, startedAtSeconds: number): void {
  const { rss, heapTotal, heapUsed, external } = Deno.memoryUsage();
  const { user, system } = process.cpuUsage();
  const values: readonly (readonly [keyof typeof PULL_METRICS, number])[] = [
    ["process_resident_memory_bytes", rss],
    ["process_cpu_seconds_total", (user + system) / 1e6],
    ["process_start_time_seconds", startedAtSeconds],
    ["nodejs_heap_size_total_bytes", heapTotal],
    ["nodejs_heap_size_used_bytes", heapUsed],
    ["nodejs_external_memory_bytes", external],
  ];
  for (const [name, value] of values) families.add(pullMetric(name), {}, value);
}

function pullMetric(name: keyof typeof PULL_METRICS): FamilyName {
  const { kind, meaning: help } = PULL_METRICS[name];
  return { name, kind, help };
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
