import {
  duration,
  float,
  integer,
  listenAddress,
  listOf,
  mapBy,
  oneOf,
  parseBoolean,
  parseHost,
  parsePath,
  parsePattern,
  parseText,
  parseUrlPath,
} from "./parsers.ts";
import type { SettingTable } from "./setting.ts";

/** Settings of statistics, pull metrics and tracing. */
export const STATS_TABLE = {
  STATS_MAX_KEYS: {
    parse: integer({ min: 1 }),
    default: "100000",
    doc: "How many different rule keys statistics hold; further ones of a domain share its key `other`.",
    group: "Statistics",
  },
  DISABLE_STATS: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` sends no statistics anywhere; the debug port still shows them.",
    group: "Statistics",
  },
  STATS_FLUSH_INTERVAL: {
    parse: duration({ min: "1ms" }),
    default: "10s",
    doc: "Duration between two deliveries of statistics.",
    group: "Statistics",
  },
  EXTRA_TAGS: {
    parse: mapBy(":"),
    default: "",
    doc: "Tags on all statistics: `key:value,key:value`.",
    group: "Statistics",
  },
  USE_PUSH_STATS: {
    parse: parseBoolean,
    whenUnset: "`true`, unless tagged push or pull metrics are chosen",
    doc: "`true` pushes statistics; `false` without another receiver writes them to standard output.",
    group: "Statistics",
  },
  PUSH_STATS_HOST: {
    parse: parseHost,
    default: "localhost",
    doc: "Host of the receiver of pushed statistics, tagged ones too.",
    group: "Statistics",
  },
  PUSH_STATS_PORT: {
    parse: integer({ min: 1, max: 65_535 }),
    default: "8125",
    doc: "Port of that receiver.",
    group: "Statistics",
  },
  PUSH_STATS_PROTOCOL: {
    parse: oneOf(["tcp", "udp"]),
    default: "tcp",
    doc: "How plain statistics are pushed: `tcp` or `udp`.",
    group: "Statistics",
  },
  USE_TAGGED_PUSH_STATS: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` pushes statistics with tags.",
    group: "Statistics",
  },
  TAGGED_PUSH_STATS_MOGRIFIERS: {
    parse: listOf(parseText),
    default: "",
    doc: "Names of the mogrifiers, by comma; the first whose pattern matches a statistic rewrites it.",
    group: "Statistics",
  },
  USE_TAGGED_PUSH_STATS_MOGRIFIERS: {
    parse: listOf(parseText),
    default: "",
    doc: "Another spelling of `TAGGED_PUSH_STATS_MOGRIFIERS`.",
    group: "Statistics",
  },
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN": {
    parse: parsePattern,
    doc:
      "Regular expression of the statistics that the mogrifier `<NAME>` rewrites, in the syntax of JavaScript or Go.",
    group: "Statistics",
  },
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_NAME": {
    parse: parseText,
    doc: "The name that it gives them; `$1`, `$2` and so on stand for the groups of the pattern.",
    group: "Statistics",
  },
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS": {
    parse: mapBy(":"),
    doc: "The tags that it gives them: `key:value,key:value`, with `$1`, `$2` and so on.",
    group: "Statistics",
  },
  USE_PULL_METRICS: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` serves metrics on a port of their own.",
    group: "Pull metrics",
  },
  PULL_METRICS_ADDR: {
    parse: listenAddress,
    default: ":9090",
    doc: "Address of that port: `host:port`, or `:port` for every interface.",
    group: "Pull metrics",
  },
  PULL_METRICS_PATH: {
    parse: parseUrlPath,
    default: "/metrics",
    doc: "Path under which the metrics are served.",
    group: "Pull metrics",
  },
  PULL_METRICS_MAPPER_YAML: {
    parse: parsePath,
    whenUnset: "the built-in mapping",
    doc: "File that maps the names of statistics to metrics and labels.",
    group: "Pull metrics",
  },
  PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` keeps milliseconds in the response time of the built-in mapping, in place of seconds.",
    group: "Pull metrics",
  },
  PULL_METRICS_NATIVE: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` builds labels from the rules themselves and not from the names of statistics.",
    group: "Pull metrics",
  },
  TRACING_ENABLED: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` exports spans of decisions by OTLP.",
    group: "Tracing",
  },
  TRACING_EXPORTER_PROTOCOL: {
    parse: oneOf(["http", "grpc"]),
    whenUnset: "`OTEL_EXPORTER_OTLP_PROTOCOL` decides, else `http`",
    doc: "How spans are exported: `http` or `grpc`. `OTEL_EXPORTER_OTLP_PROTOCOL` decides between JSON and protobuf.",
    group: "Tracing",
  },
  TRACING_SERVICE_NAME: {
    parse: parseText,
    default: "RateLimit",
    doc: "Name of the service in its spans.",
    group: "Tracing",
  },
  TRACING_SERVICE_NAMESPACE: {
    parse: parseText,
    default: "",
    doc: "Namespace of the service in its spans.",
    group: "Tracing",
  },
  TRACING_SERVICE_INSTANCE_ID: {
    parse: parseText,
    whenUnset: "a random UUID",
    doc: "Name of this instance in its spans.",
    group: "Tracing",
  },
  TRACING_SAMPLING_RATE: {
    parse: float({ min: 0, max: 1 }),
    default: "1",
    doc: "Share of calls that are traced, 0 to 1, where the caller has not decided.",
    group: "Tracing",
  },
  "OTEL_EXPORTER_OTLP_<OPTION>": {
    parse: parseText,
    doc: "The standard variables of OTLP exporters, which choose the destination of spans.",
    group: "Tracing",
    secret: true, // one of them holds headers, and those hold tokens
  },
} as const satisfies SettingTable;
