import { counter, gauge, type MetricGroup, timer } from "../base/metrics.ts";

/** Metrics of the connections to one key-value server. */
const KV_POOL_METRICS = {
  cx_active: gauge("connections", "Open connections to the cache."),
  cx_total: counter("connections", "Connections opened to the cache since the start."),
  cx_local_close: counter("connections", "Connections to the cache that Weir closed."),
  exhausted: counter("waits", "Waits for a free connection that ended without one."),
};

/** Metrics of one key-value server. */
export const KV_NODE_METRICS = {
  ...KV_POOL_METRICS,
  timeouts: counter("batches", "Batches without a response from the cache within the timeout."),
  breaker_open: gauge("breakers", "Circuit breakers that are open; a cluster has one for each node."),
  breaker_opened: counter("openings", "Number of times that a circuit breaker opened."),
  batches_in_flight: gauge("batches", "Batches that wait for a response."),
};

/** Metrics of a key-value cluster. */
export const KV_CLUSTER_METRICS = {
  ...KV_NODE_METRICS,
  cluster_nodes: gauge("nodes", "Known nodes of the cluster.", { combined: "max" }),
  cluster_moved: counter("redirections", "MOVED redirections by nodes of the cluster."),
  cluster_ask: counter("redirections", "ASK redirections by nodes of the cluster."),
  cluster_refreshes: counter("reads", "Reads of the slot table of the cluster."),
};

/** The caches that have these metrics: all counters, or those of rules per second. */
export type KvPoolName = "kv_pool" | "kv_per_second_pool";

/** The group of a key-value cache with one server. */
export function kvMetrics(name: KvPoolName): MetricGroup<typeof KV_NODE_METRICS> {
  return { prefix: `ratelimit.${name}.`, metrics: KV_NODE_METRICS };
}

/** The group of a key-value cluster. */
export function kvClusterMetrics(name: KvPoolName): MetricGroup<typeof KV_CLUSTER_METRICS> {
  return { prefix: `ratelimit.${name}.`, metrics: KV_CLUSTER_METRICS };
}

/** Metrics of the logins to a key-value cache, its sentinels included. */
const KV_LOGIN_METRICS = {
  credentials_reloaded: counter("reloads", "Credentials that were reloaded because their file changed.", {
    combined: "max",
  }),
  credentials_rejected: counter(
    "reloads",
    "Files with credentials that could not be used; the previous credentials remain in use.",
    { combined: "max" },
  ),
  logins_refused: counter("logins", "Logins that a server refused."),
};

/** The group of the logins to a key-value cache. */
export function kvLoginMetrics(name: KvPoolName): MetricGroup<typeof KV_LOGIN_METRICS> {
  return { prefix: `ratelimit.${name}.`, metrics: KV_LOGIN_METRICS };
}

/** Metrics of one node of the memcached-style cache. */
export const MC_NODE_METRICS = {
  cx_active: gauge("connections", "Open connections to the cache."),
  breaker_open: gauge("breakers", "Circuit breakers that are open; each node has one."),
  breaker_opened: counter("openings", "Number of times that a circuit breaker opened."),
};

/** Metrics that all nodes of the memcached-style cache count together. An increment is a step up or down. */
export const MC_TALLY_METRICS = {
  multiget: counter("commands", "Reads of a key, by result.", { values: ["success", "error"] }),
  increment: counter(
    "commands",
    "Increments and decrements, by result; `miss` is a key that the node does not have.",
    {
      values: ["success", "miss", "error"],
    },
  ),
  add: counter(
    "commands",
    "Creations of keys, by result; `not_stored` is a key that another instance created.",
    {
      values: ["success", "not_stored", "error"],
    },
  ),
  keys_requested: counter("keys", "Keys that were read."),
  keys_found: counter("keys", "Keys that were read and found."),
  timeouts: counter("commands", "Commands without a response from the cache within the timeout."),
  cx_total: counter("connections", "Connections opened to the cache since the start."),
};

/** Metrics of the memcached-style cache. */
export const MC_METRICS = {
  prefix: "ratelimit.mc.",
  metrics: {
    ...MC_TALLY_METRICS,
    ...MC_NODE_METRICS,
    nodes: gauge("nodes", "Known nodes of the cache.", { combined: "max" }),
  },
} satisfies MetricGroup;

/** Metrics of the hits in flight to a shared cache. */
export const IN_FLIGHT_METRICS = {
  prefix: "ratelimit.cache.",
  metrics: {
    in_flight: gauge("hits", "Hits that wait for the shared cache."),
    in_flight_refused: counter(
      "calls",
      "Calls whose hits were not sent because `MAX_IN_FLIGHT` hits were waiting.",
    ),
  },
} satisfies MetricGroup;

/** Metrics of the round trips to every shared cache. */
export const ROUND_TRIP_METRICS = {
  prefix: "ratelimit.cache.",
  metrics: {
    round_trip: timer(
      "Time from sending a batch to the cache to its response.",
      "ratelimit_service_cache_round_trip_seconds",
    ),
  },
} satisfies MetricGroup;

/** Metrics of the embedded cache. */
export const MEMORY_METRICS = {
  prefix: "ratelimit.memory.",
  metrics: {
    keys: gauge("keys", "Counters in the memory of this process."),
    evicted_keys: counter("keys", "Counters evicted because `MEMORY_MAX_KEYS` was reached."),
  },
} satisfies MetricGroup;

/** Metrics of the local cache; the names are those of envoyproxy/ratelimit. */
export const LOCAL_CACHE_METRICS = {
  prefix: "ratelimit.localcache.",
  metrics: {
    entryCount: gauge("keys", "Over-limit keys in the local cache."),
    hitCount: gauge("lookups", "Lookups that found an over-limit key."),
    missCount: gauge("lookups", "Lookups that found no key."),
    lookupCount: gauge("lookups", "All lookups."),
    overwriteCount: gauge("keys", "Keys that were stored again."),
    expiredCount: gauge("keys", "Keys that were found expired."),
    evacuateCount: gauge("keys", "Keys evicted because the local cache was full."),
    averageAccessTime: gauge("seconds", "Average Unix time of the last use of the entries.", {
      combined: "max",
    }),
  },
} satisfies MetricGroup;
