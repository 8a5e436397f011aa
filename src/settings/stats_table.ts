import { listenAddress, parseHost, parseUrlPath } from "./address_parsers.ts";
import { float, listOf, mapBy, oneOf, parseBoolean, parseKeys, parsePattern, parseText } from "./parsers.ts";
import { choice, count, file, flag, inGroup, ours, text, time } from "./rows.ts";

const STATISTICS = inGroup("Statistics", {
  STATS_MAX_KEYS: count(
    "100000",
    "Maximum number of rule keys with their own statistics; hits of further keys are counted under the " +
      "key `other` of their domain.",
    { min: 1 },
  ),
  STATS_REQUEST_LIMIT_VALUES: {
    parse: parseKeys,
    default: "*",
    doc: "Keys whose values are in the names of statistics of limits that come with requests, separated by " +
      "commas; `*` for all, `none` for none. Choose keys with few values.",
  },
  DISABLE_STATS: flag(
    "false",
    "`true` disables pushed statistics, pull metrics and the export over OTLP; the debug port still shows " +
      "all statistics.",
  ),
  STATS_FLUSH_INTERVAL: time("10s", "Interval at which statistics are pushed; `1ms` or more.", {
    min: "1ms",
  }),
  EXTRA_TAGS: {
    parse: mapBy(":"),
    default: "",
    doc: "Tags that are added to all statistics, as `key:value,key:value`.",
  },
  USE_PUSH_STATS: {
    parse: parseBoolean,
    whenUnset: "`true`, unless tagged statistics, pull metrics or the export over OTLP are enabled",
    doc: "`true` pushes statistics to `PUSH_STATS_HOST`. `false` writes them to standard output, unless " +
      "tagged statistics, pull metrics or the export over OTLP are enabled.",
  },
  PUSH_STATS_HOST: {
    parse: parseHost,
    default: "localhost",
    doc: "Host that receives pushed statistics, plain and tagged.",
  },
  PUSH_STATS_PORT: count("8125", "Port that receives pushed statistics, 1 to 65535.", {
    min: 1,
    max: 65_535,
  }),
  PUSH_STATS_PROTOCOL: choice(
    ["tcp", "udp"],
    "tcp",
    "Protocol of plain statistics: `tcp` or `udp`. Tagged statistics use UDP.",
  ),
  USE_TAGGED_PUSH_STATS: flag("false", "`true` pushes statistics with tags to `PUSH_STATS_HOST`."),
  TAGGED_PUSH_STATS_MOGRIFIERS: {
    parse: listOf(parseText),
    default: "",
    doc: "Names of the mogrifiers, separated by commas. A statistic is rewritten by the first one whose " +
      "pattern matches it.",
  },
  USE_TAGGED_PUSH_STATS_MOGRIFIERS: {
    parse: listOf(parseText),
    default: "",
    doc: "Additional mogrifiers, tried after those of `TAGGED_PUSH_STATS_MOGRIFIERS`.",
  },
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN": {
    parse: parsePattern,
    doc: "Regular expression that selects the statistics that the mogrifier `<NAME>` rewrites, in the " +
      "syntax of Go, or of JavaScript where Go has none, with a warning.",
  },
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_NAME": {
    parse: parseText,
    doc: "Name that the mogrifier `<NAME>` gives to a statistic; `$1`, `$2`, `$name` and so on insert the " +
      "groups of the pattern.",
  },
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS": {
    parse: mapBy(":"),
    doc: "Tags that the mogrifier `<NAME>` gives to a statistic, as `key:value,key:value`; `$1`, `$2`, " +
      "`$name` and so on insert the groups of the pattern.",
  },
}, [["TAGGED_PUSH_STATS", "DOG_STATSD"], ["PUSH_STATS", "STATSD"]]);

const PULL_METRICS = inGroup("Pull metrics", {
  USE_PULL_METRICS: flag("false", "`true` serves metrics for Prometheus at `PULL_METRICS_ADDR`."),
  PULL_METRICS_ADDR: {
    parse: listenAddress,
    default: ":9090",
    doc: "Address of the metrics: `host:port`, or `:port` for every interface.",
  },
  PULL_METRICS_PATH: {
    parse: parseUrlPath,
    default: "/metrics",
    doc: "URL path of the metrics.",
  },
  PULL_METRICS_MAPPER_YAML: file(
    "YAML file that maps the names of statistics to metrics and labels.",
    "the built-in mapping",
  ),
  PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS: flag(
    "false",
    "`true` reports the response time of the built-in mapping in milliseconds instead of seconds.",
  ),
  PULL_METRICS_NATIVE: ours(flag(
    "false",
    "`true` derives labels from the rules instead of from the names of statistics.",
  )),
}, [["PULL_METRICS", "PROMETHEUS"]]);

const OTLP_METRICS = inGroup("Metrics over OTLP", {
  OTEL_METRICS_EXPORTER: choice(
    ["otlp", "none"],
    "none",
    "`otlp` exports metrics over OTLP, with the names and labels of pull metrics; `none` exports none.",
  ),
  OTEL_METRIC_EXPORT_INTERVAL: count(
    "60000",
    "Interval at which metrics are exported, in milliseconds, 100 or more.",
    { min: 100 },
  ),
});

const TRACING = inGroup("Tracing", {
  TRACING_ENABLED: flag("false", "`true` exports spans over OTLP."),
  TRACING_EXPORTER_PROTOCOL: {
    parse: oneOf(["http", "grpc"]),
    whenUnset: "derived from `OTEL_EXPORTER_OTLP_PROTOCOL`, otherwise `http`",
    doc: "Transport of spans: `http` or `grpc`. With `http`, `OTEL_EXPORTER_OTLP_PROTOCOL` selects JSON or " +
      "protobuf.",
  },
  TRACING_SERVICE_NAME: text("RateLimit", "Value of the resource attribute `service.name`."),
  TRACING_SERVICE_NAMESPACE: text("", "Value of the resource attribute `service.namespace`."),
  TRACING_SERVICE_INSTANCE_ID: {
    parse: parseText,
    whenUnset: "a random UUID",
    doc: "Value of the resource attribute `service.instance.id`.",
  },
  TRACING_SAMPLING_RATE: {
    parse: float({ min: 0, max: 1 }),
    default: "1",
    doc: "Share of calls that are traced, 0 to 1, when the caller has not made a sampling decision.",
  },
  "OTEL_EXPORTER_OTLP_<OPTION>": {
    parse: parseText,
    doc: "Standard environment variables of OTLP exporters, of spans and of metrics, for example " +
      "`OTEL_EXPORTER_OTLP_ENDPOINT`.",
    secret: true, // one of them holds headers, and those hold tokens
  },
});

/** Settings of statistics, metrics and tracing. */
export const STATS_TABLE = { ...STATISTICS, ...PULL_METRICS, ...OTLP_METRICS, ...TRACING };
