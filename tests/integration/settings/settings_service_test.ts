import { assertEquals, assertMatch } from "@std/assert";
import { familyPattern, settingEntries, type SettingName } from "../../../src/settings/table.ts";
import { startWeir } from "../../harness/weir_process.ts";
import { CACHE_CASES } from "./settings_cache_cases.ts";
import { CACHE_TLS_CASES } from "./settings_cache_tls_cases.ts";
import { BASELINE, type Env, testCases } from "./settings_case.ts";
import { DECISION_CASES } from "./settings_decision_cases.ts";
import { GRPC_TLS_CASES } from "./settings_grpc_tls_cases.ts";
import { HTTP_TLS_CASES } from "./settings_http_tls_cases.ts";
import { SHARED_REDIS } from "./settings_kv_bed.ts";
import { KV_CASES } from "./settings_kv_cases.ts";
import { KV_PER_SECOND_CASES } from "./settings_kv_per_second_cases.ts";
import { KV_POOL_CASES } from "./settings_kv_pool_cases.ts";
import { KV_STARTUP_CASES } from "./settings_kv_startup_cases.ts";
import { MC_CASES } from "./settings_mc_cases.ts";
import { MC_SRV_CASES } from "./settings_mc_srv_cases.ts";
import { OTLP_METRICS_CASES } from "./settings_otlp_cases.ts";
import { PULL_CASES } from "./settings_pull_cases.ts";
import { PUSH_CASES } from "./settings_push_cases.ts";
import { RULES_CASES } from "./settings_rules_cases.ts";
import { SERVER_CASES } from "./settings_server_cases.ts";
import { TRACING_CASES } from "./settings_tracing_cases.ts";
import { WEBHOOK_CASES } from "./settings_webhook_cases.ts";
import { XDS_CASES } from "./settings_xds_cases.ts";

testCases(
  "the service, its rules, decisions and counters",
  { ...SERVER_CASES, ...RULES_CASES, ...DECISION_CASES, ...CACHE_CASES },
  BASELINE,
  SHARED_REDIS,
);

/** The cases of the other files. */
const OTHER_CASES = {
  ...{ ...CACHE_TLS_CASES, ...GRPC_TLS_CASES, ...HTTP_TLS_CASES, ...XDS_CASES },
  ...{ ...KV_CASES, ...KV_POOL_CASES, ...KV_STARTUP_CASES, ...KV_PER_SECOND_CASES },
  ...{
    ...MC_CASES,
    ...MC_SRV_CASES,
    ...PUSH_CASES,
    ...PULL_CASES,
    ...OTLP_METRICS_CASES,
    ...TRACING_CASES,
    ...WEBHOOK_CASES,
  },
};
const ALL_CASES = { ...SERVER_CASES, ...RULES_CASES, ...DECISION_CASES, ...CACHE_CASES, ...OTHER_CASES };

/** Texts that hardly anything takes. */
const BAD_TEXTS = ["no such thing?", "["];

// One of two that exclude each other, and one that wants another: refused for that.
Deno.test("settings: those that need others are told as well", async () => {
  const { code, lines } = await refusal({
    GRPC_CLIENT_TLS_CACERT: "/tmp/ca.pem",
    MC_HOST_PORT: "127.0.0.1:7",
    MC_SRV: "_mc._tcp.example.com",
  });
  assertEquals(code, 1);
  assertEquals(lines.length, 2);
  assertMatch(lines.join("\n"), /^Invalid GRPC_CLIENT_TLS_CACERT .*\nInvalid MC_SRV .*$/);
});

Deno.test("settings: all bad ones are told at once, a line each, and nothing listens", async () => {
  const bad = settingEntries().flatMap(([name, setting]) => {
    const text = BAD_TEXTS.find((one) => "expected" in setting.parse(one));
    return text === undefined ? [] : [[variableOf(name), text] as const];
  });
  const { code, lines } = await refusal(Object.fromEntries(bad));
  const names = lines.map((line) => /^Invalid (\w+) .+expected .+$/.exec(line)?.[1]);
  assertEquals({ code, names }, { code: 1, names: bad.map(([name]) => name) });
  // Far more than half of the table takes not just any text.
  assertEquals(bad.length > 80, true);
});

Deno.test("settings: every one has a test here", () => {
  const untested = settingEntries().map(([name]) => name).filter((name) => !Object.hasOwn(ALL_CASES, name));
  assertEquals(untested, []);
});

/** A variable to set: of a family one of its members. */
function variableOf(name: SettingName): string {
  return familyPattern(name) === undefined ? name : name.replace(/<[A-Z]+>/, "SAMPLE");
}

/** Starts the process with settings that it cannot start with; answers how it ended and what it said. */
async function refusal(env: Env): Promise<{ code: number; lines: readonly string[] }> {
  await using weir = await startWeir({ env, waitFor: [] });
  const { code } = await weir.exited;
  return { code, lines: weir.stderrLines };
}
