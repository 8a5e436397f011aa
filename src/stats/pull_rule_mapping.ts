import type { Labels } from "./pull_families.ts";
import { type LevelTables, readDomain, readLevels } from "./pull_levels.ts";
import type { Mapped, NameMapper } from "./pull_mapping.ts";

const RULES = "ratelimit.service.rate_limit.";
const ERRORS = "ratelimit.service.call.should_rate_limit.";
const WEBHOOKS = /^ratelimit\.webhooks\.(triggers|attempts|executions_ended|executions|deliveries)\.(.+)$/;
const SERVER = /^ratelimit_server\.(.+)\.(total_requests|response_time)$/;

const SERVICE = "ratelimit_service_";
const RULE_METRICS = metrics(`${SERVICE}rate_limit_`, {
  near_limit: "Hits beyond the near-limit ratio and within the limit.",
  over_limit: "Hits beyond the limit.",
  total_hits: "All hits.",
  within_limit: "Hits within the limit.",
  shadow_mode: "Hits beyond the limit that shadow mode let pass.",
});
const WEBHOOK_METRICS = metrics("ratelimit_webhooks_", {
  triggers: "Calls of triggers by what became of them.",
  attempts: "Attempts of deliveries by result or kind of error.",
  executions_ended: "Executions that ended, by status.",
  executions: "Executions in the store, by status.",
  deliveries: "Deliveries in the store, by state.",
});
/** The label of the last part of a statistic's name; `result` for the others. */
const WEBHOOK_LABELS: ReadonlyMap<string, string> = new Map([
  ["executions_ended", "status"],
  ["executions", "status"],
  ["deliveries", "state"],
]);
/** Metrics without labels by the name of the statistic. */
const SINGLE_METRICS: ReadonlyMap<string, Mapped> = new Map([
  [
    "ratelimit.service.config_load_success",
    metric(`${SERVICE}config_load_success`, "Configurations that were loaded."),
  ],
  [
    "ratelimit.service.config_load_error",
    metric(`${SERVICE}config_load_error`, "Configurations that were refused."),
  ],
  [
    "ratelimit.cache.round_trip",
    metric(`${SERVICE}cache_round_trip_seconds`, "Time from a batch to the cache's answer."),
  ],
  [
    "ratelimit.webhooks.attempt_time",
    metric("ratelimit_webhooks_attempt_seconds", "Time of an attempt of a delivery."),
  ],
  [
    "ratelimit.webhooks.commit_time",
    metric("ratelimit_webhooks_commit_seconds", "Time of a commit of the store."),
  ],
]);
const ERROR_METRIC = metric(`${SERVICE}should_rate_limit_error`, "Calls that failed, by kind.");
const REQUESTS_METRIC = metric(`${SERVICE}total_requests`, "gRPC calls by method.");
const TIME_METRIC = metric(
  `${SERVICE}response_time_seconds`,
  "Time from a gRPC call to its answer, by method.",
);
const NATIVE_METRIC = metric("ratelimit_rule_hits_total", "Hits by rule and outcome.");

/** The mapping without a file, with names and labels of known dashboards; the response time may stay in milliseconds. */
export function builtInMapping(
  { domains, timeAsMilliseconds }: { readonly domains: LevelTables; readonly timeAsMilliseconds: boolean },
): NameMapper {
  const time = { ...TIME_METRIC, scale: timeAsMilliseconds ? 1_000 : 1 };
  const labelsOf = lastKept((key) => ruleLabels(key, domains));
  return (name) => {
    if (name.startsWith(RULES)) {
      const { key, stat } = ruleStat(name);
      const metric = RULE_METRICS.get(stat);
      const labels = metric === undefined ? undefined : labelsOf(key);
      return metric === undefined || labels === undefined ? undefined : { ...metric, labels };
    }
    if (name.startsWith(ERRORS)) return { ...ERROR_METRIC, labels: { err_type: name.slice(ERRORS.length) } };
    const single = SINGLE_METRICS.get(name);
    if (single !== undefined) return single;
    const [, subject = "", rest = ""] = WEBHOOKS.exec(name) ?? [];
    const webhook = WEBHOOK_METRICS.get(subject);
    if (webhook !== undefined) {
      return { ...webhook, labels: { [WEBHOOK_LABELS.get(subject) ?? "result"]: rest } };
    }
    const [, method, what] = SERVER.exec(name) ?? [];
    if (method === undefined) return undefined;
    return { ...(what === "total_requests" ? REQUESTS_METRIC : time), labels: { grpc_method: method } };
  };
}

/** The mapping of all statistics of rules to one metric with the rule and the statistic as labels. */
export function nativeMapping(domains: LevelTables): NameMapper {
  const placeOf = lastKept((key) => readDomain(key, domains));
  return (name) => {
    if (!name.startsWith(RULES)) return undefined;
    const { key, stat } = ruleStat(name);
    // The key of this one is a domain.
    const { domain, rest } = stat === "domain_not_found" ? { domain: key, rest: "" } : placeOf(key);
    return { ...NATIVE_METRIC, labels: { domain, rule: rest, stat } };
  };
}

function ruleStat(name: string): { key: string; stat: string } {
  const end = name.lastIndexOf(".");
  return { key: name.slice(RULES.length, end), stat: name.slice(end + 1) };
}

/** Levels below the second one are summed up; a key without levels belongs to no rule. */
function ruleLabels(key: string, domains: LevelTables): Labels | undefined {
  const { domain, levels: [key1, key2] } = readLevels(key, domains);
  if (key1 === undefined) return undefined;
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

function metrics(prefix: string, help: Readonly<Record<string, string>>): ReadonlyMap<string, Mapped> {
  return new Map(Object.entries(help).map(([name, text]) => [name, metric(prefix + name, text)]));
}
