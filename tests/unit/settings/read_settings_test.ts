import { assert, assertEquals, assertThrows } from "#assert";
import { type Environment, readSettings, SettingsError } from "../../../src/settings/read_settings.ts";
import { settingEntries } from "../../../src/settings/table.ts";
import { problemsOf } from "./settings_problems.ts";

const MEMORY: Environment = { BACKEND_TYPE: "memory" };

Deno.test("every setting is read under its name, and its default holds where nothing is set", () => {
  const { settings, warnings } = readSettings(MEMORY);
  const level: "trace" | "debug" | "info" | "warning" | "error" | "fatal" | "panic" = settings.LOG_LEVEL;
  const defaults = settingEntries().map(([name, { default: text, parse }]) => {
    const parsed = text === undefined ? { value: name.includes("<") ? new Map() : undefined } : parse(text);
    return [name, "value" in parsed ? parsed.value : parsed];
  });
  assertEquals([settings, warnings], [{ ...Object.fromEntries(defaults), BACKEND_TYPE: "memory" }, []]);
  assertEquals(level, "warning");
});

Deno.test("a variable that is set but empty counts as unset", () => {
  const empty = Object.fromEntries(
    settingEntries().map(([name]) => [name.replace("<", "").replace(">", ""), ""]),
  );
  const upstream = { REDIS_URL: "", USE_STATSD: "" };
  assertEquals(readSettings({ ...empty, ...upstream, ...MEMORY }), readSettings(MEMORY));
});

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

Deno.test("all bad settings are reported in one run, those between settings last", () => {
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

Deno.test("settings without effect are accepted with a warning", () => {
  const names = ["KV_PIPELINE_LIMIT", "KV_PERSECOND_PIPELINE_LIMIT"];
  assertEquals(
    readSettings({ ...MEMORY, ...Object.fromEntries(names.map((name) => [name, "8"])) }).warnings,
    names.map((name) =>
      `${name} has no effect: batches have no fixed length; the pipeline window alone decides when they are sent`
    ),
  );
});

const UNKNOWN = "is none of kv, mc and memory; kv is used";
const BACKENDS: readonly (readonly [text: string, backend: string, warning?: string])[] = [
  ["kv", "kv"],
  ["memory", "memory"],
  ["redis", "kv"],
  ["Redis", "kv", UNKNOWN],
  ["constructor", "kv", UNKNOWN],
  ["Memory", "kv", UNKNOWN],
  ["memcached", "kv", `${UNKNOWN}; mc is the memcached-style cache`],
];

for (const [text, backend, warning] of BACKENDS) {
  Deno.test(`BACKEND_TYPE=${text} means ${backend}`, () => {
    const { settings, warnings } = readSettings({ BACKEND_TYPE: text, KV_URL: "localhost:6379" });
    const told = warning === undefined ? [] : [`BACKEND_TYPE "${text}" ${warning}`];
    assertEquals<unknown>([settings.BACKEND_TYPE, warnings], [backend, told]);
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
        KV_URL: "h:1",
        KV_TIMEOUT: "1s",
        KV_POOL_ON_EMPTY_WAIT_DURATION: "1s",
        KV_POOL_ON_EMPTY_BEHAVIOR: "WAIT",
      },
      [],
    ],
    [{ KV_URL: "h:1", KV_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION: "1s", KV_PERSECOND_TIMEOUT: "1s" }, []],
    [
      {
        KV_URL: "h:1",
        KV_PERSECOND: "true",
        KV_PERSECOND_URL: "h:2",
        KV_PERSECOND_TIMEOUT: "200ms",
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

/** The lines that tell of variables whose values may be bad. */
function linesOf(env: Environment): readonly string[] {
  try {
    const { notes, warnings } = readSettings({ ...MEMORY, ...env });
    return [...notes, ...warnings];
  } catch (error) {
    if (error instanceof SettingsError) return [...error.notes, ...error.warnings];
    throw error;
  }
}

Deno.test("a variable of envoyproxy/ratelimit is read as ours, unless that is set", () => {
  for (const [name, { aliases = [] }] of settingEntries()) {
    const [ours, ...theirs] = [name, ...aliases].map((one) => one.replace(/<[A-Z]+>/, "SAMPLE"));
    for (const one of theirs) {
      const told = linesOf({ [one]: "1" }).filter((line) => line.includes(one));
      assertEquals(told, [`${ours} is set from ${one}`]);
      const both = linesOf({ [one]: "1", [String(ours)]: "1" }).filter((line) => line.includes(one));
      assertEquals(both, [`${one} is ignored: ${ours} is set`]);
    }
  }
});

Deno.test("what only resembles a variable of envoyproxy/ratelimit goes unnoticed", () => {
  const names = ["REDIS_PORT", "REDIS_SERVICE_HOST", "PROMETHEUS_SERVICE_HOST", "PROMETHEUS_NATIVE", "PATH"];
  const all = [...names, "MEMCACHE_TIMEOUT", "MEMCACHE_KEY_DIGEST"];
  assertEquals(linesOf(Object.fromEntries(all.map((name) => [name, "1"]))), []);
});

Deno.test("misspelled names are warned about, unless they are empty", () => {
  const meant = {
    KV_URI: "KV_URL",
    KV_TIMOUT: "KV_TIMEOUT",
    KV_TMIEOUT: "KV_TIMEOUT",
    CACHE_ON_FAILURES: "CACHE_ON_FAILURE",
    LOGLEVEL: "LOG_LEVEL",
    NEAR_LIMT_RATIO: "NEAR_LIMIT_RATIO",
  };
  const others = [
    "HOME",
    "SORT",
    "KV_PORT",
    "TAGGED_PUSH_STATS_MOGRIFIER_RULE_NAME",
    "KV_RETRIES_OF_ANOTHER_PROGRAM",
  ];
  const set = (value: string) =>
    Object.fromEntries([...Object.keys(meant), ...others].map((name) => [name, value]));
  const told = Object.entries(meant).map(([name, one]) => `${name} is not a setting; did you mean ${one}?`);
  assertEquals(readSettings({ ...MEMORY, ...set("a") }).warnings.toSorted(), told.sort());
  assertEquals(readSettings({ ...MEMORY, ...set("") }).warnings, []);
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
