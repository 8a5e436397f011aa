import { counter, gauge, type MetricGroup, timer } from "../base/metrics.ts";

/** Metrics of decisions and rules as a whole. */
export const SERVICE_METRICS = {
  prefix: "ratelimit.service.",
  metrics: {
    config_load_success: counter("loads", "Configurations that were loaded."),
    config_load_error: counter(
      "loads",
      "Configurations that were rejected; the previous rules remain in use.",
    ),
    global_shadow_mode: counter(
      "calls",
      "Calls over a limit that `SHADOW_MODE` allowed.",
    ),
    "call.should_rate_limit": counter(
      "calls",
      "Calls with an error: `service_error` for an invalid request or missing rules; `kv_error` and `mc_error` " +
        "for a cache failure, even if the call received a decision. All three are always reported.",
      {
        values: ["service_error", "kv_error", "mc_error"],
        label: "err_type",
        pull: "ratelimit_service_should_rate_limit_error",
      },
    ),
    "cache_failure.error": counter("calls", "Calls that failed because the cache failed, in mode `error`."),
    "cache_failure.allow": counter("descriptors", "Descriptors that were allowed because the cache failed."),
    "cache_failure.deny": counter("descriptors", "Descriptors that were denied because the cache failed."),
    "cache_failure.local": counter(
      "descriptors",
      "Descriptors that were counted in this process because the cache failed.",
    ),
    rate_limit_keys_overflowed: counter(
      "keys",
      "Metric keys beyond `STATS_MAX_KEYS`, which are counted as `other` of their domain.",
    ),
  },
} satisfies MetricGroup;

/** The name of the hits that windows of this unit refused, of a rule with several windows. */
export function overLimitPer(unit: string): string {
  return `over_limit_per_${unit.toLowerCase()}`;
}

/** Metrics of each rule, behind its metric key. */
export const RULE_METRICS = {
  total_hits: counter("hits", "All hits, including those of calls that failed later."),
  within_limit: counter("hits", "Hits within the limit."),
  near_limit: counter("hits", "Hits within the limit but above `NEAR_LIMIT_RATIO` of it."),
  over_limit: counter("hits", "Hits over the limit."),
  over_limit_with_local_cache: counter("hits", "Hits over the limit that the local cache rejected."),
  shadow_mode: counter("hits", "Hits over the limit that shadow mode allowed."),
  returned_hits: counter("hits", "Hits that were subtracted from the counter by a negative `hits_addend`."),
  domain_not_found: counter(
    "descriptors",
    "Descriptors of a domain without rules; the domain is the metric key.",
  ),
  over_limit_per_second: overPer("second"),
  over_limit_per_minute: overPer("minute"),
  over_limit_per_hour: overPer("hour"),
  over_limit_per_day: overPer("day"),
  over_limit_per_week: overPer("week"),
  over_limit_per_month: overPer("month"),
  over_limit_per_year: overPer("year"),
};

function overPer(unit: string): ReturnType<typeof counter> {
  return counter("hits", `Hits over the limit per ${unit} of a rule with several windows.`);
}

/** The group of a metric key. */
export function ruleMetrics(metricKey: string): MetricGroup<typeof RULE_METRICS> {
  return { prefix: `ratelimit.service.rate_limit.${metricKey}.`, metrics: RULE_METRICS };
}

const METHOD_METRICS = {
  total_requests: counter("calls", "Calls of the gRPC method.", { pull: "ratelimit_service_total_requests" }),
  response_time: timer(
    "Response time of the gRPC method.",
    "ratelimit_service_response_time_seconds",
  ),
};

/** The group of a gRPC method. */
export function methodMetrics(method: string): MetricGroup<typeof METHOD_METRICS> {
  return { prefix: `ratelimit_server.${method}.`, metrics: METHOD_METRICS, labels: { grpc_method: method } };
}

const PUSH_METRICS = {
  lines_lost: counter("lines", "Lines of statistics that were lost with a connection or could not be sent."),
};

/** The group of a receiver of pushed statistics. */
export function pushMetrics(receiver: string): MetricGroup<typeof PUSH_METRICS> {
  return { prefix: `ratelimit.${receiver}.`, metrics: PUSH_METRICS };
}

/** Metrics that only a scrape has, by their whole names. */
export const PULL_METRICS = {
  ratelimit_rule_hits_total: counter("hits", "Hits by rule and outcome."),
  ratelimit_rule_limit: gauge("requests", "Requests that a rule allows in its window."),
  ratelimit_rule_window_seconds: gauge(
    "seconds",
    "Length of the window of a rule; of calendar windows, that of the longest.",
  ),
  process_resident_memory_bytes: gauge("bytes", "Resident memory of the process."),
  process_cpu_seconds_total: counter("seconds", "CPU time of the process."),
  process_start_time_seconds: gauge("seconds", "Unix time at which the process started."),
  nodejs_heap_size_total_bytes: gauge("bytes", "Size of the JavaScript heap."),
  nodejs_heap_size_used_bytes: gauge("bytes", "Used part of the JavaScript heap."),
  nodejs_external_memory_bytes: gauge("bytes", "Memory of the JavaScript engine outside of its heap."),
};
