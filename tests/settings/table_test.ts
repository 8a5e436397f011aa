import { assertEquals } from "@std/assert";
import { GROUPS, type Setting } from "../../src/settings/setting.ts";
import { AREAS, familyPattern, settingEntries, type SettingName, TABLE } from "../../src/settings/table.ts";

/** Every environment variable that the requirement and the specifications name. */
const SPECIFIED = `
HOST PORT DEBUG_HOST DEBUG_PORT DEBUG_TOKEN HTTP_SERVER_USE_TLS HTTP_SERVER_TLS_CERT HTTP_SERVER_TLS_KEY
GRPC_HOST GRPC_PORT GRPC_UDS GRPC_UDS_MODE GRPC_MAX_CONNECTION_AGE GRPC_MAX_CONNECTION_AGE_GRACE GRPC_ENGINE
GRPC_SERVER_USE_TLS GRPC_SERVER_TLS_CERT GRPC_SERVER_TLS_KEY GRPC_CLIENT_TLS_CACERT GRPC_CLIENT_TLS_SAN
LOG_LEVEL LOG_FORMAT SHUTDOWN_DELAY ALLOW_UNSAFE_DENO
CONFIG_TYPE FORCE_START_WITHOUT_INITIAL_CONFIG HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED MERGE_DOMAIN_CONFIG
RUNTIME_ROOT RUNTIME_SUBDIRECTORY RUNTIME_APPDIRECTORY RUNTIME_IGNOREDOTFILES RUNTIME_WATCH_ROOT
CONFIG_GRPC_XDS_NODE_ID CONFIG_GRPC_XDS_NODE_METADATA CONFIG_GRPC_XDS_SERVER_URL
CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS
CONFIG_GRPC_XDS_SERVER_USE_TLS CONFIG_GRPC_XDS_CLIENT_TLS_CERT CONFIG_GRPC_XDS_CLIENT_TLS_KEY
CONFIG_GRPC_XDS_SERVER_TLS_CACERT CONFIG_GRPC_XDS_SERVER_TLS_SAN
XDS_CLIENT_BACKOFF_INITIAL_INTERVAL XDS_CLIENT_BACKOFF_MAX_INTERVAL XDS_CLIENT_BACKOFF_RANDOM_FACTOR
XDS_CLIENT_BACKOFF_JITTER XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES
NEAR_LIMIT_RATIO SHADOW_MODE QUOTA_MODE STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT RESPONSE_DYNAMIC_METADATA
LIMIT_RESPONSE_HEADERS_ENABLED LIMIT_LIMIT_HEADER LIMIT_REMAINING_HEADER LIMIT_RESET_HEADER
BACKEND_TYPE MEMORY_MAX_KEYS CACHE_KEY_PREFIX EXPIRATION_JITTER_MAX_SECONDS LOCAL_CACHE_SIZE_IN_BYTES
CACHE_ON_FAILURE MAX_IN_FLIGHT
KV_URL KV_SOCKET_TYPE KV_TYPE KV_AUTH KV_SENTINEL_AUTH KV_TIMEOUT KV_HEALTH_CHECK_ACTIVE_CONNECTION
KV_POOL_SIZE KV_POOL_ON_EMPTY_BEHAVIOR KV_POOL_ON_EMPTY_WAIT_DURATION KV_PIPELINE_WINDOW KV_PIPELINE_LIMIT
KV_CLUSTER_PIPELINE_PARALLELISM KV_STARTUP_INITIAL_INTERVAL KV_STARTUP_MAX_INTERVAL KV_STARTUP_MAX_ELAPSED_TIME
KV_TLS KV_TLS_CLIENT_CERT KV_TLS_CLIENT_KEY KV_TLS_CACERT KV_TLS_SKIP_HOSTNAME_VERIFICATION
KV_PERSECOND KV_PERSECOND_URL KV_PERSECOND_SOCKET_TYPE KV_PERSECOND_TYPE KV_PERSECOND_AUTH
KV_PERSECOND_SENTINEL_AUTH KV_PERSECOND_TIMEOUT KV_PERSECOND_POOL_SIZE KV_PERSECOND_POOL_ON_EMPTY_BEHAVIOR
KV_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION KV_PERSECOND_PIPELINE_WINDOW KV_PERSECOND_PIPELINE_LIMIT
KV_PERSECOND_CLUSTER_PIPELINE_PARALLELISM KV_PERSECOND_TLS
MC_HOST_PORT MC_SRV MC_SRV_REFRESH MC_MAX_IDLE_CONNS MC_TLS MC_TLS_CLIENT_CERT MC_TLS_CLIENT_KEY MC_TLS_CACERT
MC_TLS_SKIP_HOSTNAME_VERIFICATION
DISABLE_STATS STATS_FLUSH_INTERVAL STATS_MAX_KEYS EXTRA_TAGS USE_PUSH_STATS PUSH_STATS_HOST PUSH_STATS_PORT
PUSH_STATS_PROTOCOL USE_TAGGED_PUSH_STATS TAGGED_PUSH_STATS_MOGRIFIERS USE_TAGGED_PUSH_STATS_MOGRIFIERS
TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_NAME
TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS
USE_PULL_METRICS PULL_METRICS_ADDR PULL_METRICS_PATH PULL_METRICS_MAPPER_YAML PULL_METRICS_NATIVE
PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS
TRACING_ENABLED TRACING_EXPORTER_PROTOCOL TRACING_SERVICE_NAME TRACING_SERVICE_NAMESPACE
TRACING_SERVICE_INSTANCE_ID TRACING_SAMPLING_RATE OTEL_EXPORTER_OTLP_<OPTION>
WEBHOOK_STORE WEBHOOK_ENCRYPTION_KEY WEBHOOK_MAX_BODY_BYTES WEBHOOK_TIMEOUT WEBHOOK_CONNECT_TIMEOUT
WEBHOOK_RETENTION WEBHOOK_MAX_IN_FLIGHT WEBHOOK_ALLOW_CIDRS WEBHOOK_PROXY WEBHOOK_CA_FILE
WORKFLOW_DIRECTORY WORKFLOW_ENV WORKFLOW_ALLOW_CIDRS WORKFLOW_MAX_RUNNING
ADMIN_TOKEN ADMIN_ADDR WEIR_URL
`.trim().split(/\s+/);

const SECRETS: readonly SettingName[] = [
  "ADMIN_TOKEN",
  "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
  "DEBUG_TOKEN",
  "KV_AUTH",
  "KV_PERSECOND_AUTH",
  "KV_PERSECOND_SENTINEL_AUTH",
  "KV_PERSECOND_URL",
  "KV_SENTINEL_AUTH",
  "KV_URL",
  "OTEL_EXPORTER_OTLP_<OPTION>",
  "WEBHOOK_ENCRYPTION_KEY",
  "WEBHOOK_PROXY",
  "WEIR_URL",
];

Deno.test("the table holds exactly the specified variables", () => {
  assertEquals(settingEntries().map(([name]) => name).sort(), [...SPECIFIED].sort() as SettingName[]);
});

Deno.test("no name stands in two areas", () => {
  const names = AREAS.flatMap((area) => Object.keys(area));
  assertEquals([...new Set(names)], names);
  assertEquals(names.length, Object.keys(TABLE).length);
});

Deno.test("what may hold a secret is marked so", () => {
  assertEquals(settingEntries().flatMap(([name, { secret }]) => secret ? [name] : []).sort(), [...SECRETS]);
});

/** Names of the settings for which `fails` holds. */
function failing(fails: (setting: Setting) => boolean): SettingName[] {
  return settingEntries().filter(([, setting]) => fails(setting)).map(([name]) => name);
}

Deno.test("every setting has a sentence and a group that is known", () => {
  assertEquals(failing(({ doc, group }) => !/^\S.*\S\.$/.test(doc) || !GROUPS.includes(group)), []);
});

Deno.test("every default is accepted by the setting's own parser", () => {
  assertEquals(failing(({ parse, default: text }) => text !== undefined && "wanted" in parse(text)), []);
});

Deno.test("a setting has a default or says what holds without one, never both", () => {
  assertEquals(failing((setting) => setting.default !== undefined && setting.whenUnset !== undefined), []);
});

Deno.test("every setting is marked wholly or not at all, and only a refusal is about some values", () => {
  assertEquals(
    failing(({ comesWith, meanwhile }) => (comesWith === undefined) !== (meanwhile === undefined)),
    [],
  );
  assertEquals(failing(({ missing, meanwhile }) => missing !== undefined && meanwhile !== "refuse"), []);
});

Deno.test("missing values are some that the parser makes, and the default is none of them", () => {
  const makes = (setting: Setting, text: string, value: unknown) => {
    const parsed = setting.parse(text);
    return "value" in parsed && parsed.value === value;
  };
  assertEquals(
    failing((setting) =>
      (setting.missing ?? []).some((value) =>
        !makes(setting, String(value), value) || makes(setting, setting.default ?? "", value)
      )
    ),
    [],
  );
});

Deno.test("only a name with a placeholder stands for a family", () => {
  assertEquals(familyPattern("KV_URL"), undefined);
  assertEquals(familyPattern("OTEL_EXPORTER_OTLP_<OPTION>"), /^OTEL_EXPORTER_OTLP_(.+)$/);
  const name = "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS";
  assertEquals(familyPattern(name), /^TAGGED_PUSH_STATS_MOGRIFIER_(.+)_TAGS$/);
});
