import { parseDialTarget } from "./address_parsers.ts";
import { float, integer, mapBy, parseHeaderName, parsePath, parseText } from "./parsers.ts";
import { choice, file, flag, inGroup, text, time } from "./rows.ts";

const RULES = inGroup("Rules", {
  CONFIG_TYPE: choice(
    ["FILE", "GRPC_XDS_SOTW"],
    "FILE",
    "Where rules come from: `FILE` for a folder, `GRPC_XDS_SOTW` for a configuration server.",
  ),
  RUNTIME_ROOT: {
    parse: parsePath,
    default: "/srv/runtime_data/current",
    doc: "Folder, often a symlink, that contains the rule files.",
  },
  RUNTIME_SUBDIRECTORY: text("", "Folder below `RUNTIME_ROOT`; empty for none."),
  RUNTIME_APPDIRECTORY: text(
    "config",
    "Folder below `RUNTIME_SUBDIRECTORY` that holds the rule files, `*.yaml` and `*.yml`.",
  ),
  RUNTIME_IGNOREDOTFILES: flag("false", "`true` skips rule files whose name starts with a dot."),
  RUNTIME_WATCH_ROOT: flag(
    "true",
    "`true` reloads when the symlink `RUNTIME_ROOT` is replaced, `false` when the rule files change.",
  ),
  MERGE_DOMAIN_CONFIG: flag("false", "`true` lets several files define rules of the same domain."),
  FORCE_START_WITHOUT_INITIAL_CONFIG: flag(
    "false",
    "`true` opens the gRPC and HTTP ports before the first rules are loaded, and answers unavailable until then.",
  ),
  HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: flag(
    "false",
    "`true` makes the service unhealthy while no domain is loaded.",
  ),
});

const CONFIGURATION_SERVER = inGroup("Configuration server", {
  CONFIG_GRPC_XDS_NODE_ID: text("default", "Name by which this node asks the configuration server."),
  CONFIG_GRPC_XDS_NODE_METADATA: {
    parse: mapBy("="),
    default: "",
    doc: "Metadata of this node for the configuration server: `key=value,key=value`.",
  },
  CONFIG_GRPC_XDS_SERVER_URL: {
    parse: parseDialTarget,
    default: "localhost:18000",
    doc: "Address of the configuration server: `host:port`.",
  },
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: time(
    "3s",
    "Duration of the wait before the first new attempt when a stream that had delivered rules ends.",
  ),
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: {
    parse: mapBy(":"),
    default: "",
    doc: "Headers sent to the configuration server: `name:value,name:value`.",
    secret: true,
  },
  CONFIG_GRPC_XDS_SERVER_USE_TLS: flag("false", "`true` enables TLS to the configuration server."),
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: file(
    "PEM file with the certificate shown to the configuration server, read at each connect.",
  ),
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: file("PEM file with the private key of that certificate."),
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: file(
    "PEM file of the authority that signed the configuration server's certificate.",
    "the system's authorities",
  ),
  CONFIG_GRPC_XDS_SERVER_TLS_SAN: {
    parse: parseText,
    whenUnset: "the host of the address",
    doc: "Name that the configuration server's certificate must carry.",
  },
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: time(
    "10s",
    "Duration of the first wait between attempts to reach the configuration server; it doubles each time.",
  ),
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: time("60s", "Duration of the longest wait between those attempts."),
  XDS_CLIENT_BACKOFF_RANDOM_FACTOR: {
    parse: float({ min: 0, max: 1 }),
    default: "0.5",
    doc: "Spread of those waits, 0 to 1: 0.5 makes each between half and one and a half times as long.",
  },
  XDS_CLIENT_BACKOFF_JITTER: flag("true", "`false` removes the spread of those waits."),
  XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: {
    parse: integer({ min: 1 }),
    whenUnset: "4194304",
    doc: "Largest message taken from the configuration server, in bytes.",
  },
});

const DECISIONS = inGroup("Decisions", {
  NEAR_LIMIT_RATIO: {
    parse: float({ min: 0, max: 1 }),
    default: "0.8",
    doc: "Share of a limit, 0 to 1, from which hits count as near it.",
  },
  SHADOW_MODE: flag("false", "`true` answers every call with OK, whatever its descriptors say."),
  QUOTA_MODE: flag(
    "false",
    "`true` treats every rule as one in quota mode: a call is over only when all its descriptors are.",
  ),
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: flag(
    "false",
    "`true` leaves the other counters of a call alone when one of its descriptors is over its limit.",
  ),
  RESPONSE_DYNAMIC_METADATA: flag("false", "`true` fills the dynamic metadata of answers."),
  LIMIT_RESPONSE_HEADERS_ENABLED: flag("false", "`true` adds three headers about the limit to answers."),
  LIMIT_LIMIT_HEADER: {
    parse: parseHeaderName,
    default: "RateLimit-Limit",
    doc: "Name of the header with the limit.",
  },
  LIMIT_REMAINING_HEADER: {
    parse: parseHeaderName,
    default: "RateLimit-Remaining",
    doc: "Name of the header with what is left of the limit.",
  },
  LIMIT_RESET_HEADER: {
    parse: parseHeaderName,
    default: "RateLimit-Reset",
    doc: "Name of the header with the seconds until the limit starts anew.",
  },
});

/** Settings of where rules come from and of how decisions are made. */
export const CONFIG_TABLE = { ...RULES, ...CONFIGURATION_SERVER, ...DECISIONS };
