import { setImmediate } from "node:timers/promises";
import { Families, type Labels, type MetricKind } from "./pull_families.ts";
import { type LevelTables, readDomain } from "./pull_levels.ts";
import { type Mapped, metricName, type NameMapper } from "./pull_mapping.ts";
import { builtInMapping, nativeMapping } from "./pull_rule_mapping.ts";
import { addProcessMetrics } from "./pull_process.ts";
import { sanitizeStatName } from "./stat_name.ts";
import type { Timer } from "./timer.ts";

/** Where metrics are read from. What is answered is walked over with turns for others in between. */
export interface PullSource {
  counters(): Iterable<readonly [string, number]>;
  gauges(): Iterable<readonly [string, number]>;
  timers(): Iterable<readonly [string, Timer]>;
}

/** The loaded rules, as far as metrics need them. */
export interface PullRules {
  readonly domains: LevelTables;
  readonly limits: readonly PullLimit[];
}

/** A limit of a loaded rule. */
export interface PullLimit {
  readonly requestsPerUnit: number;
  /** Absent for a rule without a limit. */
  readonly unit: string | undefined;
  readonly windowSeconds: number;
  readonly rule: { readonly fullKey: string; readonly metricKey: string | undefined } | undefined;
}

/** What is shown, and how. */
export interface ScrapeOptions {
  readonly source: PullSource;
  /** The rules in force; absent before the first ones. */
  readonly rules: () => PullRules | undefined;
  /** The mapping of a file; the built-in one when absent. */
  readonly mapper: NameMapper | undefined;
  /** Rules show as one metric with the limits beside it, and not through the mapping. */
  readonly native: boolean;
  readonly timeAsMilliseconds: boolean;
  readonly startedAtSeconds: number;
  readonly onConflict: (name: string) => void;
}

/** Names that are read without a turn for others. */
const MAX_NAMES = 500;
const PLAIN_HELP = "A statistic under its own name.";
const NO_LABELS: Labels = {};
const NO_RULES: PullRules = { domains: new Map(), limits: [] };
const LIMITS = {
  name: "ratelimit_rule_limit",
  kind: "gauge",
  help: "Requests that a rule allows in its window.",
} as const;
const WINDOWS = {
  name: "ratelimit_rule_window_seconds",
  kind: "gauge",
  help: "Length of the window of a rule.",
} as const;

/** Reads everything there is to show. */
export async function scrape(options: ScrapeOptions): Promise<Families> {
  const { source, mapper, native, timeAsMilliseconds } = options;
  const rules = options.rules() ?? NO_RULES;
  const { domains } = rules;
  const families = new Families(options.onConflict);
  const ofRules = native ? nativeMapping(domains) : () => undefined;
  const ofRest = mapper ?? builtInMapping({ domains, timeAsMilliseconds });
  const mapped = (name: string, kind: MetricKind) => ofRules(name, kind) ?? ofRest(name, kind) ?? plain(name);
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

function plain(name: string): Mapped {
  return { name: metricName(name), labels: NO_LABELS, help: PLAIN_HELP, scale: 1 };
}

function addLimit(families: Families, limit: PullLimit, domains: LevelTables): void {
  const { rule, unit, requestsPerUnit, windowSeconds } = limit;
  if (rule === undefined || unit === undefined) return;
  const { domain, rest } = readDomain(sanitizeStatName(rule.metricKey ?? rule.fullKey), domains);
  const labels = { domain, rule: rest, unit: unit.toLowerCase() };
  // Two rules may be counted together; then the first one decides.
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
