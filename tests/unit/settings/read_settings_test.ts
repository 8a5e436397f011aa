import { assert, assertEquals, assertThrows } from "@std/assert";
import { type Environment, readSettings, SettingsError } from "../../../src/settings/read_settings.ts";
import { settingEntries, type Settings } from "../../../src/settings/table.ts";

const MEMORY: Environment = { BACKEND_TYPE: "memory" };

/** The problems that the environment is refused for; none when it is taken. */
function problemsOf(env: Environment): readonly string[] {
  try {
    readSettings(env);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}

Deno.test("defaults hold where nothing is set, as values of their types", () => {
  const { settings, warnings } = readSettings(MEMORY);
  const port: number = settings.GRPC_PORT;
  const url: string | undefined = settings.KV_URL;
  const level: "trace" | "debug" | "info" | "warning" | "error" | "fatal" | "panic" = settings.LOG_LEVEL;
  const tags: ReadonlyMap<string, string> = settings.EXTRA_TAGS;
  assertEquals(
    { port, url, level, tags, timeout: settings.KV_TIMEOUT, metrics: settings.PULL_METRICS_ADDR, warnings },
    {
      port: 8081,
      url: undefined,
      level: "warning",
      tags: new Map(),
      timeout: 10_000,
      metrics: { host: "0.0.0.0", port: 9090 },
      warnings: [],
    },
  );
});

Deno.test("every setting is there under its name", () => {
  assertEquals(Object.keys(readSettings(MEMORY).settings), settingEntries().map(([name]) => name as string));
});

Deno.test("a variable that is set but empty counts as unset", () => {
  const empty = Object.fromEntries(
    settingEntries().map(([name]) => [name.replace("<", "").replace(">", ""), ""]),
  );
  const upstream = { REDIS_URL: "", USE_STATSD: "" };
  assertEquals(readSettings({ ...empty, ...upstream, ...MEMORY }), readSettings(MEMORY));
});

const TAKEN: readonly {
  readonly name: keyof Settings;
  readonly env: Environment;
  readonly value: unknown;
}[] = [
  { name: "GRPC_PORT", env: { GRPC_PORT: "0" }, value: 0 },
  { name: "GRPC_HOST", env: { GRPC_HOST: "::" }, value: "::" },
  { name: "GRPC_UDS_MODE", env: { GRPC_UDS_MODE: "0660" }, value: 0o660 },
  { name: "LOG_LEVEL", env: { LOG_LEVEL: "WARN" }, value: "warning" },
  { name: "LOG_FORMAT", env: { LOG_FORMAT: "JSON" }, value: "json" },
  { name: "KV_TIMEOUT", env: { KV_TIMEOUT: "1.5s" }, value: 1500 },
  { name: "KV_TYPE", env: { KV_TYPE: "SINGLE" }, value: "single" },
  { name: "NEAR_LIMIT_RATIO", env: { NEAR_LIMIT_RATIO: "0.5" }, value: 0.5 },
  { name: "CACHE_KEY_PREFIX", env: { CACHE_KEY_PREFIX: " p: " }, value: " p: " },
  { name: "SHADOW_MODE", env: { SHADOW_MODE: "T" }, value: true },
  { name: "GRPC_ENGINE", env: { GRPC_ENGINE: "grpc-js" }, value: "grpc-js" },
  { name: "KV_TLS", env: { KV_TLS: "false" }, value: false },
  { name: "CONFIG_TYPE", env: { CONFIG_TYPE: "FILE" }, value: "FILE" },
  { name: "CACHE_ON_FAILURE", env: { CACHE_ON_FAILURE: "error" }, value: "error" },
];

for (const { name, env, value } of TAKEN) {
  Deno.test(`${JSON.stringify(env)} is taken without a warning`, () => {
    const { settings, warnings } = readSettings({ ...MEMORY, ...env });
    assertEquals({ value: settings[name] as unknown, warnings }, { value, warnings: [] });
  });
}

Deno.test("a family of variables is read by what fills its name", () => {
  const { settings, warnings } = readSettings({
    ...MEMORY,
    TAGGED_PUSH_STATS_MOGRIFIER_RULE_PATTERN: "^a\\.(.+)$",
    TAGGED_PUSH_STATS_MOGRIFIER_RULE_NAME: "a",
    TAGGED_PUSH_STATS_MOGRIFIER_RULE_TAGS: "of:$1",
    TAGGED_PUSH_STATS_MOGRIFIER_THE_NAME_PATTERN: "b",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=hunter2",
  });
  assertEquals(
    settings["TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN"],
    new Map([["RULE", /^a\.([^\n]+)$/u], ["THE_NAME", /b/u]]),
  );
  assertEquals(settings["TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_NAME"], new Map([["RULE", "a"]]));
  assertEquals(
    settings["TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS"],
    new Map([["RULE", new Map([["of", "$1"]])]]),
  );
  assertEquals(settings["OTEL_EXPORTER_OTLP_<OPTION>"], new Map([["HEADERS", "authorization=hunter2"]]));
  assertEquals(warnings, []);
});

Deno.test("a bad member of a family is named by its own variable", () => {
  assertEquals(problemsOf({ ...MEMORY, TAGGED_PUSH_STATS_MOGRIFIER_X_PATTERN: "(" }), [
    'Invalid TAGGED_PUSH_STATS_MOGRIFIER_X_PATTERN "(": expected a regular expression: missing closing ) at character 1',
  ]);
});

Deno.test("all bad settings are told at once, those between settings last", () => {
  const env = {
    LOG_LEVEL: "loud",
    GRPC_PORT: "80a1",
    NEAR_LIMIT_RATIO: "80%",
    KV_TIMEOUT: "10",
    KV_SOCKET_TYPE: "udp",
    LIMIT_RESET_HEADER: "X Reset",
    DEBUG_TOKEN: "hunter 2",
  };
  const problems = [
    'Invalid LOG_LEVEL "loud": expected trace, debug, info, warning, error, fatal or panic',
    "Invalid DEBUG_TOKEN (value not shown): expected visible ASCII characters without a space",
    'Invalid GRPC_PORT "80a1": expected an integer from 0 to 65535',
    'Invalid NEAR_LIMIT_RATIO "80%": expected a number from 0 to 1',
    'Invalid LIMIT_RESET_HEADER "X Reset": expected a header name of letters, digits and !#$%&\'*+-.^_`|~',
    'Invalid KV_SOCKET_TYPE "udp": expected tcp or unix',
    'Invalid KV_TIMEOUT "10": expected a duration of 1ms or more, such as 10s, 150us or 1m30s',
    "KV_URL is not set: expected KV_URL=host:port, or BACKEND_TYPE=memory to count only in this process",
  ];
  assertEquals(problemsOf(env), problems);
  assertEquals(new SettingsError(problems).message, problems.join("\n"));
});

Deno.test("a long value is cut short and stays on one line", () => {
  assertEquals(problemsOf({ ...MEMORY, PORT: `1\n${"x".repeat(200)}` }), [
    `Invalid PORT "1\\n${"x".repeat(98)}…": expected an integer from 0 to 65535`,
  ]);
});

const SECRET = "hunter2";
const SECRET_VALUES: Environment = {
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: SECRET,
  WEBHOOK_ENCRYPTION_KEY: SECRET,
  WEBHOOK_PROXY: SECRET,
  WEIR_URL: SECRET,
  DEBUG_TOKEN: `${SECRET} ${SECRET}`,
  KV_URL: `redis//user:${SECRET}@host`,
  KV_AUTH: SECRET,
  KV_SENTINEL_AUTH: SECRET,
  KV_PERSECOND_URL: SECRET,
  KV_PERSECOND_AUTH: SECRET,
  KV_PERSECOND_SENTINEL_AUTH: SECRET,
  ADMIN_TOKEN: SECRET,
  OTEL_EXPORTER_OTLP_HEADERS: SECRET,
  REDIS_AUTH: SECRET,
};

Deno.test("secrets do not show in problems", () => {
  const problems = problemsOf(SECRET_VALUES);
  assertEquals(problems.map((problem) => problem.split(" ")[1]), [
    "DEBUG_TOKEN",
    "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
    "WEBHOOK_ENCRYPTION_KEY",
    "WEBHOOK_PROXY",
    "WEIR_URL",
    "KV_URL",
  ]);
  assertEquals(problems.filter((problem) => problem.includes(SECRET)), []);
});

Deno.test("secrets do not show in warnings", () => {
  const { WEBHOOK_ENCRYPTION_KEY: _key, DEBUG_TOKEN: _token, ...rest } = SECRET_VALUES;
  const good = {
    ...rest,
    KV_URL: `redis://user:${SECRET}@host:6379/1`,
    CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `a:${SECRET}`,
    WEBHOOK_PROXY: `http://u:${SECRET}@host`,
    WEIR_URL: `http://u:${SECRET}@host`,
  };
  const { warnings, notes } = readSettings(good);
  assertEquals([warnings, notes.length], [[], 1]);
  assertEquals(notes.filter((line) => line.includes(SECRET)), []);
});

for (const name of ["KV_PIPELINE_LIMIT", "KV_PERSECOND_PIPELINE_LIMIT"]) {
  Deno.test(`${name} is accepted and said to be without effect`, () => {
    assertEquals(readSettings({ ...MEMORY, [name]: "8" }).warnings, [
      `${name} has no effect: batches have no fixed length; the pipeline window alone decides when they are sent`,
    ]);
  });
}

const BACKENDS: readonly (readonly [text: string, backend: string, warnings: readonly string[]])[] = [
  ["kv", "kv", []],
  ["memory", "memory", []],
  ["redis", "kv", []],
  ["Redis", "kv", ['BACKEND_TYPE "Redis" is none of kv, mc and memory; kv is used']],
  ["constructor", "kv", ['BACKEND_TYPE "constructor" is none of kv, mc and memory; kv is used']],
  ["Memory", "kv", ['BACKEND_TYPE "Memory" is none of kv, mc and memory; kv is used']],
  [
    "memcached",
    "kv",
    ['BACKEND_TYPE "memcached" is none of kv, mc and memory; kv is used; mc is the memcached-style cache'],
  ],
];

for (const [text, backend, warnings] of BACKENDS) {
  Deno.test(`BACKEND_TYPE=${text} means ${backend}`, () => {
    const reading = readSettings({ BACKEND_TYPE: text, KV_URL: "localhost:6379" });
    const found: readonly [string, readonly string[]] = [reading.settings.BACKEND_TYPE, reading.warnings];
    assertEquals(found, [backend, warnings]);
  });
}

for (
  const [env, warnings] of [
    [{ BACKEND_TYPE: "mc", MC_HOST_PORT: "h:1" }, [
      "MC_KEY_DIGEST is false: a blank, a control character or a long value in one descriptor fails the whole " +
      "call as INVALID_ARGUMENT; MC_KEY_DIGEST=true stores such keys under a digest",
    ]],
    [{ BACKEND_TYPE: "mc", MC_HOST_PORT: "h:1", MC_KEY_DIGEST: "true" }, []],
    [{ KV_URL: "h:1", KV_TIMEOUT: "1s" }, []],
    [{ KV_URL: "h:1", KV_TIMEOUT: "1s", KV_POOL_ON_EMPTY_WAIT_DURATION: "1s" }, [
      "KV_POOL_ON_EMPTY_WAIT_DURATION is 1000 ms, but KV_TIMEOUT is 1000 ms: calls wait for half of their " +
      "remaining time, then CREATE applies; set it below KV_TIMEOUT",
    ]],
    [
      {
        ...{ KV_URL: "h:1", KV_TIMEOUT: "1s", KV_POOL_ON_EMPTY_WAIT_DURATION: "1s" },
        KV_POOL_ON_EMPTY_BEHAVIOR: "WAIT",
      },
      [],
    ],
    [{ KV_URL: "h:1", KV_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION: "1s", KV_PERSECOND_TIMEOUT: "1s" }, []],
    [
      {
        ...{ KV_URL: "h:1", KV_PERSECOND: "true", KV_PERSECOND_URL: "h:2", KV_PERSECOND_TIMEOUT: "200ms" },
        KV_PERSECOND_POOL_ON_EMPTY_BEHAVIOR: "ERROR",
        KV_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION: "300ms",
      },
      [
        "KV_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION is 300 ms, but KV_PERSECOND_TIMEOUT is 200 ms: calls wait for " +
        "half of their remaining time, then ERROR applies; set it below KV_PERSECOND_TIMEOUT",
      ],
    ],
  ] as const
) {
  Deno.test(`warnings of the cache with ${JSON.stringify(env)}`, () => {
    assertEquals(readSettings(env).warnings, [...warnings]);
  });
}

const UPSTREAM: readonly (readonly [theirs: string, ours: string | undefined])[] = [
  ["REDIS_URL", "KV_URL"],
  ["REDIS_SOCKET_TYPE", "KV_SOCKET_TYPE"],
  ["REDIS_PERSECOND", "KV_PERSECOND"],
  ["REDIS_PERSECOND_POOL_SIZE", "KV_PERSECOND_POOL_SIZE"],
  ["REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", "KV_HEALTH_CHECK_ACTIVE_CONNECTION"],
  ["MEMCACHE_HOST_PORT", "MC_HOST_PORT"],
  ["MEMCACHE_TLS", "MC_TLS"],
  ["USE_STATSD", "USE_PUSH_STATS"],
  ["STATSD_HOST", "PUSH_STATS_HOST"],
  ["STATSD_PORT", "PUSH_STATS_PORT"],
  ["STATSD_PROTOCOL", "PUSH_STATS_PROTOCOL"],
  ["USE_DOG_STATSD", "USE_TAGGED_PUSH_STATS"],
  ["USE_DOG_STATSD_MOGRIFIERS", "USE_TAGGED_PUSH_STATS_MOGRIFIERS"],
  ["DOG_STATSD_MOGRIFIERS", "TAGGED_PUSH_STATS_MOGRIFIERS"],
  ["DOG_STATSD_MOGRIFIER_RULE_PATTERN", "TAGGED_PUSH_STATS_MOGRIFIER_RULE_PATTERN"],
  ["USE_PROMETHEUS", "USE_PULL_METRICS"],
  ["PROMETHEUS_ADDR", "PULL_METRICS_ADDR"],
  ["PROMETHEUS_PATH", "PULL_METRICS_PATH"],
  ["PROMETHEUS_MAPPER_YAML", "PULL_METRICS_MAPPER_YAML"],
  ["REDIS_PORT", undefined],
  ["REDIS_SERVICE_HOST", undefined],
  ["PROMETHEUS_SERVICE_HOST", undefined],
  ["PROMETHEUS_NATIVE", undefined],
  ["MEMCACHE_TIMEOUT", undefined],
  ["MEMCACHE_KEY_DIGEST", undefined],
  ["PATH", undefined],
];

for (const [theirs, ours] of UPSTREAM) {
  Deno.test(`${theirs} ${ours === undefined ? "goes unnoticed" : `is read as ${ours}`}`, () => {
    const linesOf = (env: Environment): readonly string[] => {
      try {
        const { notes, warnings } = readSettings({ ...MEMORY, ...env });
        return [...notes, ...warnings];
      } catch (error) {
        if (error instanceof SettingsError) return [...error.notes, ...error.warnings];
        throw error;
      }
    };
    assertEquals(linesOf({ [theirs]: "1" }), ours === undefined ? [] : [`${ours} is set from ${theirs}`]);
    if (ours === undefined) return;
    assertEquals(linesOf({ [theirs]: "1", [ours]: "1" }), [`${theirs} is ignored: ${ours} is set`]);
  });
}

for (
  const [written, meant] of [
    ["KV_URI", "KV_URL"],
    ["KV_TIMOUT", "KV_TIMEOUT"],
    ["KV_TMIEOUT", "KV_TIMEOUT"],
    ["CACHE_ON_FAILURES", "CACHE_ON_FAILURE"],
    ["LOGLEVEL", "LOG_LEVEL"],
    ["NEAR_LIMT_RATIO", "NEAR_LIMIT_RATIO"],
    ["HOME", undefined],
    ["SORT", undefined],
    ["KV_PORT", undefined],
    ["TAGGED_PUSH_STATS_MOGRIFIER_RULE_NAME", undefined],
    ["KV_RETRIES_OF_ANOTHER_PROGRAM", undefined],
  ] as const
) {
  Deno.test(`${written} ${meant === undefined ? "goes unnoticed" : `is reported as a misspelled ${meant}`}`, () => {
    const warnings = readSettings({ ...MEMORY, [written]: "a" }).warnings;
    const expected = meant === undefined ? [] : [`${written} is not a setting; did you mean ${meant}?`];
    assertEquals(warnings, expected);
    assertEquals(readSettings({ ...MEMORY, [written]: "" }).warnings, []);
  });
}

Deno.test("the error carries its name and is an Error", () => {
  const error = new SettingsError(["a", "b"]);
  assert(error instanceof Error);
  assertEquals(
    [error.name, error.message, error.problems, error.warnings],
    ["SettingsError", "a\nb", ["a", "b"], []],
  );
});

Deno.test("a refusal brings the warnings along, without the values of secrets", () => {
  const env = { REDIS_AUTH: SECRET, REDIS_URL: SECRET, KV_PIPELINE_LIMIT: "8", BACKEND_TYPE: "rediss" };
  const error = assertThrows(() => readSettings(env));
  assert(error instanceof SettingsError);
  assertEquals([...error.notes, ...error.warnings].map((line) => line.split(" ", 4).join(" ")), [
    "KV_AUTH is set from",
    "KV_URL is set from",
    "KV_PIPELINE_LIMIT has no effect:",
    'BACKEND_TYPE "rediss" is none',
  ]);
  assertEquals([...error.notes, ...error.warnings].filter((line) => line.includes(SECRET)), []);
});
