import { assertEquals } from "#assert";
import type { CounterCache } from "../../../src/ratelimit/decision/counter_cache.ts";
import { CacheError } from "../../../src/ratelimit/errors.ts";
import { checkingScripts } from "../../../src/serve/script_check.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { rulesOf } from "../../harness/service_fixture.ts";
import { settledTurns } from "../../harness/until.ts";

function rulesWith(...limits: readonly string[]): ReturnType<typeof rulesOf> {
  const rules = limits.map((limit, index) => `- {key: k${index}, rate_limit: {${limit}}}\n`);
  return rulesOf({ "r.yaml": `domain: d\ndescriptors:\n${rules.join("")}` });
}

const FIXED = "unit: minute, requests_per_unit: 3";
const SLIDING = "unit: minute, requests_per_unit: 3, algorithm: sliding_window";
const BUCKET = "unit: second, requests_per_unit: 3, algorithm: token_bucket";

/** A cache that refuses every script, and the keys that it was asked for. */
function refusingCache(): { cache: CounterCache; asked: string[] } {
  const asked: string[] = [];
  const cache: CounterCache = {
    isConditional: true,
    isImmediate: false,
    counterOf: ({ key }) => ({
      take: (_hits, _caller, receiver) => {
        asked.push(key);
        receiver.failed(new CacheError("kv", "NOPERM this user has no permissions to run 'evalsha'"));
      },
    }),
    remove: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  return { cache, asked };
}

Deno.test("scripts are checked for the latest rules only, once the cache is ready", async () => {
  const { settings } = readSettings({ BACKEND_TYPE: "kv", KV_URL: "127.0.0.1:1" });
  const logger = new RecordedLogger();
  const { cache, asked } = refusingCache();
  const { promise: ready, resolve: connect } = Promise.withResolvers<void>();
  const applied: number[] = [];
  const apply = checkingScripts(
    { settings, logger },
    { cache, ready },
    (rules) => void applied.push(rules.limits.length),
  );
  const turn = () => settledTurns();
  void apply(rulesWith(SLIDING), []);
  void apply(rulesWith(FIXED, BUCKET, BUCKET), []);
  await turn();
  assertEquals([applied, asked], [[1, 3], []]);
  connect();
  await turn();
  assertEquals(asked, ["script_check_bucket_second"]);
  // Each kind once.
  void apply(rulesWith(BUCKET, SLIDING), []);
  await turn();
  assertEquals(asked, ["script_check_bucket_second", "script_check_slices_other"]);
  assertEquals(logger.lines.map(({ fields }) => fields["rules"]), ["d.k1, d.k2", "d.k1"]);
});

Deno.test("scripts are checked with keys behind the prefix, which may be all that a user is permitted", async () => {
  const env = { BACKEND_TYPE: "kv", KV_URL: "127.0.0.1:1", CACHE_KEY_PREFIX: "p_" };
  const { settings } = readSettings(env);
  const { cache, asked } = refusingCache();
  const logger = new RecordedLogger();
  const apply = checkingScripts({ settings, logger }, { cache, ready: Promise.resolve() }, () => {});
  const windows = `- {key: several, rate_limits: [{${SLIDING}}, {unit: day, requests_per_unit: 5}]}\n`;
  const one = `- {key: one, rate_limit: {${SLIDING}}}\n`;
  void apply(rulesOf({ "r.yaml": `domain: d\ndescriptors:\n${windows}${one}` }), []);
  await settledTurns();
  assertEquals(asked, ["p_{script_check_joint_other}_0", "p_script_check_slices_other"]);
});
