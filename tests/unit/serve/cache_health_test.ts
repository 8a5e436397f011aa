import { assertEquals } from "#assert";
import { Health } from "../../../src/base/health.ts";
import { CacheHealth } from "../../../src/serve/cache_health.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";

function begin(isRequired: boolean, isUsable?: () => boolean) {
  const health = new Health();
  const { settings } = readSettings({
    KV_URL: "127.0.0.1:6379",
    KV_HEALTH_CHECK_ACTIVE_CONNECTION: String(isRequired),
  });
  return { health, cache: new CacheHealth({ settings, health }, isUsable) };
}

const reasons = (health: Health) => health.failing().map(({ name, reason }) => `${name}: ${reason}`);

Deno.test("cache health: a connection that is required fails until it is made", () => {
  const { health, cache } = begin(true);
  assertEquals(reasons(health), ["cache: no connection yet"]);
  cache.expect("KV a", "no connection to a yet");
  cache.expect("KV_PERSECOND b", "no connection to b yet");
  cache.report("KV a", true, "");
  assertEquals(reasons(health), ["cache: no connection to b yet"]);
  cache.report("KV_PERSECOND b", true, "");
  assertEquals(health.state, "ok");
});

Deno.test("cache health: one of several nodes is enough", () => {
  const connected = new Set<string>();
  const { health, cache } = begin(true, () => connected.size > 0);
  cache.note("a", "no connection to a yet");
  cache.note("b", "no connection to b yet");
  assertEquals(health.state, "failing");
  connected.add("a");
  cache.report("a", true, "");
  assertEquals(health.state, "degraded");
});

Deno.test("cache health: a connection that is not required degrades until it is made", () => {
  const { health, cache } = begin(false);
  cache.expect("KV a", "no connection to a yet");
  assertEquals(health.state, "degraded");
  cache.report("KV a", true, "");
  assertEquals(health.state, "ok");
});

Deno.test("cache health: equal causes of two caches are shown once", () => {
  const { health, cache } = begin(true);
  cache.report("KV a", false, "no connection to a: refused");
  cache.report("KV_PERSECOND a", false, "no connection to a: refused");
  assertEquals(reasons(health), ["cache: no connection to a: refused"]);
  cache.report("KV a", true, "");
  assertEquals([health.state, health.degraded()], ["failing", []]);
});
