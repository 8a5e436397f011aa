import type { NamedMetric } from "../base/metrics.ts";
import type { Labels } from "./pull_families.ts";
import { type LevelTables, readDomain, readLevels } from "./pull_levels.ts";
import { methodMetrics, PULL_METRICS, RULE_METRICS, ruleMetrics } from "./declarations.ts";
import { type Mapped, metricName, type NameMapper } from "./pull_mapping.ts";

const { prefix: RULE_PREFIX } = ruleMetrics("");
const RULES = RULE_PREFIX.slice(0, -1);
const RULE_PULL_METRICS: ReadonlyMap<string, Mapped> = new Map(
  Object.entries(RULE_METRICS).map(([stat, { meaning }]) => [
    stat,
    metric(`ratelimit_service_rate_limit_${stat}`, meaning),
  ]),
);
const { response_time: RESPONSE_TIME } = methodMetrics("").metrics;
/** The key of this one is a domain. */
const DOMAIN_STAT = "domain_not_found" satisfies keyof typeof RULE_METRICS;
const PLAIN_HELP = "A statistic under its own name.";
const NATIVE_METRIC = metric("ratelimit_rule_hits_total", PULL_METRICS.ratelimit_rule_hits_total.meaning);

/** Finds a declared metric by its full name. */
export type DeclaredMetrics = (fullName: string) => NamedMetric | undefined;

/** The rules and declarations that names are read by without a file. */
interface BuiltInMappingOptions {
  readonly domains: LevelTables;
  readonly timeAsMilliseconds: boolean;
  readonly declared: DeclaredMetrics;
}

/** The mapping without a file, with names and labels of known dashboards; the response time may stay in milliseconds. */
export function builtInMapping({ domains, timeAsMilliseconds, declared }: BuiltInMappingOptions): NameMapper {
  const labelsOf = lastKept((key) => ruleLabels(key, domains));
  return (name) => {
    if (name.startsWith(RULES)) {
      const { key, stat } = ruleStat(name);
      const metric = RULE_PULL_METRICS.get(stat);
      if (metric === undefined) return undefined;
      return { ...metric, labels: stat === DOMAIN_STAT ? { domain: key } : labelsOf(key) };
    }
    const known = declared(name);
    if (known === undefined) return undefined;
    const { pullName, labels, declaration } = known;
    const isMilliseconds = timeAsMilliseconds && declaration === RESPONSE_TIME;
    return {
      ...metric(metricName(pullName), declaration.meaning),
      scale: isMilliseconds ? 1_000 : 1,
      labels,
    };
  };
}

/** The mapping of a name that no other mapping has: the same name, with the help of its declaration. */
export function plainMapping(name: string, declared: DeclaredMetrics): Mapped {
  const meaning = name.startsWith(RULES)
    ? RULE_PULL_METRICS.get(ruleStat(name).stat)?.help
    : declared(name)?.declaration.meaning;
  return metric(metricName(name), meaning ?? PLAIN_HELP);
}

/** The mapping of all statistics of rules to one metric with the rule and the statistic as labels. */
export function nativeMapping(domains: LevelTables): NameMapper {
  const placeOf = lastKept((key) => readDomain(key, domains));
  return (name) => {
    if (!name.startsWith(RULES)) return undefined;
    const { key, stat } = ruleStat(name);
    const { domain, rest } = stat === DOMAIN_STAT ? { domain: key, rest: "" } : placeOf(key);
    return { ...NATIVE_METRIC, labels: { domain, rule: rest, stat } };
  };
}

function ruleStat(name: string): { key: string; stat: string } {
  const end = name.lastIndexOf(".");
  return { key: name.slice(RULES.length, end), stat: name.slice(end + 1) };
}

/** Levels below the second one are summed up; a key without levels, such as `other`, has no domain. */
function ruleLabels(key: string, domains: LevelTables): Labels {
  const { domain, levels: [key1, key2] } = readLevels(key, domains);
  if (key1 === undefined) return { domain: "", key1: key };
  return key2 === undefined ? { domain, key1 } : { domain, key1, key2 };
}

/** Several names with one key follow each other. */
function lastKept<T>(read: (key: string) => T): (key: string) => T {
  let last: { readonly key: string; readonly answer: T } | undefined;
  return (key) => {
    if (last?.key !== key) last = { key, answer: read(key) };
    return last.answer;
  };
}

function metric(name: string, help: string): Mapped {
  return { name, help, scale: 1, labels: {} };
}
