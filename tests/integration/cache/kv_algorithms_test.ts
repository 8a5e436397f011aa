import { assertEquals, assertMatch } from "#assert";
import { startRedis } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { sharedRedis } from "../../harness/shared_servers.ts";
import { testKv } from "../../harness/kv_bed.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

const shared = await sharedRedis();

const RULES = {
  "shop.yaml": `domain: shop
descriptors:
- {key: window, rate_limit: {unit: hour, requests_per_unit: 2, algorithm: sliding_window}}
- {key: bucket, rate_limit: {unit: hour, requests_per_unit: 1, algorithm: token_bucket, burst: 2}}
- {key: flight, rate_limit: {algorithm: concurrency, max_in_flight: 2, lease: 1h}}
- {key: named, identifies: true, rate_limit: {algorithm: concurrency, max_in_flight: 2, lease: 1h}}
- {key: second, rate_limit: {unit: second, requests_per_unit: 5, unit_multiplier: 3600, algorithm: sliding_window}}
- {key: fixed, rate_limit: {unit: year, requests_per_unit: 2}}
`,
};

async function statusesOf(service: ServeFixture, key: string, hits: readonly number[]): Promise<number[]> {
  const statuses = [];
  for (const hitsAddend of hits) {
    const isNegativeHits = hitsAddend < 0;
    const descriptor = { entries: [{ key, value: "v" }], hitsAddend: Math.abs(hitsAddend), isNegativeHits };
    statuses.push((await service.ask({ domain: "shop", descriptors: [descriptor] })).status);
  }
  return statuses;
}

testKv("kv algorithms: each counts in the cache, and limits per second in their own", async (main) => {
  await using perSecond = await shared.database();
  const env = {
    BACKEND_TYPE: "kv",
    KV_URL: main.url,
    KV_PERSECOND: "true",
    KV_PERSECOND_URL: perSecond.url,
    CACHE_KEY_PREFIX: "a_",
  };
  await using service = await ServeFixture.start({ env, rules: RULES });
  const hits = [1, 2, 1, 1, -1, 1];
  for (const key of ["window", "bucket", "flight", "named"]) {
    assertEquals(await statusesOf(service, key, hits), [200, 429, 200, 429, 200, 200], key);
  }
  assertEquals(await statusesOf(service, "second", [5, 1]), [200, 429]);
  const keysOf = async (database: typeof main) => {
    const keys = String(await database.command("KEYS", "a_shop_*")).split("\n").sort();
    return keys;
  };
  assertEquals(await keysOf(main), [
    "a_shop_bucket_v_bucket3600",
    "a_shop_flight_v_lease3600",
    "a_shop_named_leases3600",
    "a_shop_window_v_sliding3600",
  ]);
  assertEquals(await keysOf(perSecond), ["a_shop_second_v_sliding3600"]);
  assertEquals(service.log.filter((line) => line.includes("refuses")), []);
});

/** The permissions that the page names, without those of a cluster. */
async function documentedPermissions(): Promise<string[]> {
  const page = await Deno.readTextFile("docs/cache.md");
  const [, text = "", command = ""] =
    /Rules with an\s\[algorithm\]([^]*?)```sh\n(.*acl setuser .*)\n/.exec(page) ?? [];
  return ["-@all", ...`${text} ${command}`.match(/\+[a-z]+/g) ?? []];
}

Deno.test({
  ...needs(["redis-server"], "kv algorithms: the permissions that the page names are enough"),
  async fn() {
    const permissions = await documentedPermissions();
    await using redis = await startRedis({ args: ["--user", "weir", "on", ">word", "~*", ...permissions] });
    const env = { BACKEND_TYPE: "kv", KV_URL: redis.url, KV_AUTH: "weir:word" };
    await using service = await ServeFixture.start({ env, rules: RULES });
    for (const key of ["window", "bucket", "flight", "named"]) {
      assertEquals(await statusesOf(service, key, [1, 2, -1, 1]), [200, 429, 200, 200], key);
    }
    // A refused hit of a fixed window is counted.
    assertEquals(await statusesOf(service, "fixed", [1, 2, -1, 1]), [200, 429, 200, 429]);
    assertEquals(service.log.filter((line) => /NOPERM|refuse|ERR/.test(line)), []);
  },
});

for (
  const [mode, status] of [["", 503], ["deny", 429], ["allow", 200], ["local", 200]] as const
) {
  Deno.test({
    ...needs(
      ["redis-server"],
      `kv algorithms: without scripts they fail by CACHE_ON_FAILURE "${mode}", as the log says`,
    ),
    async fn() {
      const args = ["--user", "default", "on", "nopass", "~*", "&*", "+@all", "-@scripting"];
      await using redis = await startRedis({ args });
      const env = {
        BACKEND_TYPE: "kv",
        KV_URL: redis.url,
        ...(mode === "" ? {} : { CACHE_ON_FAILURE: mode }),
      };
      await using service = await ServeFixture.start({ env, rules: RULES });
      const refusals = () => service.log.filter((line) => line.includes("refuses a script"));
      await until("the refused scripts are logged", () => refusals().length === 4);
      assertMatch(refusals().join("\n"), /shop\.window, shop\.flight.*NOPERM/);
      assertMatch(refusals().join("\n"), /shop\.bucket.*NOPERM/);
      assertMatch(refusals().join("\n"), /shop\.named.*NOPERM/);
      const last = mode === "local" ? 429 : status;
      assertEquals(await statusesOf(service, "window", [1, 1, 1]), [status, status, last]);
      assertEquals(await statusesOf(service, "fixed", [1, 1, 1]), [200, 200, 429]);
    },
  });
}
