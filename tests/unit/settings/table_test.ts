import { assertEquals } from "#assert";
import { GROUPS, type Setting } from "../../../src/settings/setting.ts";
import {
  AREAS,
  familyPattern,
  settingEntries,
  type SettingName,
  TABLE,
} from "../../../src/settings/table.ts";

/** The default of a setting, valid texts with their values, and invalid texts with their problems. */
interface Row {
  readonly unset: unknown;
  readonly taken: readonly (readonly [text: string, value: unknown])[];
  readonly refused: readonly string[];
  readonly expected: string;
  readonly isSecret?: true;
}

const EMPTY = new Map<string, string>();
const NONE: readonly string[] = [];
const KEY = btoa("k".repeat(32));
const TOKEN = "d5f1c0c2b7a94e6f8d3b";
const NAMED =
  "name:role:token: a name of at most 64 letters, digits and ._@-, other than system; the role admin or " +
  "read; and a random token without commas and spaces";

/** A row of these texts, the second of which is the value where it differs; of `expected` there is a text that breaks it. */
function row(unset: unknown, taken: readonly unknown[], refused?: string, expected = ""): Row {
  const pairs = taken.map((one) =>
    Array.isArray(one) ? [String(one[0]), one[1]] as const : [String(one), one] as const
  );
  return { unset, taken: pairs, refused: refused === undefined ? [] : [refused], expected };
}

const kind = (taken: readonly unknown[], refused?: string, expected?: string) => (unset?: unknown) =>
  row(unset, taken, refused, expected);

const flag = kind([["T", true], ["0", false]], "yes", "true or false");
const host = kind(["::1", "a.b"], "a b", "a host name or an IP address");
const path = kind(["/run/a"], "a\0b", "the path of a file or folder");
const text = kind([" anything, at all "]);
const header = kind(["X-L"], "X L", "a header name of letters, digits and !#$%&'*+-.^_`|~");
const ratio = kind([["0", 0], ["1", 1]], "1.1", "a number from 0 to 1");
const socketType = kind(["tcp", "unix"], "TCP", "tcp or unix");
const kvType = kind(
  ["sentinel", ["Cluster", "cluster"], ["SINGLE", "single"]],
  "x",
  "single, sentinel or cluster",
);
const onEmpty = kind(["ERROR", ["create", "CREATE"], ["Wait", "WAIT"]], "x", "CREATE, ERROR or WAIT");
const token = kind(["s3cret"], "s3 cret", "visible ASCII characters without a space");
const map = kind([["a:b", new Map([["a", "b"]])]], "a", "a comma list of key:value items, each key once");
const listen = kind(
  [[":90", { host: "0.0.0.0", port: 90 }]],
  "90",
  "host:port, [IPv6 address]:port or :port",
);
const RANGE = "an address range such as 10.0.0.0/8 or fd00::/8";
const ranges = (unset: unknown) => list(unset, "10.0.0.0/8", "10.0.0.0/33", RANGE);

/** A list of what `item` is. */
function list(unset: unknown, item: string, refused: string, expected: string, value: unknown = item): Row {
  return row(unset, [[item, [value]]], refused, `a comma list whose items are each ${expected}`);
}

/** An integer: both bounds are taken, and what is beyond them is not. */
function count(unset: number | undefined, min: number, max?: number): Row {
  const bounds = max === undefined ? `of ${min} or more` : `from ${min} to ${max}`;
  return {
    unset,
    taken: [min, ...(max === undefined ? [] : [max])].map((value) => [String(value), value]),
    refused: [String(min - 1), max === undefined ? "1.5" : String(max + 1)],
    expected: `an integer ${bounds}`,
  };
}

/** A duration in milliseconds. */
function time(unset: number, min?: string): Row {
  const bounds = min === undefined ? "" : ` of ${min} or more`;
  const expected = `a duration${bounds}, such as 10s, 150us or 1m30s`;
  const refused = ["10", ...(min === undefined ? [] : ["999us"])];
  return { unset, taken: [["1ms", 1], ["1m", 60_000]], refused, expected };
}

function secret(one: Row): Row {
  return { ...one, isSecret: true };
}

/** Every environment variable that the requirement and the specifications name. */
const GOLDEN: Readonly<Record<SettingName, Row>> = {
  LOG_LEVEL: row(
    "warning",
    ["trace", ["WARN", "warning"]],
    "loud",
    "trace, debug, info, warning, error, fatal or panic",
  ),
  LOG_FORMAT: row("text", [["JSON", "json"]], "xml", "text or json"),
  SHUTDOWN_DELAY: time(0),
  LISTEN_SHARED: flag(true),
  WORKERS: count(1, 1, 64),
  NOTIFY_SOCKET: path(),
  ALLOW_UNSAFE_DENO: flag(false),
  HOST: host("0.0.0.0"),
  PORT: count(8_080, 0, 65_535),
  HTTP_MAX_CONNECTIONS: count(0, 0, 1_000_000),
  HTTP_JSON: flag(true),
  HTTP_SERVER_USE_TLS: flag(false),
  HTTP_SERVER_TLS_CERT: path(),
  HTTP_SERVER_TLS_KEY: path(),
  DEBUG_HOST: host("0.0.0.0"),
  DEBUG_PORT: count(6_070, 0, 65_535),
  DEBUG_TOKEN: secret(token()),
  DEBUG_ALLOWED_HOSTS: list(NONE, "a.b", "a b", "a host name or an IP address"),
  GRPC_HOST: host("0.0.0.0"),
  GRPC_PORT: count(8_081, 0, 65_535),
  GRPC_MAX_CONNECTIONS: count(0, 0, 1_000_000),
  QUOTA_MAX_STREAMS: count(1_000, 1, 100_000),
  QUOTA_MAX_BUCKETS_PER_STREAM: count(10_000, 1, 10_000),
  QUOTA_MAX_BUCKETS: count(1_000_000, 1, 10_000_000),
  QUOTA_OVERFLOW: row("deny", ["allow"], "drop", "deny or allow"),
  GRPC_UDS: path(),
  GRPC_UDS_MODE: row(undefined, [["0606", 0o606]], "0888", "file permissions in octal, such as 0660"),
  GRPC_MAX_CONNECTION_AGE: time(86_400_000),
  GRPC_MAX_CONNECTION_AGE_GRACE: time(3_600_000),
  GRPC_ENGINE: row("native", ["grpc-js"], "grpc", "grpc-js or native"),
  GRPC_SERVER_USE_TLS: flag(false),
  GRPC_SERVER_TLS_CERT: path(),
  GRPC_SERVER_TLS_KEY: path(),
  GRPC_CLIENT_TLS_CACERT: path(),
  GRPC_CLIENT_TLS_SAN: text(),
  CONFIG_TYPE: row("FILE", ["GRPC_XDS_SOTW"], "file", "FILE or GRPC_XDS_SOTW"),
  RUNTIME_ROOT: path("/srv/runtime_data/current"),
  RUNTIME_SUBDIRECTORY: text(""),
  RUNTIME_APPDIRECTORY: text("config"),
  RUNTIME_IGNOREDOTFILES: flag(false),
  RUNTIME_WATCH_ROOT: flag(true),
  MERGE_DOMAIN_CONFIG: flag(false),
  FORCE_START_WITHOUT_INITIAL_CONFIG: flag(false),
  HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: flag(false),
  CONFIG_GRPC_XDS_NODE_ID: text("default"),
  CONFIG_GRPC_XDS_NODE_METADATA: row(
    EMPTY,
    [["a=b:c", new Map([["a", "b:c"]])]],
    "a:b",
    "a comma list of key=value items, each key once",
  ),
  CONFIG_GRPC_XDS_SERVER_URL: row(
    "localhost:18000",
    ["unix:/a"],
    "http://a:1",
    "host:port, dns:///host:port or unix:path",
  ),
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: time(3_000),
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: secret(map(EMPTY)),
  CONFIG_GRPC_XDS_SERVER_USE_TLS: flag(false),
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: path(),
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: path(),
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: path(),
  CONFIG_GRPC_XDS_SERVER_TLS_SAN: text(),
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: time(10_000),
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: time(60_000),
  XDS_CLIENT_BACKOFF_RANDOM_FACTOR: ratio(0.5),
  XDS_CLIENT_BACKOFF_JITTER: flag(true),
  XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: count(undefined, 1),
  NEAR_LIMIT_RATIO: ratio(0.8),
  SHADOW_MODE: flag(false),
  QUOTA_MODE: flag(false),
  USE_CALENDAR_MONTH_RATE_LIMIT: flag(false),
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: flag(false),
  RESPONSE_DYNAMIC_METADATA: flag(false),
  LIMIT_RESPONSE_HEADERS_ENABLED: flag(false),
  LIMIT_LIMIT_HEADER: header("RateLimit-Limit"),
  LIMIT_REMAINING_HEADER: header("RateLimit-Remaining"),
  LIMIT_RESET_HEADER: header("RateLimit-Reset"),
  LIMIT_ALL_DESCRIPTORS_HEADERS_ENABLED: flag(false),
  LIMIT_STANDARD_HEADERS_ENABLED: flag(false),
  BACKEND_TYPE: row("kv", ["mc", "memory", ["redis", "kv"], ["memcache", "mc"]]),
  MEMORY_MAX_KEYS: count(1_000_000, 1),
  CACHE_KEY_PREFIX: text(""),
  EXPIRATION_JITTER_MAX_SECONDS: count(300, 0, 2_147_483_647),
  LOCAL_CACHE_SIZE_IN_BYTES: count(0, 0),
  CACHE_ON_FAILURE: row("error", ["allow", "deny", "local"], "open", "error, allow, deny or local"),
  MAX_IN_FLIGHT: count(10_000, 1),
  MC_HOST_PORT: list(undefined, "a:1", "a", "host:port or [IPv6 address]:port", { host: "a", port: 1 }),
  MC_SRV: row(undefined, ["_mc._tcp.a"], "mc.a", "an SRV name such as _mc._tcp.example.com"),
  MC_SRV_REFRESH: time(0),
  MC_MAX_IDLE_CONNS: count(2, 0),
  MC_TIMEOUT: time(500, "1ms"),
  MC_KEY_DIGEST: flag(false),
  MC_TLS: flag(false),
  MC_TLS_CLIENT_CERT: path(),
  MC_TLS_CLIENT_KEY: path(),
  MC_TLS_CACERT: path(),
  MC_TLS_SKIP_HOSTNAME_VERIFICATION: flag(false),
  KV_URL: secret(text()),
  KV_SOCKET_TYPE: socketType(),
  KV_TYPE: kvType("single"),
  KV_AUTH: secret(text()),
  KV_SENTINEL_AUTH: secret(text()),
  KV_TIMEOUT: time(10_000, "1ms"),
  KV_HEALTH_CHECK_ACTIVE_CONNECTION: flag(false),
  KV_POOL_SIZE: count(10, 1),
  KV_POOL_ON_EMPTY_BEHAVIOR: onEmpty("CREATE"),
  KV_POOL_ON_EMPTY_WAIT_DURATION: time(1_000),
  KV_PIPELINE_WINDOW: time(0),
  KV_PIPELINE_LIMIT: count(0, 0),
  KV_CLUSTER_PIPELINE_PARALLELISM: count(0, 0),
  KV_STARTUP_INITIAL_INTERVAL: time(1_000),
  KV_STARTUP_MAX_INTERVAL: time(30_000),
  KV_STARTUP_MAX_ELAPSED_TIME: time(0),
  KV_TLS: flag(false),
  KV_TLS_CLIENT_CERT: path(),
  KV_TLS_CLIENT_KEY: path(),
  KV_TLS_CACERT: path(),
  KV_TLS_SKIP_HOSTNAME_VERIFICATION: flag(false),
  KV_PERSECOND: flag(false),
  KV_PERSECOND_URL: secret(text()),
  KV_PERSECOND_SOCKET_TYPE: socketType(),
  KV_PERSECOND_TYPE: kvType("single"),
  KV_PERSECOND_AUTH: secret(text()),
  KV_PERSECOND_SENTINEL_AUTH: secret(text()),
  KV_PERSECOND_TIMEOUT: time(10_000, "1ms"),
  KV_PERSECOND_POOL_SIZE: count(10, 1),
  KV_PERSECOND_POOL_ON_EMPTY_BEHAVIOR: onEmpty("CREATE"),
  KV_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION: time(1_000),
  KV_PERSECOND_PIPELINE_WINDOW: time(0),
  KV_PERSECOND_PIPELINE_LIMIT: count(0, 0),
  KV_PERSECOND_CLUSTER_PIPELINE_PARALLELISM: count(0, 0),
  KV_PERSECOND_TLS: flag(false),
  STATS_MAX_KEYS: count(100_000, 1),
  STATS_REQUEST_LIMIT_VALUES: {
    unset: undefined,
    taken: [["*", undefined], ["none", new Set()], ["a, b,,a", new Set(["a", "b"])]],
    refused: ["a,*", "none,a", "*,none", " , "],
    expected: "*, none, or a comma list of keys",
  },
  DISABLE_STATS: flag(false),
  STATS_FLUSH_INTERVAL: time(10_000, "1ms"),
  EXTRA_TAGS: map(EMPTY),
  USE_PUSH_STATS: flag(),
  PUSH_STATS_HOST: host("localhost"),
  PUSH_STATS_PORT: count(8_125, 1, 65_535),
  PUSH_STATS_PROTOCOL: row("tcp", ["udp"], "UDP", "tcp or udp"),
  USE_TAGGED_PUSH_STATS: flag(false),
  TAGGED_PUSH_STATS_MOGRIFIERS: row(NONE, [["A, B", ["A", "B"]]]),
  USE_TAGGED_PUSH_STATS_MOGRIFIERS: row(NONE, [["A", ["A"]]]),
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN": row(
    undefined,
    [["^a$", /^a$/u]],
    "[",
    "a regular expression: missing closing ] at character 1",
  ),
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_NAME": text(),
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS": map(),
  USE_PULL_METRICS: flag(false),
  PULL_METRICS_ADDR: listen({ "host": "0.0.0.0", "port": 9090 }),
  PULL_METRICS_PATH: row("/metrics", ["/a"], "a", "a path that starts with /"),
  PULL_METRICS_MAPPER_YAML: path(),
  PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS: flag(false),
  PULL_METRICS_NATIVE: flag(false),
  OTEL_METRICS_EXPORTER: row("none", ["otlp"], "prometheus", "otlp or none"),
  OTEL_METRIC_EXPORT_INTERVAL: count(60_000, 100),
  TRACING_ENABLED: flag(false),
  TRACING_EXPORTER_PROTOCOL: row(undefined, ["http", "grpc"], "udp", "http or grpc"),
  TRACING_SERVICE_NAME: text("RateLimit"),
  TRACING_SERVICE_NAMESPACE: text(""),
  TRACING_SERVICE_INSTANCE_ID: text(),
  TRACING_SAMPLING_RATE: ratio(1),
  "OTEL_EXPORTER_OTLP_<OPTION>": secret(text()),
  WEBHOOK_STORE: secret(path()),
  WEBHOOK_STORE_POOL_SIZE: count(10, 1, 1_000),
  WEBHOOK_STORE_CONNECT_TIMEOUT: time(5_000, "1ms"),
  WEBHOOK_STORE_STATEMENT_TIMEOUT: time(10_000, "1ms"),
  WEBHOOK_STORE_LOCK_TIMEOUT: time(5_000, "1ms"),
  WEBHOOK_STORE_MAX_BYTES: count(1_099_511_627_776, 0),
  WEBHOOK_MAX_BACKLOG: count(1_000_000, 0),
  WEBHOOK_ENCRYPTION_KEY: secret(list(undefined, KEY, btoa("short"), "32 bytes in base64")),
  WEBHOOK_ENCRYPTION_KEY_FILE: path(),
  WEBHOOK_MAX_BODY_BYTES: count(1_048_576, 1),
  WEBHOOK_TIMEOUT: time(15_000, "1ms"),
  WEBHOOK_CONNECT_TIMEOUT: time(5_000, "1ms"),
  WEBHOOK_RETENTION: time(2_592_000_000),
  WEBHOOK_DISABLE_AFTER: time(432_000_000),
  WEBHOOK_MAX_IN_FLIGHT: count(500, 1),
  WEBHOOK_ALLOW_CIDRS: ranges(NONE),
  WEBHOOK_PROXY: secret(row(undefined, ["http://a:1"], "https://a", "a URL that starts with http://")),
  WEBHOOK_CA_FILE: path(),
  WORKFLOW_DIRECTORY: path(),
  WORKFLOW_ENV: list(NONE, "A_B", "A-B", "the name of an environment variable"),
  WORKFLOW_ALLOW_CIDRS: ranges(NONE),
  WORKFLOW_MAX_RUNNING: count(200, 1),
  RATE_LIMIT_EVENTS_MAX_PER_SECOND: count(10, 0, 1_000),
  TRIGGER_ADDR: listen(),
  TRIGGER_PUBLIC_URL: row(
    undefined,
    ["https://a", "http://a:1/b"],
    "https://a?b",
    "a URL that starts with http:// or https://, without user and query",
  ),
  ADMIN_TOKEN: secret(token()),
  ADMIN_TOKENS: secret(
    list(undefined, `a:read:${TOKEN}`, `a:own:${TOKEN}`, NAMED, { name: "a", role: "read", token: TOKEN }),
  ),
  ADMIN_TOKENS_FILE: path(),
  ADMIN_ADDR: listen(),
  WEIR_URL: secret(
    row("http://localhost:8080", ["https://a"], "a:1", "a URL that starts with http:// or https://"),
  ),
};

for (const [name, setting] of settingEntries()) {
  Deno.test(`setting ${name}`, () => {
    const { unset, taken, refused, expected, isSecret } = GOLDEN[name];
    const value = setting.default === undefined ? { value: undefined } : setting.parse(setting.default);
    assertEquals([value, setting.secret], [{ value: unset }, isSecret]);
    for (const [text, value] of taken) assertEquals(setting.parse(text), { value });
    for (const text of refused) assertEquals(setting.parse(text), { expected });
  });
}

Deno.test("the table holds exactly the specified variables, each in one area", () => {
  const names = AREAS.flatMap((area) => Object.keys(area));
  assertEquals(names.toSorted(), Object.keys(GOLDEN).sort());
  assertEquals([new Set(names).size, Object.keys(TABLE).length], [names.length, names.length]);
});

/** Names of the settings for which `fails` holds. */
function failing(fails: (setting: Setting) => boolean): SettingName[] {
  return settingEntries().filter(([, setting]) => fails(setting)).map(([name]) => name);
}

Deno.test("every setting has whole sentences and a group that is known", () => {
  assertEquals(failing(({ doc, group }) => !/^(?:[A-Z]|`).*\S\.$/s.test(doc) || !GROUPS.includes(group)), []);
});

Deno.test("a setting has a default or says what holds without one, never both", () => {
  assertEquals(failing((setting) => setting.default !== undefined && setting.whenUnset !== undefined), []);
});

Deno.test("only a name with a placeholder stands for a family", () => {
  assertEquals(familyPattern("KV_URL"), undefined);
  assertEquals(familyPattern("OTEL_EXPORTER_OTLP_<OPTION>"), /^OTEL_EXPORTER_OTLP_(.+)$/);
  const name = "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS";
  assertEquals(familyPattern(name), /^TAGGED_PUSH_STATS_MOGRIFIER_(.+)_TAGS$/);
});
