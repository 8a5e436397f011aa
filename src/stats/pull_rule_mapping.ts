import type { Labels } from "./pull_families.ts";
import { type LevelTables, readDomain, readLevels } from "./pull_levels.ts";
import type { Mapped, NameMapper } from "./pull_mapping.ts";

/** What the built-in mapping has to know. */
export interface BuiltInMappingOptions {
  /** The rules that are loaded now. */
  readonly domains: LevelTables;
  /** The response time stays in milliseconds. */
  readonly timeAsMilliseconds: boolean;
}

const RULES = "ratelimit.service.rate_limit.";
const ERRORS = "ratelimit.service.call.should_rate_limit.";
const WEBHOOKS = /^ratelimit\.webhooks\.(triggers|attempts|executions_ended|executions|deliveries)\.(.+)$/;
const SERVER = /^ratelimit_server\.(.+)\.(total_requests|response_time)$/;

type Named = Omit<Mapped, "labels">;

/** Metrics of the rules by the last part of the name. */
const RULE_METRICS: Readonly<Record<string, Named>> = {
  near_limit: ruleMetric("near_limit", "Hits beyond the near-limit ratio and within the limit."),
  over_limit: ruleMetric("over_limit", "Hits beyond the limit."),
  total_hits: ruleMetric("total_hits", "All hits."),
  within_limit: ruleMetric("within_limit", "Hits within the limit."),
  shadow_mode: ruleMetric("shadow_mode", "Hits beyond the limit that shadow mode let pass."),
};

/** Metrics without labels by the whole name. */
const SINGLE_METRICS: Readonly<Record<string, Mapped>> = {
  "ratelimit.service.config_load_success": single("config_load_success", "Configurations that were loaded."),
  "ratelimit.service.config_load_error": single("config_load_error", "Configurations that were refused."),
  "ratelimit.cache.round_trip": single(
    "cache_round_trip_seconds",
    "Time from a batch to the cache's answer.",
  ),
  "ratelimit.webhooks.attempt_time": webhookSingle("attempt_seconds", "Time of an attempt of a delivery."),
  "ratelimit.webhooks.commit_time": webhookSingle("commit_seconds", "Time of a commit of the store."),
};

/** Metrics of the webhook service by the part of the name that says of what, with the label for the rest of it. */
const WEBHOOK_METRICS: Readonly<Record<string, Named & { readonly label: string }>> = {
  triggers: webhookMetric("triggers", "result", "Calls of triggers by what became of them."),
  attempts: webhookMetric("attempts", "result", "Attempts of deliveries by result or kind of error."),
  executions_ended: webhookMetric("executions_ended", "status", "Executions that ended, by status."),
  executions: webhookMetric("executions", "status", "Executions in the store, by status."),
  deliveries: webhookMetric("deliveries", "state", "Deliveries in the store, by state."),
};

const ERROR_METRIC = named("should_rate_limit_error", "Calls that failed, by kind.");
const REQUESTS_METRIC = named("total_requests", "gRPC calls by method.");
const TIME_METRIC = named("response_time_seconds", "Time from a gRPC call to its answer, by method.");

/** The mapping that is in force without a file: names and labels as known dashboards have them. */
export function builtInMapping(options: BuiltInMappingOptions): NameMapper {
  const { domains, timeAsMilliseconds } = options;
  const time = { ...TIME_METRIC, scale: timeAsMilliseconds ? 1_000 : 1 };
  const labelsOf = lastKept((key) => ruleLabels(key, domains));
  return (name) => {
    if (name.startsWith(RULES)) {
      const { key, stat } = ruleStat(name);
      const metric = Object.hasOwn(RULE_METRICS, stat) ? RULE_METRICS[stat] : undefined;
      const labels = metric === undefined ? undefined : labelsOf(key);
      return metric === undefined || labels === undefined ? undefined : withLabels(metric, labels);
    }
    if (name.startsWith(ERRORS)) return withLabels(ERROR_METRIC, { err_type: name.slice(ERRORS.length) });
    if (Object.hasOwn(SINGLE_METRICS, name)) return SINGLE_METRICS[name];
    const [, of = "", rest = ""] = WEBHOOKS.exec(name) ?? [];
    const webhook = WEBHOOK_METRICS[of];
    if (webhook !== undefined) return withLabels(webhook, { [webhook.label]: rest });
    const [, method, what] = SERVER.exec(name) ?? [];
    if (method === undefined) return undefined;
    return withLabels(what === "total_requests" ? REQUESTS_METRIC : time, { grpc_method: method });
  };
}

/** The mapping of the rules' statistics to one metric with the rule and the statistic as labels. */
export function nativeMapping(domains: LevelTables): NameMapper {
  const metric: Named = { name: "ratelimit_rule_hits_total", help: "Hits by rule and outcome.", scale: 1 };
  const placeOf = lastKept((key) => readDomain(key, domains));
  return (name) => {
    if (!name.startsWith(RULES)) return undefined;
    const { key, stat } = ruleStat(name);
    // Such a key is a domain, and nothing else.
    const { domain, rest } = stat === "domain_not_found" ? { domain: key, rest: "" } : placeOf(key);
    return withLabels(metric, { domain, rule: rest, stat });
  };
}

function ruleStat(name: string): { key: string; stat: string } {
  const end = name.lastIndexOf(".");
  return { key: name.slice(RULES.length, end), stat: name.slice(end + 1) };
}

/** Levels below the second one are summed up; a key without any level is no rule's. */
function ruleLabels(key: string, domains: LevelTables): Labels | undefined {
  const { domain, levels: [key1, key2] } = readLevels(key, domains);
  if (key1 === undefined) return undefined;
  return key2 === undefined ? { domain, key1 } : { domain, key1, key2 };
}

/** Several names with one key come in a row. */
function lastKept<T>(read: (key: string) => T): (key: string) => T {
  let last: { readonly key: string; readonly answer: T } | undefined;
  return (key) => {
    if (last?.key !== key) last = { key, answer: read(key) };
    return last.answer;
  };
}

function withLabels({ name, help, scale }: Named, labels: Labels): Mapped {
  return { name, help, scale, labels };
}

function named(name: string, help: string): Named {
  return { name: `ratelimit_service_${name}`, help, scale: 1 };
}

function single(name: string, help: string): Mapped {
  return { ...named(name, help), labels: {} };
}

function ruleMetric(stat: string, help: string): Named {
  return named(`rate_limit_${stat}`, help);
}

function webhookMetric(of: string, label: string, help: string): Named & { readonly label: string } {
  return { name: `ratelimit_webhooks_${of}`, help, scale: 1, label };
}

function webhookSingle(of: string, help: string): Mapped {
  return { name: `ratelimit_webhooks_${of}`, help, scale: 1, labels: {} };
}
