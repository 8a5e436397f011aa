import type { Counts, Snapshot } from "./snapshot.ts";

/** Metrics that are shown as one number, their sum. */
export interface MetricRow {
  readonly label: string;
  /** Matches their full names. */
  readonly names: RegExp;
  /** True if the number goes up and down; others only grow. */
  readonly isGauge?: boolean;
  /** True if another row counts the same events, so that a sum of rows leaves this one out. */
  readonly isDetail?: boolean;
}

/** A row with its numbers. */
export interface ShownMetric extends MetricRow {
  readonly total: number;
  readonly recent: number;
}

/** Percentiles in milliseconds; null without any durations. */
export interface Percentiles {
  readonly p50: number | null;
  readonly p99: number | null;
  readonly count: number;
}

/** The timer of decisions over gRPC. */
export const RESPONSE_TIME = "ratelimit_server.ShouldRateLimit.response_time";

/** Faults of quotas, each as a counter. */
export const QUOTA_PROBLEMS: readonly MetricRow[] = [
  { label: "Reports of buckets above QUOTA_MAX_BUCKETS", names: /quota\.surplus_buckets$/ },
  { label: "Reports of invalid buckets", names: /quota\.bad_buckets$/ },
  { label: "Reports of buckets whose rule limits requests in flight", names: /quota\.impossible_buckets$/ },
  { label: "Refused streams of quotas", names: /quota\.streams_refused$/ },
  { label: "Failed exchanges of quotas with the cache", names: /quota\.exchanges_failed$/ },
  { label: "Skipped reports of quotas", names: /quota\.reports_skipped$/ },
];

/** The errors, each as a counter. */
export const ERRORS: readonly MetricRow[] = [
  { label: "Invalid calls, or calls without rules", names: /should_rate_limit\.service_error$/ },
  { label: "Calls with a failing cache", names: /should_rate_limit\.(kv|mc)_error$/ },
  { label: "Descriptors allowed without the cache", names: /cache_failure\.allow$/, isDetail: true },
  { label: "Descriptors denied without the cache", names: /cache_failure\.deny$/, isDetail: true },
  {
    label: "Descriptors counted in this process without the cache",
    names: /cache_failure\.local$/,
    isDetail: true,
  },
  { label: "Calls refused at MAX_IN_FLIGHT", names: /cache\.in_flight_refused$/, isDetail: true },
  ...QUOTA_PROBLEMS,
  { label: "Rejected configurations", names: /config_load_error$/ },
  { label: "Connections refused at the maximum", names: /connections_refused$/ },
  { label: "Connections not accepted", names: /accept_failures$/ },
  { label: "Failed TLS handshakes", names: /tls_refused$/ },
  { label: "Rejected certificates", names: /tls_reload_failed$/ },
  { label: "Socket errors", names: /socket_errors$/ },
  { label: "Unexpected errors", names: /unexpected_errors$/ },
  { label: "Dropped log lines", names: /log_lines_dropped$/ },
  { label: "Lost lines of statistics", names: /lines_lost$/ },
  { label: "Lost events about limits and the configuration", names: /\.events\.dropped$/ },
  { label: "Trigger calls with 5xx", names: /webhooks\.triggers\.(unavailable|failed)$/ },
  { label: "Failed executions", names: /webhooks\.executions_ended\.failed$/ },
  { label: "Failed delivery attempts", names: /webhooks\.attempts\.(?!acknowledged$)/ },
  { label: "Failed reads and writes of the store", names: /webhooks\.store_errors$/ },
  { label: "Calls refused at a bound of the store", names: /webhooks\.bound_refusals\./ },
];

/** The open connections to the cache. */
export const CONNECTIONS: MetricRow = {
  label: "Connections",
  names: /(kv_pool|kv_per_second_pool|mc)\.cx_active$/,
  isGauge: true,
};

/** The state of the cache, without its breakers. */
export const CACHE: readonly MetricRow[] = [
  CONNECTIONS,
  { label: "Known nodes", names: /(cluster_nodes|mc\.nodes)$/, isGauge: true },
  { label: "Hits in flight", names: /cache\.in_flight$/, isGauge: true },
  { label: "Breaker openings", names: /breaker_opened$/ },
  { label: "Timeouts", names: /(kv_pool|kv_per_second_pool|mc)\.timeouts$/ },
  { label: "Waits without a free connection", names: /\.exhausted$/ },
  { label: "Opened connections", names: /(kv_pool|kv_per_second_pool|mc)\.cx_total$/ },
];

/** The breakers of the cache that are open. */
export const OPEN_BREAKERS: MetricRow = { label: "Open breakers", names: /breaker_open$/, isGauge: true };

/** Entries in memory, and those that were evicted. */
export const EVICTIONS: readonly MetricRow[] = [
  { label: "Counters in this process", names: /memory\.keys$/, isGauge: true },
  { label: "Evicted counters", names: /memory\.evicted_keys$/ },
  { label: "Keys in the local cache", names: /localcache\.entryCount$/, isGauge: true },
  { label: "Lookups that the local cache answered", names: /localcache\.hitCount$/ },
  { label: "Evicted from the local cache", names: /localcache\.evacuateCount$/ },
  { label: "Expired in the local cache", names: /localcache\.expiredCount$/ },
  { label: "Metric keys beyond STATS_MAX_KEYS", names: /rate_limit_keys_overflowed$/ },
];

/** The rows whose metrics exist, with their numbers. */
export function shownMetrics(
  rows: readonly MetricRow[],
  { metrics }: Snapshot,
  history: readonly Counts[],
): ShownMetric[] {
  const before = history[0]?.metrics ?? metrics;
  return rows.flatMap((row) => {
    const names = [...metrics.keys()].filter((name) => row.names.test(name));
    if (names.length === 0) return [];
    const sum = (of: Counts["metrics"]) => names.reduce((all, name) => all + (of.get(name) ?? 0), 0);
    const total = sum(metrics);
    return [{ ...row, total, recent: Math.max(0, total - sum(before)) }];
  });
}

/** All errors together, each counted once. */
export function errorCount(
  snapshot: Snapshot,
  history: readonly Counts[],
): Pick<ShownMetric, "total" | "recent"> {
  const shown = shownMetrics(ERRORS.filter(({ isDetail = false }) => !isDetail), snapshot, history);
  const sum = (of: (one: ShownMetric) => number) => shown.reduce((all, one) => all + of(one), 0);
  return { total: sum(({ total }) => total), recent: sum(({ recent }) => recent) };
}

/** The response times of decisions in the last two minutes. */
export function responseTimes(snapshot: Snapshot, history: readonly Counts[]): Percentiles {
  return percentilesOf(
    snapshot.boundsMs,
    snapshot.timers.get(RESPONSE_TIME),
    history[0]?.timers.get(RESPONSE_TIME),
  );
}

/** The percentiles of the durations after `before`, estimated within their buckets as Prometheus does. */
export function percentilesOf(
  boundsMs: readonly number[],
  buckets: readonly number[] = [],
  before: readonly number[] = [],
): Percentiles {
  const counts = buckets.map((count, index) => Math.max(0, count - (before[index] ?? 0)));
  const count = counts.reduce((all, one) => all + one, 0);
  return {
    count,
    p50: percentile(boundsMs, counts, count * 0.5),
    p99: percentile(boundsMs, counts, count * 0.99),
  };
}

function percentile(boundsMs: readonly number[], counts: readonly number[], rank: number): number | null {
  if (rank === 0) return null;
  let below = 0;
  for (const [index, count] of counts.entries()) {
    if (below + count >= rank) {
      const from = boundsMs[index - 1] ?? 0;
      const to = boundsMs[index] ?? from;
      return from + (to - from) * (rank - below) / count;
    }
    below += count;
  }
  return boundsMs.at(-1) ?? null;
}
