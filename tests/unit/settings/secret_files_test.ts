import { assertEquals } from "#assert";
import { join } from "node:path";
import { settingGroups } from "../../../src/settings/docs.ts";
import { type Environment, readSettings } from "../../../src/settings/read_settings.ts";
import { fileVariable, isGiven, secretValue } from "../../../src/settings/secret_files.ts";
import { settingEntries } from "../../../src/settings/table.ts";
import { problemsOf } from "./settings_problems.ts";

const MEMORY: Environment = { BACKEND_TYPE: "memory" };
const SECRET = "hunter2";
/** Settings whose `NAME_FILE` is another setting. */
const NAMED_OTHERWISE = ["ADMIN_TOKENS", "WEBHOOK_ENCRYPTION_KEY"];

Deno.test("every secret setting can be read from a file, except those whose NAME_FILE is another setting", () => {
  const secrets = settingEntries().flatMap(([name, { secret }]) => secret ? [name] : []);
  assertEquals(secrets.filter((name) => fileVariable(name) === undefined), NAMED_OTHERWISE.toReversed());
  const plain = settingEntries().flatMap(([name, { secret }]) => secret ? [] : [name]);
  assertEquals(plain.filter((name) => fileVariable(name) !== undefined), []);
});

Deno.test("values of files replace those of variables, without the line break at their end", async () => {
  await using folder = await filesOf({
    token: `${SECRET}\n`,
    url: "\ufeffredis://u:p@cache:6379\r\n",
    headers: "authorization=x",
    spaces: " p w \n",
  });
  const { settings, warnings, sources } = readSettings({
    DEBUG_TOKEN_FILE: folder.path("token"),
    KV_URL_FILE: folder.path("url"),
    KV_AUTH_FILE: folder.path("spaces"),
    OTEL_EXPORTER_OTLP_HEADERS_FILE: folder.path("headers"),
    ADMIN_TOKEN_FILE: "",
  });
  const { DEBUG_TOKEN, KV_URL, KV_AUTH, ADMIN_TOKEN } = settings;
  assertEquals([DEBUG_TOKEN, KV_URL, KV_AUTH, ADMIN_TOKEN, warnings], [
    SECRET,
    "redis://u:p@cache:6379",
    " p w ",
    undefined,
    ["KV_AUTH_FILE begins or ends with a blank, which is a part of the value"],
  ]);
  assertEquals(settings["OTEL_EXPORTER_OTLP_<OPTION>"], new Map([["HEADERS", "authorization=x"]]));
  assertEquals(Object.fromEntries(sources), {
    DEBUG_TOKEN: "DEBUG_TOKEN_FILE",
    KV_AUTH: "KV_AUTH_FILE",
    KV_URL: "KV_URL_FILE",
    OTEL_EXPORTER_OTLP_HEADERS: "OTEL_EXPORTER_OTLP_HEADERS_FILE",
  });
});

Deno.test("names that were settings before keep their meaning", () => {
  const env = { ADMIN_TOKENS_FILE: "/none/tokens", WEBHOOK_ENCRYPTION_KEY_FILE: "/none/key" };
  const { settings, sources } = readSettings({ ...MEMORY, ...env });
  assertEquals([settings.ADMIN_TOKENS_FILE, settings.WEBHOOK_ENCRYPTION_KEY_FILE, sources.size], [
    "/none/tokens",
    "/none/key",
    0,
  ]);
});

const OF_FILE = (DEBUG_TOKEN_FILE: string): Environment => ({ DEBUG_TOKEN_FILE });
const NO_FILE = "No such file or directory (os error 2): stat";

/** Name of the case, the environment for the path of a file, the problem, and the text of the file. */
const WRONG: readonly (readonly [
  name: string,
  env: (path: string) => Environment,
  problem: string,
  text?: string,
])[] = [
  [
    "both are set",
    (path) => ({ DEBUG_TOKEN_FILE: path, DEBUG_TOKEN: SECRET }),
    'DEBUG_TOKEN_FILE "PATH": DEBUG_TOKEN is also set; expected only one of them',
  ],
  ["the file is missing", () => OF_FILE("/none/a"), `DEBUG_TOKEN_FILE "/none/a": ${NO_FILE} '/none/a'`],
  ["the file is a folder", () => OF_FILE("/tmp"), 'DEBUG_TOKEN_FILE "/tmp": it is not a file'],
  ["the file is empty", OF_FILE, 'DEBUG_TOKEN_FILE "PATH": the file is empty', "\n"],
  [
    "the file has several lines",
    OF_FILE,
    'DEBUG_TOKEN_FILE "PATH": the file has several lines; expected one',
    `${SECRET}\n${SECRET}\n`,
  ],
  [
    "the file is large",
    OF_FILE,
    'DEBUG_TOKEN_FILE "PATH": it has 70000 bytes; expected at most 65536',
    SECRET.repeat(10_000),
  ],
  [
    "the value is invalid",
    OF_FILE,
    "DEBUG_TOKEN (set from DEBUG_TOKEN_FILE): expected visible ASCII characters without a space",
    "hunter 2",
  ],
  [
    "a rule between settings does not report a bad file again",
    () => ({ BACKEND_TYPE: "kv", KV_URL_FILE: "/none/url" }),
    `KV_URL_FILE "/none/url": ${NO_FILE} '/none/url'`,
  ],
];

for (const [name, env, problem, text = SECRET] of WRONG) {
  Deno.test(`a secret file is rejected without its value: ${name}`, async () => {
    await using folder = await filesOf({ token: text });
    const path = folder.path("token");
    assertEquals(problemsOf({ ...MEMORY, ...env(path) }), [`Invalid ${problem.replace("PATH", path)}`]);
  });
}

Deno.test("typos of the names are warned about, and files of settings that are no secret", () => {
  const env = {
    KV_AUTH_FIL: "x",
    REDIS_AUTH_FILE: "x",
    DEBUG_TOKN_FILE: "x",
    KV_TIMEOUT_FILE: "x",
    PORT_FILE: "x",
  };
  assertEquals(readSettings({ ...MEMORY, ...env }).warnings, [
    "DEBUG_TOKN_FILE is not a setting; did you mean DEBUG_TOKEN_FILE?",
    "KV_AUTH_FIL is not a setting; did you mean KV_AUTH_FILE?",
    "KV_TIMEOUT_FILE is not a setting; only secrets can be read from a file",
    "REDIS_AUTH_FILE is not read: set KV_AUTH_FILE instead",
  ]);
});

Deno.test("commands read one secret from its variable or its file", async () => {
  await using folder = await filesOf({ token: SECRET });
  const path = folder.path("token");
  const cases: readonly [Environment, string | undefined, boolean][] = [
    [{}, undefined, false],
    [{ ADMIN_TOKEN: "", ADMIN_TOKEN_FILE: "" }, undefined, false],
    [{ ADMIN_TOKEN: "a" }, "a", true],
    [{ ADMIN_TOKEN_FILE: path, KV_AUTH_FILE: "/none" }, SECRET, true],
  ];
  for (const [env, value, given] of cases) {
    assertEquals([secretValue(env, "ADMIN_TOKEN"), isGiven(env, "ADMIN_TOKEN")], [value, given]);
  }
});

Deno.test("the documentation of a secret names the variable of its file", () => {
  const docs = settingGroups().flatMap(({ entries }) => entries);
  const [[, { doc }] = ["", { doc: "" }]] = docs.filter(([name]) => name === "KV_AUTH");
  assertEquals(doc.endsWith(" `KV_AUTH_FILE` names a file with the value instead."), true);
  const named = docs.filter(([, setting]) => setting.doc.includes("names a file with the value instead"));
  assertEquals(named.length, settingEntries().filter(([name]) => fileVariable(name) !== undefined).length);
});

async function filesOf(
  texts: Readonly<Record<string, string>>,
): Promise<{ path(name: string): string } & AsyncDisposable> {
  const folder = await Deno.makeTempDir({ prefix: "weir_secrets_" });
  for (const [name, text] of Object.entries(texts)) await Deno.writeTextFile(join(folder, name), text);
  return {
    path: (name) => join(folder, name),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}
