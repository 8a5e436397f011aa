import { assertEquals } from "#assert";
import { effectiveSettings } from "../../../src/settings/effective_settings.ts";
import { type Environment, readEnvironment, readSettings } from "../../../src/settings/read_settings.ts";
import { settingEntries, type SettingName } from "../../../src/settings/table.ts";

/** Every variable of envoyproxy/ratelimit: those of its table of settings, and those that its libraries read. */
const THEIRS = `
HOST PORT DEBUG_HOST DEBUG_PORT GRPC_UDS GRPC_HOST GRPC_PORT GRPC_MAX_CONNECTION_AGE GRPC_MAX_CONNECTION_AGE_GRACE
GRPC_SERVER_USE_TLS GRPC_SERVER_TLS_CERT GRPC_SERVER_TLS_KEY GRPC_CLIENT_TLS_CACERT GRPC_CLIENT_TLS_SAN
LOG_LEVEL LOG_FORMAT CONFIG_TYPE FORCE_START_WITHOUT_INITIAL_CONFIG
CONFIG_GRPC_XDS_NODE_ID CONFIG_GRPC_XDS_NODE_METADATA CONFIG_GRPC_XDS_SERVER_URL
CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS
CONFIG_GRPC_XDS_SERVER_USE_TLS CONFIG_GRPC_XDS_CLIENT_TLS_CERT CONFIG_GRPC_XDS_CLIENT_TLS_KEY
CONFIG_GRPC_XDS_SERVER_TLS_CACERT CONFIG_GRPC_XDS_SERVER_TLS_SAN
XDS_CLIENT_BACKOFF_INITIAL_INTERVAL XDS_CLIENT_BACKOFF_MAX_INTERVAL XDS_CLIENT_BACKOFF_RANDOM_FACTOR
XDS_CLIENT_BACKOFF_JITTER XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES
USE_DOG_STATSD USE_DOG_STATSD_MOGRIFIERS USE_STATSD STATSD_HOST STATSD_PORT STATSD_PROTOCOL
DOG_STATSD_MOGRIFIERS DOG_STATSD_MOGRIFIER_<NAME>_PATTERN DOG_STATSD_MOGRIFIER_<NAME>_NAME
DOG_STATSD_MOGRIFIER_<NAME>_TAGS
EXTRA_TAGS STATS_FLUSH_INTERVAL DISABLE_STATS
USE_PROMETHEUS PROMETHEUS_ADDR PROMETHEUS_PATH PROMETHEUS_MAPPER_YAML PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS
RUNTIME_ROOT RUNTIME_SUBDIRECTORY RUNTIME_APPDIRECTORY RUNTIME_IGNOREDOTFILES RUNTIME_WATCH_ROOT
EXPIRATION_JITTER_MAX_SECONDS LOCAL_CACHE_SIZE_IN_BYTES NEAR_LIMIT_RATIO CACHE_KEY_PREFIX BACKEND_TYPE
STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT
LIMIT_RESPONSE_HEADERS_ENABLED LIMIT_LIMIT_HEADER LIMIT_REMAINING_HEADER LIMIT_RESET_HEADER
HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED
REDIS_SOCKET_TYPE REDIS_TYPE REDIS_URL REDIS_POOL_SIZE REDIS_AUTH REDIS_TLS REDIS_TLS_CLIENT_CERT
REDIS_TLS_CLIENT_KEY REDIS_TLS_CACERT REDIS_TLS_SKIP_HOSTNAME_VERIFICATION REDIS_PIPELINE_WINDOW REDIS_PIPELINE_LIMIT
REDIS_CLUSTER_PIPELINE_PARALLELISM REDIS_PERSECOND REDIS_PERSECOND_SOCKET_TYPE REDIS_PERSECOND_TYPE
REDIS_PERSECOND_URL REDIS_PERSECOND_POOL_SIZE REDIS_PERSECOND_AUTH REDIS_PERSECOND_TLS REDIS_SENTINEL_AUTH
REDIS_PERSECOND_SENTINEL_AUTH REDIS_PERSECOND_PIPELINE_WINDOW REDIS_PERSECOND_PIPELINE_LIMIT
REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM REDIS_HEALTH_CHECK_ACTIVE_CONNECTION REDIS_TIMEOUT
REDIS_PERSECOND_TIMEOUT REDIS_POOL_ON_EMPTY_BEHAVIOR REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR
REDIS_POOL_ON_EMPTY_WAIT_DURATION REDIS_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION
REDIS_STARTUP_INITIAL_INTERVAL REDIS_STARTUP_MAX_INTERVAL REDIS_STARTUP_MAX_ELAPSED_TIME
MEMCACHE_HOST_PORT MEMCACHE_MAX_IDLE_CONNS MEMCACHE_SRV MEMCACHE_SRV_REFRESH MEMCACHE_TLS MEMCACHE_TLS_CLIENT_CERT
MEMCACHE_TLS_CLIENT_KEY MEMCACHE_TLS_CACERT MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION
SHADOW_MODE QUOTA_MODE USE_CALENDAR_MONTH_RATE_LIMIT RESPONSE_DYNAMIC_METADATA MERGE_DOMAIN_CONFIG
TRACING_ENABLED TRACING_SERVICE_NAME TRACING_SERVICE_NAMESPACE TRACING_SERVICE_INSTANCE_ID
TRACING_EXPORTER_PROTOCOL TRACING_SAMPLING_RATE
`.trim().split(/\s+/);

Deno.test("aliases: every variable of envoyproxy/ratelimit is a setting, or an alias of one", () => {
  const entries = settingEntries();
  const aliases = entries.flatMap(([, { aliases = [] }]) => aliases);
  const names = new Set<string>([...entries.map(([name]) => name), ...aliases]);
  assertEquals(THEIRS.filter((name) => !names.has(name)), []);
  assertEquals(aliases.filter((alias) => !THEIRS.includes(alias)), [], "an alias that has no counterpart");
  assertEquals(new Set(aliases).size, aliases.length, "an alias of two settings");
});

interface Case {
  readonly name: string;
  readonly env: Environment;
  readonly settings: Readonly<Partial<Record<SettingName, unknown>>>;
  readonly notes: readonly string[];
}

const CASES: readonly Case[] = [
  {
    name: "the environment of its docker-compose.yml",
    env: {
      USE_STATSD: "false",
      LOG_LEVEL: "debug",
      REDIS_SOCKET_TYPE: "tcp",
      REDIS_URL: "redis:6379",
      RUNTIME_ROOT: "/data",
      RUNTIME_SUBDIRECTORY: "ratelimit",
      MEMCACHE_HOST_PORT: "memcached:11211",
    },
    settings: { USE_PUSH_STATS: false, KV_URL: "redis:6379", KV_SOCKET_TYPE: "tcp", BACKEND_TYPE: "kv" },
    notes: [
      "MC_HOST_PORT is set from MEMCACHE_HOST_PORT",
      "KV_SOCKET_TYPE is set from REDIS_SOCKET_TYPE",
      "KV_URL is set from REDIS_URL",
      "USE_PUSH_STATS is set from USE_STATSD",
    ],
  },
  {
    name: "its names of back ends",
    env: { BACKEND_TYPE: "memcache", MEMCACHE_HOST_PORT: "a:1" },
    settings: { BACKEND_TYPE: "mc", MC_HOST_PORT: [{ host: "a", port: 1 }] },
    notes: ["MC_HOST_PORT is set from MEMCACHE_HOST_PORT", 'BACKEND_TYPE "memcache" is read as mc'],
  },
  {
    name: "its other name",
    env: { BACKEND_TYPE: "redis", KV_URL: "a:1", REDIS_TYPE: "SINGLE" },
    settings: { BACKEND_TYPE: "kv", KV_TYPE: "single" },
    notes: ["KV_TYPE is set from REDIS_TYPE", 'BACKEND_TYPE "redis" is read as kv'],
  },
  {
    name: "sentinels with a login",
    env: { REDIS_TYPE: "SENTINEL", REDIS_URL: "main,redis://:word@a:1,redis://:word@b:2" },
    settings: { KV_URL: "main,redis://:word@a:1,redis://:word@b:2" },
    notes: ["KV_TYPE is set from REDIS_TYPE", "KV_URL is set from REDIS_URL"],
  },
  {
    name: "ours before theirs",
    env: { KV_URL: "a:1", REDIS_URL: "b:2" },
    settings: { KV_URL: "a:1" },
    notes: ["REDIS_URL is ignored: KV_URL is set"],
  },
  {
    name: "a family",
    env: { KV_URL: "a:1", DOG_STATSD_MOGRIFIER_HITS_PATTERN: "b", DOG_STATSD_MOGRIFIER_HITS_TAGS: "c:d" },
    settings: {
      "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN": new Map([["HITS", /b/u]]),
      "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS": new Map([["HITS", new Map([["c", "d"]])]]),
    },
    notes: [
      "TAGGED_PUSH_STATS_MOGRIFIER_HITS_PATTERN is set from DOG_STATSD_MOGRIFIER_HITS_PATTERN",
      "TAGGED_PUSH_STATS_MOGRIFIER_HITS_TAGS is set from DOG_STATSD_MOGRIFIER_HITS_TAGS",
    ],
  },
  {
    name: "service links of Kubernetes",
    env: {
      KV_URL: "a:1",
      GRPC_PORT: "tcp://10.0.0.1:80",
      DEBUG_PORT: "TCP://10.0.0.1:80",
      STATSD_PORT: "udp://10.0.0.1:8125",
      MEMCACHE_HOST_PORT: "tcp://10.0.0.1:11211",
      REDIS_PORT: "tcp://10.0.0.1:6379",
      REDIS_PORT_6379_TCP: "tcp://10.0.0.1:6379",
      REDIS_SERVICE_HOST: "10.0.0.1",
      WEIR_PORT: "tcp://10.0.0.1:80",
      WEIR_SERVICE_PORT_HTTP: "80",
      GRPC_SERVICE_HOST: "10.0.0.1",
    },
    settings: { GRPC_PORT: 8081, DEBUG_PORT: 6070, PUSH_STATS_PORT: 8125, MC_HOST_PORT: undefined },
    notes: ["DEBUG_PORT", "GRPC_PORT", "MEMCACHE_HOST_PORT", "STATSD_PORT"].map((name) =>
      `${name} is ignored: its value is a service link of Kubernetes`
    ),
  },
];

for (const { name, env, settings, notes } of CASES) {
  Deno.test(`aliases: ${name}`, () => {
    const reading = readSettings(env);
    const read = Object.fromEntries(
      Object.entries(reading.settings).filter(([key]) => key in settings),
    );
    assertEquals({
      read,
      notes: reading.notes,
      warnings: reading.warnings.filter((line) => !/MC_KEY/.test(line)),
    }, {
      read: settings,
      notes,
      warnings: [],
    });
  });
}

Deno.test("aliases: operators see which variable a value comes from, and no secret", () => {
  const { environment, sources } = readEnvironment({ REDIS_URL: "a:1", REDIS_AUTH: "word" });
  const shown = effectiveSettings(environment, sources).filter(({ source }) => source !== "default");
  assertEquals(
    shown.map(({ name, value, source }) => [name, value, source]),
    [["KV_URL", "a:1", "REDIS_URL"], ["KV_AUTH", undefined, "REDIS_AUTH"]],
  );
});
