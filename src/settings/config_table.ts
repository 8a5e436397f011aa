import { parseDialTarget } from "./address_parsers.ts";
import { float, integer, mapBy, parseHeaderName, parsePath, parseText } from "./parsers.ts";
import { choice, file, flag, inGroup, text, time } from "./rows.ts";

const RULES = inGroup("Rules", {
  CONFIG_TYPE: choice(
    ["FILE", "GRPC_XDS_SOTW"],
    "FILE",
    "Source of the rules: `FILE` (a folder) or `GRPC_XDS_SOTW` (an xDS configuration server).",
  ),
  RUNTIME_ROOT: {
    parse: parsePath,
    default: "/srv/runtime_data/current",
    doc: "Root folder of the rules, often a symbolic link. The rule files are in " +
      "`RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY`.",
  },
  RUNTIME_SUBDIRECTORY: text("", "Folder in `RUNTIME_ROOT`; empty for none."),
  RUNTIME_APPDIRECTORY: text(
    "config",
    "Folder in `RUNTIME_SUBDIRECTORY` that contains the rule files, `*.yaml` and `*.yml`.",
  ),
  RUNTIME_IGNOREDOTFILES: flag("false", "`true` ignores rule files whose names start with a dot."),
  RUNTIME_WATCH_ROOT: flag(
    "true",
    "`true` reloads the rules when the symbolic link `RUNTIME_ROOT` is replaced; `false` reloads them " +
      "when a rule file changes.",
  ),
  MERGE_DOMAIN_CONFIG: flag("false", "`true` allows several files to define rules of the same domain."),
  FORCE_START_WITHOUT_INITIAL_CONFIG: flag(
    "false",
    "`true` opens the gRPC and HTTP ports before the first rules are loaded; until then calls fail " +
      "with UNAVAILABLE or 503.",
  ),
  HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: flag(
    "false",
    "`true` reports the service as unhealthy while no domain is loaded.",
  ),
});

const CONFIGURATION_SERVER = inGroup("Configuration server", {
  CONFIG_GRPC_XDS_NODE_ID: text("default", "Node ID that Weir sends to the configuration server."),
  CONFIG_GRPC_XDS_NODE_METADATA: {
    parse: mapBy("="),
    default: "",
    doc: "Node metadata that Weir sends to the configuration server, as `key=value,key=value`.",
  },
  CONFIG_GRPC_XDS_SERVER_URL: {
    parse: parseDialTarget,
    default: "localhost:18000",
    doc: "Address of the configuration server: `host:port`, `dns:///host:port` or `unix:path`.",
  },
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: time(
    "3s",
    "Delay before the first reconnection attempt after a stream that delivered rules has ended.",
  ),
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: {
    parse: mapBy(":"),
    default: "",
    doc: "Headers that Weir sends to the configuration server, as `name:value,name:value`.",
    secret: true,
  },
  CONFIG_GRPC_XDS_SERVER_USE_TLS: flag("false", "`true` connects to the configuration server over TLS."),
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: file(
    "PEM file with the client certificate for the configuration server, read at each connection " +
      "attempt; requires `CONFIG_GRPC_XDS_CLIENT_TLS_KEY`.",
  ),
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: file("PEM file with the private key of `CONFIG_GRPC_XDS_CLIENT_TLS_CERT`."),
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: file(
    "PEM file with the certificate authorities that are trusted for the configuration server, instead " +
      "of the system's.",
    "the system's certificate authorities",
  ),
  CONFIG_GRPC_XDS_SERVER_TLS_SAN: {
    parse: parseText,
    whenUnset: "the host of `CONFIG_GRPC_XDS_SERVER_URL`",
    doc: "Name that the certificate of the configuration server must contain.",
  },
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: time(
    "10s",
    "First delay between failed attempts to connect to the configuration server; each further delay is " +
      "twice as long.",
  ),
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: time(
    "60s",
    "Longest delay between attempts to connect to the configuration server.",
  ),
  XDS_CLIENT_BACKOFF_RANDOM_FACTOR: {
    parse: float({ min: 0, max: 1 }),
    default: "0.5",
    doc: "Random variation of the delay between these attempts, 0 to 1: with 0.5 a delay is 50 % to 150 % " +
      "of its length.",
  },
  XDS_CLIENT_BACKOFF_JITTER: flag(
    "true",
    "`false` disables the random variation of the delay between these attempts.",
  ),
  XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: {
    parse: integer({ min: 1 }),
    whenUnset: "4194304",
    doc: "Maximum size of a message from the configuration server, in bytes; 1 or more.",
  },
});

const DECISIONS = inGroup("Decisions", {
  NEAR_LIMIT_RATIO: {
    parse: float({ min: 0, max: 1 }),
    default: "0.8",
    doc: "Share of a limit, 0 to 1, above which hits count as `near_limit` in the statistics.",
  },
  SHADOW_MODE: flag(
    "false",
    "`true` returns the overall code OK for every call; the statuses of its descriptors and the counters " +
      "are not affected.",
  ),
  QUOTA_MODE: flag(
    "false",
    "`true` applies quota mode to every rule: a call is over its limit only when all of its " +
      "descriptors are.",
  ),
  USE_CALENDAR_MONTH_RATE_LIMIT: flag(
    "false",
    "`true` lets windows of a month and of a year follow the calendar in UTC: those of rules with " +
      "`fixed_window` and without `unit_multiplier` and `calendar`, and those of limits in requests.",
  ),
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: flag(
    "false",
    "`true` does not increment the other counters of a call when one of its descriptors is over its " +
      "limit.",
  ),
  RESPONSE_DYNAMIC_METADATA: flag("false", "`true` adds dynamic metadata to responses."),
  LIMIT_RESPONSE_HEADERS_ENABLED: flag(
    "false",
    "`true` adds the three `LIMIT_..._HEADER` headers to responses.",
  ),
  LIMIT_LIMIT_HEADER: {
    parse: parseHeaderName,
    default: "RateLimit-Limit",
    doc: "Name of the header with the limit.",
  },
  LIMIT_REMAINING_HEADER: {
    parse: parseHeaderName,
    default: "RateLimit-Remaining",
    doc: "Name of the header with the remaining hits.",
  },
  LIMIT_RESET_HEADER: {
    parse: parseHeaderName,
    default: "RateLimit-Reset",
    doc: "Name of the header with the seconds until the limit resets.",
  },
  LIMIT_ALL_DESCRIPTORS_HEADERS_ENABLED: flag(
    "false",
    "`true` adds headers with the limit and the remaining hits for each unit, such as `ratelimit-limit-minutes`, in " +
      "place of the three `LIMIT_..._HEADER` headers, and lists all limits in `RateLimit` and `RateLimit-Policy`.",
  ),
  LIMIT_STANDARD_HEADERS_ENABLED: flag(
    "false",
    "`true` adds the headers `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10 to " +
      "responses.",
  ),
});

/** Settings of where rules come from and of how decisions are made. */
export const CONFIG_TABLE = { ...RULES, ...CONFIGURATION_SERVER, ...DECISIONS };
