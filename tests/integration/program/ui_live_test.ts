import { assert, assertEquals } from "#assert";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { BUCKET_BOUNDS_MS } from "../../../src/stats/timer.ts";
import { EventReader } from "../../harness/event_reader.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const RULES = {
  "shop.yaml": `domain: shop
descriptors:
- key: account
  rate_limit: { unit: minute, requests_per_unit: 5 }
- key: plan
  detailed_metric: true
  shadow_mode: true
  rate_limit: { unit: minute, unit_multiplier: 2, requests_per_unit: 1 }
`,
};
const MODES = { domain: "shop", quotaMode: false };
const ACCOUNT = {
  ...MODES,
  name: "shop.account",
  entries: [{ key: "account", value: "" }],
  limit: "5 per MINUTE",
  shadowMode: false,
};
const PLAN = {
  ...MODES,
  name: "shop.plan",
  entries: [{ key: "plan", value: "" }],
  limit: "1 per 2 MINUTES",
  shadowMode: true,
};
const NONE = { hits: 0, overLimit: 0, nearLimit: 0, withinLimit: 0 };

async function listen(fixture: ServeFixture, token?: string): Promise<EventReader> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return new EventReader(await fetch(`http://${fixture.running.addresses.debug}/ui/live`, { headers }));
}

async function ask(fixture: ServeFixture, times: number, key: string, value: string): Promise<void> {
  for (let time = 0; time < times; time++) {
    await fixture.ask({ domain: "shop", descriptors: [{ entries: [{ key, value }] }] });
  }
}

function part(snapshot: unknown, ...names: string[]): unknown[] {
  const all: Record<string, unknown> = Object(snapshot);
  return names.map((name) => all[name]);
}

Deno.test("the live stream shows decisions, rules and keys of a served process", async () => {
  let now = 1_700_000_000_000;
  // What waits does so in real time, as a service with a clock that stands still does not stop either; but the period of
  // the stream never passes, which would take a snapshot between the calls.
  const after = (ms: number, run: () => void) => ms === 1_000 ? () => {} : systemClock.after(ms, run);
  const clock = { now: () => now, elapsed: () => now, after };
  await using fixture = await ServeFixture.start({ rules: RULES, clock });
  const reader = await listen(fixture);
  const file = join(fixture.rulesFolder, "shop.yaml");
  const { metrics, timers, ...first } = Object(await reader.data());
  assertEquals([metrics["ratelimit.memory.keys"], metrics["ratelimit.service.config_load_success"]], [0, 1]);
  assertEquals(Object.keys(metrics).filter((name) => name.includes("shop.account")), []);
  assertEquals(timers["ratelimit_server.ShouldRateLimit.response_time"], new Array(18).fill(0));
  assertEquals(first, {
    at: 1_700_000_000_000,
    version: "0.3.0",
    startedAt: 1_700_000_000_000,
    health: { state: "ok", failing: [], degraded: [] },
    decisions: { total: 0, overLimit: 0, perSecond: null, overLimitShare: null },
    history: { decisions: [0], overLimit: [0], delivered: [0], failedAttempts: [0] },
    rules: [{ ...ACCOUNT, at: `${file}:3`, ...NONE }, { ...PLAN, at: `${file}:5`, ...NONE }],
    rulesTotal: 2,
    topOverLimited: [],
    configuration: {
      loadedAt: 1_700_000_000_000,
      version: "",
      loaded: 1,
      failed: 0,
      error: null,
      loads: [{
        at: 1_700_000_000_000,
        ok: true,
        changed: [file],
        limits: 2,
        version: "",
        problems: [],
        problemCount: 0,
      }],
    },
    cache: "memory",
    boundsMs: BUCKET_BOUNDS_MS,
    administration: false,
    webhooks: false,
    debugToken: false,
  });
  await ask(fixture, 7, "account", "bob");
  await ask(fixture, 3, "plan", "gold");
  await reader.cancel();
  now += 1_000;
  const later = await listen(fixture);
  assertEquals(part(await later.data(), "decisions", "history", "rules", "topOverLimited"), [
    { total: 10, overLimit: 2, perSecond: 10, overLimitShare: 0.2 },
    { decisions: [10], overLimit: [2], delivered: [0], failedAttempts: [0] },
    [
      { ...ACCOUNT, at: `${file}:3`, hits: 7, overLimit: 2, nearLimit: 1, withinLimit: 5 },
      { ...PLAN, at: `${file}:5`, hits: 3, overLimit: 2, nearLimit: 1, withinLimit: 1 },
    ],
    [
      { key: "shop_account_bob", count: 2, errorAtMost: 0 },
      { key: "shop_plan_gold", count: 2, errorAtMost: 0 },
    ],
  ]);
  await later.cancel();
});

Deno.test("the live stream shows why the last load failed, until a load is good again", async () => {
  await using fixture = await ServeFixture.start({ rules: RULES });
  const file = join(fixture.rulesFolder, "shop.yaml");
  const shown = async () => {
    const reader = await listen(fixture);
    const [configuration] = part(await reader.data(), "configuration");
    await reader.cancel();
    const [loaded, failed, error] = part(configuration, "loaded", "failed", "error");
    return { loaded: Number(loaded), failed: Number(failed), error };
  };
  assertEquals(await shown(), { loaded: 1, failed: 0, error: null });
  await Deno.writeTextFile(file, "domain: shop\ndescriptors:\n- key: a\n  rate_limit: { unit: eon }\n");
  fixture.reload();
  const { error } = await until("the failure is shown", async () => {
    const now = await shown();
    return now.failed > 0 && now;
  }, { intervalMs: 100 });
  assert(typeof error === "string" && error.includes("shop.yaml") && error.includes("eon"), `${error}`);
  await Deno.writeTextFile(file, RULES["shop.yaml"]);
  fixture.reload();
  const mended = await until("the good load is shown", async () => {
    const now = await shown();
    return now.loaded > 1 && now;
  }, { intervalMs: 100 });
  assertEquals(mended.error, null);
});

Deno.test("the live stream says which tokens are set, and either of them lets in", async () => {
  const env = { DEBUG_TOKEN: "the-debug-token-of-this-test", ADMIN_TOKEN: "the-admin-token-of-this-test" };
  await using fixture = await ServeFixture.start({ rules: RULES, env });
  for (const token of Object.values(env)) {
    const reader = await listen(fixture, token);
    assertEquals(part(await reader.data(), "administration", "webhooks", "debugToken"), [true, false, true]);
    await reader.cancel();
  }
  const refused = await fetch(`http://${fixture.running.addresses.debug}/ui/live`);
  await refused.body?.cancel();
  const page = await fetch(`http://${fixture.running.addresses.debug}/ui`);
  const text = await page.text();
  assertEquals([refused.status, page.status, text.startsWith("<!doctype html>")], [401, 200, true]);
});

Deno.test("a service stops while pages watch it, and their streams end", async () => {
  await using fixture = await ServeFixture.start({ rules: RULES });
  const readers = [await listen(fixture), await listen(fixture)];
  for (const reader of readers) await reader.data();
  await fixture.stop();
  assertEquals(await Promise.all(readers.map((reader) => reader.ended())), [true, true]);
});

Deno.test("seventeen streams are one too many", async () => {
  await using fixture = await ServeFixture.start({ rules: RULES });
  const readers: EventReader[] = [];
  for (let count = 0; count < 16; count++) readers.push(await listen(fixture));
  const refused = await fetch(`http://${fixture.running.addresses.debug}/ui/live`);
  await refused.body?.cancel();
  assertEquals(refused.status, 503);
  await Promise.all(readers.map((reader) => reader.cancel()));
});
