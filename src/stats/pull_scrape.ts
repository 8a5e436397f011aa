import process from "node:process";
import { setImmediate } from "node:timers/promises";
import { PULL_METRICS } from "./declarations.ts";
import { Families, type FamilyName, type MetricKind } from "./pull_families.ts";
import { type LevelTables, readDomain } from "./pull_levels.ts";
import type { NameMapper } from "./pull_mapping.ts";
import { builtInMapping, type DeclaredMetrics, nativeMapping, plainMapping } from "./pull_rule_mapping.ts";
import { sanitizeStatName } from "./store.ts";
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
  readonly requestsPerUnit: number;
  /** Absent for a rule without a limit. */
  readonly unit: string | undefined;
  readonly windowSeconds: number;
  readonly rule: { readonly fullKey: string; readonly metricKey: string | undefined } | undefined;
}

/** The content and the format of a scrape. */
interface ScrapeOptions {
  readonly source: PullSource;
  /** The current rules; absent before the first ones. */
  readonly rules: () => PullRules | undefined;
  /** The mapping of a file; the built-in one when absent. */
  readonly mapper: NameMapper | undefined;
  /** Rules are one metric, with their limits, instead of being mapped. */
  readonly native: boolean;
  readonly timeAsMilliseconds: boolean;
  readonly startedAtSeconds: number;
  readonly onConflict: (name: string) => void;
}

/** Names read in one turn of the event loop. */
const MAX_NAMES = 500;
const NO_RULES: PullRules = { domains: new Map(), limits: [] };
const LIMITS = pullMetric("ratelimit_rule_limit");
const WINDOWS = pullMetric("ratelimit_rule_window_seconds");

/** Reads all metrics. */
export async function scrape(options: ScrapeOptions): Promise<Families> {
  const { source, mapper, native, timeAsMilliseconds } = options;
  const rules = options.rules() ?? NO_RULES;
  const { domains } = rules;
  const families = new Families(options.onConflict);
  const ofRules = native ? nativeMapping(domains) : () => undefined;
  const declared: DeclaredMetrics = (name) => source.declared(name);
  const ofRest = mapper ?? builtInMapping({ domains, timeAsMilliseconds, declared });
  const mapped = (name: string, kind: MetricKind) =>
    ofRules(name, kind) ?? ofRest(name, kind) ?? plainMapping(name, declared);
  for (const [name, timer] of source.timers()) {
    const one = mapped(name, "histogram");
    if (one === "drop") continue;
    const options = { factor: one.scale / 1_000, bounds: one.bounds };
    families.addTimer({ ...one, kind: "histogram" }, one.labels, timer, options);
  }
  for (const kind of ["counter", "gauge"] as const) {
    const numbers = kind === "counter" ? source.counters() : source.gauges();
    await inTurns(numbers, ([name, value]) => {
      const one = mapped(name, kind);
      if (one === "drop") return;
      families.add({ name: one.name, kind, help: one.help }, one.labels, value * one.scale);
    });
  }
  if (native) await inTurns(rules.limits, (limit) => addLimit(families, limit, domains));
  addProcessMetrics(families, options.startedAtSeconds);
  return families;
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
