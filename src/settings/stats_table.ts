import { listenAddress, parseHost, parseUrlPath } from "./address_parsers.ts";
import { float, listOf, mapBy, parseBoolean, parsePattern, parseText } from "./parsers.ts";
import { choice, count, file, flag, inGroup, text, time } from "./rows.ts";

const STATISTICS = inGroup("Statistics", {
  STATS_MAX_KEYS: count(
    "100000",
    "How many different rule keys statistics hold; further ones of a domain share its key `other`.",
    { min: 1 },
  ),
  DISABLE_STATS: flag("false", "`true` sends no statistics anywhere; the debug port still shows them."),
  STATS_FLUSH_INTERVAL: time("10s", "Duration between two deliveries of statistics.", { min: "1ms" }),
  EXTRA_TAGS: {
    parse: mapBy(":"),
    default: "",
    doc: "Tags on all statistics: `key:value,key:value`.",
  },
  USE_PUSH_STATS: {
    parse: parseBoolean,
    whenUnset: "`true`, unless tagged push or pull metrics are chosen",
    doc: "`true` pushes statistics; `false` without another receiver writes them to standard output.",
  },
  PUSH_STATS_HOST: {
    parse: parseHost,
    default: "localhost",
    doc: "Host of the receiver of pushed statistics, tagged ones too.",
  },
  PUSH_STATS_PORT: count("8125", "Port of that receiver.", { min: 1, max: 65_535 }),
  PUSH_STATS_PROTOCOL: choice(["tcp", "udp"], "tcp", "How plain statistics are pushed: `tcp` or `udp`."),
  USE_TAGGED_PUSH_STATS: flag("false", "`true` pushes statistics with tags."),
  TAGGED_PUSH_STATS_MOGRIFIERS: {
    parse: listOf(parseText),
    default: "",
    doc: "Names of the mogrifiers, by comma; the first whose pattern matches a statistic rewrites it.",
  },
  USE_TAGGED_PUSH_STATS_MOGRIFIERS: {
    parse: listOf(parseText),
    default: "",
    doc: "Another spelling of `TAGGED_PUSH_STATS_MOGRIFIERS`.",
  },
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN": {
    parse: parsePattern,
    doc:
      "Regular expression of the statistics that the mogrifier `<NAME>` rewrites, in the syntax of JavaScript or Go.",
  },
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_NAME": {
    parse: parseText,
    doc: "The name that it gives them; `$1`, `$2` and so on stand for the groups of the pattern.",
  },
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS": {
    parse: mapBy(":"),
    doc: "The tags that it gives them: `key:value,key:value`, with `$1`, `$2` and so on.",
  },
});

const PULL_METRICS = inGroup("Pull metrics", {
  USE_PULL_METRICS: flag("false", "`true` serves metrics on a separate port."),
  PULL_METRICS_ADDR: {
    parse: listenAddress,
    default: ":9090",
    doc: "Address of that port: `host:port`, or `:port` for every interface.",
  },
  PULL_METRICS_PATH: {
    parse: parseUrlPath,
    default: "/metrics",
    doc: "Path under which the metrics are served.",
  },
  PULL_METRICS_MAPPER_YAML: file(
    "File that maps the names of statistics to metrics and labels.",
    "the built-in mapping",
  ),
  PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS: flag(
    "false",
    "`true` keeps the response time of the built-in mapping in milliseconds instead of seconds.",
  ),
  PULL_METRICS_NATIVE: flag(
    "false",
    "`true` builds labels from the rules themselves and not from the names of statistics.",
  ),
});

const TRACING = inGroup("Tracing", {
  TRACING_ENABLED: flag("false", "`true` exports spans of decisions by OTLP."),
  TRACING_EXPORTER_PROTOCOL: choice(["http", "grpc"], "http", "How spans are exported: `http` or `grpc`."),
  TRACING_SERVICE_NAME: text("RateLimit", "Name of the service in its spans."),
  TRACING_SERVICE_NAMESPACE: text("", "Namespace of the service in its spans."),
  TRACING_SERVICE_INSTANCE_ID: {
    parse: parseText,
    whenUnset: "a random UUID",
    doc: "Name of this instance in its spans.",
  },
  TRACING_SAMPLING_RATE: {
    parse: float({ min: 0, max: 1 }),
    default: "1",
    doc: "Share of calls that are traced, 0 to 1, where the caller has not decided.",
  },
  "OTEL_EXPORTER_OTLP_<OPTION>": {
    parse: parseText,
    doc: "The standard variables of OTLP exporters, which choose the destination of spans.",
    secret: true, // one of them holds headers, and those hold tokens
  },
});

/** Settings of statistics, pull metrics and tracing. */
export const STATS_TABLE = { ...STATISTICS, ...PULL_METRICS, ...TRACING };
