import { assertEquals, assertMatch } from "@std/assert";
import type { Setting } from "../../src/settings/setting.ts";
import { familyPattern, settingEntries, type SettingName } from "../../src/settings/table.ts";
import { needs } from "../support/tools.ts";
import { startWeir } from "../support/weir_process.ts";
import { CACHE_CASES } from "./settings_cache_cases.ts";
import { CACHE_TLS_CASES } from "./settings_cache_tls_cases.ts";
import type { Env, SettingCases } from "./settings_case.ts";
import { DECISION_CASES } from "./settings_decision_cases.ts";
import { KV_CASES } from "./settings_kv_cases.ts";
import { KV_PER_SECOND_CASES } from "./settings_kv_per_second_cases.ts";
import { KV_POOL_CASES } from "./settings_kv_pool_cases.ts";
import { KV_STARTUP_CASES } from "./settings_kv_startup_cases.ts";
import { MC_CASES } from "./settings_mc_cases.ts";
import { MC_SRV_CASES } from "./settings_mc_srv_cases.ts";
import { PULL_CASES } from "./settings_pull_cases.ts";
import { PUSH_CASES } from "./settings_push_cases.ts";
import { RULES_CASES } from "./settings_rules_cases.ts";
import { SERVER_CASES } from "./settings_server_cases.ts";
import { TRACING_CASES } from "./settings_tracing_cases.ts";

const CASES: SettingCases = {
  ...SERVER_CASES,
  ...RULES_CASES,
  ...DECISION_CASES,
  ...CACHE_CASES,
  ...CACHE_TLS_CASES,
  ...KV_CASES,
  ...KV_POOL_CASES,
  ...KV_STARTUP_CASES,
  ...KV_PER_SECOND_CASES,
  ...MC_CASES,
  ...MC_SRV_CASES,
  ...PUSH_CASES,
  ...PULL_CASES,
  ...TRACING_CASES,
};

/** Texts to set; each setting takes the first that its parser accepts. */
const GOOD_TEXTS = [
  "true",
  "7",
  "0.7",
  "/tmp/weir.pem",
  "7s",
  "tcp",
  "cluster",
  "grpc",
  "WAIT",
  "local",
  "127.0.0.1:7",
  "_mc._tcp.example.com",
  btoa("x".repeat(32)),
  "a:b",
  "a=b",
  "10.0.0.0/8",
  "http://127.0.0.1:7/",
];
/** Texts that hardly anything takes. */
const BAD_TEXTS = ["no such thing?", "["];

for (const [name, { sees, tools = [], run }] of Object.entries(CASES)) {
  Deno.test({ ...needs(tools, `setting ${name}: ${sees}`), fn: run });
}

// Where only some values are not there yet, the one that is there shows in every other test: it starts.
for (const [name, setting] of settingEntries()) {
  for (const value of setting.missing ?? []) {
    Deno.test(`setting ${name}: ${value} keeps the service from starting until it is built`, async () => {
      const { code, lines } = await refusal({
        BACKEND_TYPE: "kv",
        KV_URL: "127.0.0.1:7",
        [name]: `${value}`,
      });
      const refused = `Cannot use ${name} "${value}": not built yet, it comes with a later release; ` +
        `${name}=${setting.default} would be right`;
      assertEquals({ code, lines }, { code: 1, lines: [refused] });
    });
  }
}

Deno.test("settings: every one that warns until it is built does so at start", async () => {
  const marked = settingEntries().filter(([name, { meanwhile }]) =>
    meanwhile === "warn" && !isConflict(name)
  );
  const env = Object.fromEntries(
    marked.map(([name, setting]) => [variableOf(name), goodText(name, setting)]),
  );
  await using weir = await startWeir({ env });
  const told = weir.stderrLines.filter((line) => line.includes("has no effect yet"));
  const expected = marked.map(([name]) =>
    `${variableOf(name)} has no effect yet: what it sets comes with a later release`
  );
  assertEquals(told.map((line) => /msg="([^"]*)"/.exec(line)?.[1]).sort(), expected.sort());
});

Deno.test("settings: every one that refuses until it is built keeps the service from starting", async () => {
  const marked = settingEntries().filter(([, { meanwhile }]) => meanwhile === "refuse");
  const entries = marked.map(([name, setting]) => {
    return [name, String(setting.missing?.[0] ?? goodText(name, setting))] as const;
  });
  const { code, lines } = await refusal({ KV_URL: "127.0.0.1:7", ...Object.fromEntries(entries) });
  const told = lines.map((line) =>
    /^Cannot use (\w+) .*: not built yet, it comes with a later release; .* would be right$/.exec(line)
  );
  assertEquals({ code, names: told.flatMap((found) => found?.[1] ?? []) }, {
    code: 1,
    names: marked.map(([name]) => name),
  });
});

// One of two that exclude each other, and one that wants another: refused for that.
Deno.test("settings: those that need others are told as well", async () => {
  const { code, lines } = await refusal({
    GRPC_CLIENT_TLS_CACERT: "/tmp/ca.pem",
    MC_HOST_PORT: "127.0.0.1:7",
    MC_SRV: "_mc._tcp.example.com",
  });
  assertEquals(code, 1);
  assertEquals(lines.length, 2);
  assertMatch(lines.join("\n"), /^Cannot use GRPC_CLIENT_TLS_CACERT .*\nCannot use MC_SRV .*$/);
});

Deno.test("settings: all bad ones are told at once, a line each, and nothing listens", async () => {
  const bad = settingEntries().flatMap(([name, setting]) => {
    const text = BAD_TEXTS.find((one) => "wanted" in setting.parse(one));
    return text === undefined ? [] : [[variableOf(name), text] as const];
  });
  const { code, lines } = await refusal(Object.fromEntries(bad));
  const names = lines.map((line) => /^Cannot use (\w+) .+ would be right$/.exec(line)?.[1]);
  assertEquals({ code, names }, { code: 1, names: bad.map(([name]) => name) });
  // Far more than half of the table takes not just any text.
  assertEquals(bad.length > 80, true);
});

Deno.test("settings: every one without a mark has a test here, and none has that is marked whole", () => {
  const isTested = (name: SettingName, { missing }: Setting) =>
    Object.hasOwn(CASES, name) || missing !== undefined;
  const untested = settingEntries()
    .filter(([name, setting]) => !isMarkedWhole(setting) && !isTested(name, setting))
    .map(([name]) => name);
  const tooSoon = settingEntries()
    .filter(([name, setting]) => isMarkedWhole(setting) && isTested(name, setting))
    .map(([name]) => name);
  assertEquals({ untested, tooSoon }, { untested: [], tooSoon: [] });
});

function isMarkedWhole({ comesWith, missing }: Setting): boolean {
  return comesWith !== undefined && missing === undefined;
}

function isConflict(name: SettingName): boolean {
  return name === "GRPC_CLIENT_TLS_CACERT";
}

/** A variable to set: of a family one of its members. */
function variableOf(name: SettingName): string {
  return familyPattern(name) === undefined ? name : name.replace(/<[A-Z]+>/, "SAMPLE");
}

function goodText(name: SettingName, setting: Setting): string {
  const text = GOOD_TEXTS.find((one) => "value" in setting.parse(one));
  if (text === undefined) throw new Error(`Cannot set ${name}: none of the sample texts is good for it`);
  return text;
}

/** Starts the process with settings that it cannot start with; answers how it ended and what it said. */
async function refusal(env: Env): Promise<{ code: number; lines: readonly string[] }> {
  await using weir = await startWeir({ env, waitFor: [] });
  const { code } = await weir.exited;
  return { code, lines: weir.stderrLines };
}
