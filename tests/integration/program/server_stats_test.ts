import { assertEquals } from "#assert";
import { HEALTH_CHECK_REQUEST } from "../../../src/wire/health.ts";
import { decide, GrpcClient, SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { noon, SHOP, shopRequest } from "../settings/settings_bed.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const HEALTH = "/grpc.health.v1.Health/";

/** The statistics whose names begin so, without that beginning. */
function under(stats: Readonly<Record<string, number>>, prefix: string): Record<string, number> {
  const named = Object.entries(stats).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(named.map(([name, value]) => [name.slice(prefix.length), value]));
}

for (const engine of ["native", "grpc-js"]) {
  Deno.test(`server statistics, ${engine}: every unary call is counted and timed, streams and HTTP are not`, async () => {
    const env = { GRPC_ENGINE: engine };
    await using service = await ServeFixture.start({ env, rules: SHOP, clock: noon() });
    {
      using client = new GrpcClient(service.running.addresses.grpc);
      const begin = performance.now();
      await decide(client, "shop", "open=1");
      await decide(client, "shop", "blocked=1");
      await decide(client, "", "open=1");
      await client.unary(SHOULD_RATE_LIMIT, Uint8Array.of(255));
      const health = HEALTH_CHECK_REQUEST.encode({ service: "" });
      await client.unary(`${HEALTH}Check`, health);
      await client.serverStream(`${HEALTH}Watch`, health, (_, cancel) => cancel());
      await service.ask(shopRequest("open=1"));
      // One call after the other: all together took no less than what was counted.
      const tookMs = performance.now() - begin;
      const stats = await service.stats();
      const {
        "ShouldRateLimit.response_time.sum_ms": deciding,
        "Check.response_time.sum_ms": checking,
        ...counts
      } = under(stats, "ratelimit_server.");
      assertEquals(counts, {
        "ShouldRateLimit.total_requests": 4,
        "ShouldRateLimit.response_time.count": 4,
        "Check.total_requests": 1,
        "Check.response_time.count": 1,
      });
      assertEquals([deciding, checking].map((ms = 0) => ms > 0 && ms <= tookMs), [true, true]);
      assertEquals(stats["ratelimit.process.grpc_connections"], 1);
    }
  });
}

Deno.test("process statistics: memory, processor and event loop are reported, whole numbers or not", async () => {
  await using service = await ServeFixture.start({ rules: SHOP });
  const metrics = under(await service.stats(), "ratelimit.process.");
  const names = [
    ...["rss_bytes", "heap_used_bytes", "heap_total_bytes", "external_bytes"],
    ...["cpu_user_ms", "cpu_system_ms", "uptime_seconds"],
  ];
  assertEquals(names.filter((name) => !((metrics[name] ?? 0) > 0)), []);
  assertEquals((metrics["event_loop_delay_ms"] ?? -1) >= 0, true);
});

Deno.test("local cache statistics: what is over its limit is looked up and found", async () => {
  const env = { LOCAL_CACHE_SIZE_IN_BYTES: "10000" };
  await using service = await ServeFixture.start({ env, rules: SHOP, clock: noon() });
  for (let call = 0; call < 3; call++) await service.ask(shopRequest("blocked=1"));
  await service.ask(shopRequest("open=1"));
  assertEquals(under(await service.stats(), "ratelimit.localcache."), {
    entryCount: 1,
    hitCount: 2,
    missCount: 2,
    lookupCount: 4,
    overwriteCount: 0,
    expiredCount: 0,
    evacuateCount: 0,
    averageAccessTime: noon().now() / 1_000,
  });
});

Deno.test("local cache statistics: there are none without a local cache", async () => {
  await using service = await ServeFixture.start({ rules: SHOP });
  assertEquals(under(await service.stats(), "ratelimit.localcache."), {});
});

Deno.test({
  ...needs(["redis-server"], "round trip statistics: both key-value caches are timed in one timer"),
  async fn() {
    await using main = await startRedis();
    await using perSecond = await startRedis();
    const env = {
      BACKEND_TYPE: "kv",
      KV_URL: main.url,
      KV_PERSECOND: "true",
      KV_PERSECOND_URL: perSecond.url,
    };
    const rules = {
      "rules.yaml": `domain: shop
descriptors:
  - key: daily
    rate_limit: { unit: day, requests_per_unit: 10 }
  - key: quick
    rate_limit: { unit: second, requests_per_unit: 10 }
`,
    };
    await using service = await ServeFixture.start({ env, rules, clock: noon() });
    const asked = ["daily=1", "quick=1", "daily=1"];
    const begin = performance.now();
    for (const descriptor of asked) assertEquals((await service.ask(shopRequest(descriptor))).status, 200);
    const tookMs = performance.now() - begin;
    const { count = 0, sum_ms: sum = 0 } = under(await service.stats(), "ratelimit.cache.round_trip.");
    assertEquals([count, sum > 0 && sum <= tookMs], [asked.length, true]);
  },
});
