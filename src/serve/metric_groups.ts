import type { MetricGroup } from "../base/metrics.ts";
import {
  IN_FLIGHT_METRICS,
  kvClusterMetrics,
  kvLoginMetrics,
  LOCAL_CACHE_METRICS,
  MC_METRICS,
  MEMORY_METRICS,
  ROUND_TRIP_METRICS,
} from "../cache/metrics.ts";
import {
  methodMetrics,
  PULL_METRICS,
  pushMetrics,
  ruleMetrics,
  SERVICE_METRICS,
} from "../stats/declarations.ts";
import { PROCESS_ERROR_METRICS, PROCESS_METRICS } from "../telemetry/process_metrics.ts";
import { WEBHOOK_METRICS } from "../webhooks/service/metrics.ts";
import { certificateMetrics } from "./certificates.ts";
import { HEALTH_METRICS } from "./health_watch.ts";
import { acceptMetrics, connectionMetrics, GRPC_TLS_METRICS, tlsMetrics } from "./listener_metrics.ts";
import { OPERATIONAL_EVENT_METRICS } from "./operational_events.ts";
import { QUOTA_METRICS } from "./quotas.ts";
import { TRIGGER_METRICS } from "./webhook_statistics.ts";

/** Metrics of one part of the service. */
interface MetricSection {
  readonly title: string;
  /** The meaning of `<…>` in the names, and the conditions of the metrics. */
  readonly note: string;
  readonly groups: readonly MetricGroup[];
}

/** Every metric, in the order of the reference. */
export const METRIC_SECTIONS: readonly MetricSection[] = [
  {
    title: "Decisions",
    note: "",
    groups: [SERVICE_METRICS],
  },
  {
    title: "Rules",
    note:
      "`<key>` is the metric key of a rule: its domain, and the keys and values of its levels with dots. " +
      "While the cache fails, `within_limit`, `near_limit` and `over_limit` grow only with `CACHE_ON_FAILURE=local`.",
    groups: [ruleMetrics("<key>")],
  },
  {
    title: "gRPC methods",
    note: "`<method>` is the name of the method, such as `ShouldRateLimit`.",
    groups: [methodMetrics("<method>")],
  },
  {
    title: "Quotas",
    note: "See [quotas that Envoy enforces](quotas.md).",
    groups: [QUOTA_METRICS],
  },
  {
    title: "Shared caches",
    note: "These metrics require `BACKEND_TYPE=kv` or `mc`.",
    groups: [IN_FLIGHT_METRICS, ROUND_TRIP_METRICS],
  },
  {
    title: "Key-value cache",
    note:
      "These metrics require `BACKEND_TYPE=kv`; names with `cluster_` also require `KV_TYPE=CLUSTER`. With " +
      "`KV_PERSECOND=true`, the second cache has the same metrics, with `kv_per_second_pool` instead of `kv_pool`.",
    groups: [kvClusterMetrics("kv_pool"), kvLoginMetrics("kv_pool")],
  },
  {
    title: "Memcached-style cache",
    note: "These metrics require `BACKEND_TYPE=mc`.",
    groups: [MC_METRICS],
  },
  {
    title: "Embedded cache",
    note:
      "These metrics describe the counters of `BACKEND_TYPE=memory`, and those of the mode `local` while a shared " +
      "cache fails. With a shared cache and without the mode `local`, they are reported as 0.",
    groups: [MEMORY_METRICS],
  },
  {
    title: "Local cache",
    note:
      "These metrics require `LOCAL_CACHE_SIZE_IN_BYTES`. Names and kinds are the same as in envoyproxy/ratelimit.",
    groups: [LOCAL_CACHE_METRICS],
  },
  {
    title: "Process",
    note: "",
    groups: [PROCESS_METRICS, PROCESS_ERROR_METRICS, HEALTH_METRICS],
  },
  {
    title: "Certificates",
    note: "Only for the files that are in use. `<setting>` is such as `GRPC_SERVER_TLS_CERT`.",
    groups: [certificateMetrics(["<setting>"])],
  },
  {
    title: "Listeners",
    note:
      "`<listener>` is `grpc`, `http`, `trigger`, `debug`, `administration` or `metrics`. Only `grpc`, `http` and " +
      "`trigger` have connection metrics. Only `grpc` and `http` with TLS have names with `tls_`; `trigger` uses the " +
      "certificate of `http`.",
    groups: [
      acceptMetrics("<listener>"),
      connectionMetrics("<listener>"),
      tlsMetrics("<listener>"),
      GRPC_TLS_METRICS,
    ],
  },
  {
    title: "Pushed statistics",
    note: "`<sink>` is `push_stats`, or `tagged_push_stats` with `USE_TAGGED_PUSH_STATS=true`.",
    groups: [pushMetrics("<sink>")],
  },
  {
    title: "Webhooks and workflows",
    note: "These metrics require `WEBHOOK_STORE`.",
    groups: [TRIGGER_METRICS, WEBHOOK_METRICS, OPERATIONAL_EVENT_METRICS],
  },
  {
    title: "Pull metrics only",
    note:
      "These metrics exist only in pull metrics; names with `ratelimit_rule_` require `PULL_METRICS_NATIVE=true`.",
    groups: [{ prefix: "", metrics: PULL_METRICS }],
  },
];
