import { assert, assertEquals } from "#assert";
import { startMemcached } from "../../harness/memcached.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const ADMIN_TOKEN = "the-administration-token-of-this-test";
// A window so long that no test sees its end, unless it runs at the turn of a year.
const RULES = {
  "shop.yaml": `domain: shop
descriptors:
- key: user
  rate_limit: { unit: year, requests_per_unit: 2 }
`,
};

function asking(user: string): unknown {
  return { domain: "shop", descriptors: [{ entries: [{ key: "user", value: user }] }] };
}

async function start(env: Readonly<Record<string, string>>): Promise<ServeFixture> {
  return await ServeFixture.start({
    env: { ADMIN_TOKEN, KV_TIMEOUT: "1m", MC_TIMEOUT: "1m", ...env },
    rules: RULES,
  });
}

/** Asks for the counters at an address; answers the status and what was used, or the code of the refusal. */
async function counters(address: string, work: "peek" | "reset", user: string): Promise<unknown> {
  const response = await fetch(`http://${address}/api/v1/counters/${work}`, {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify(asking(user)),
  });
  const text = await response.text();
  if (!response.headers.get("content-type")?.includes("json")) return [response.status, text.trim()];
  const { descriptors, code } = JSON.parse(text);
  if (code !== undefined) return [response.status, code];
  const [{ used, usedBefore }] = descriptors;
  return [response.status, used, ...(usedBefore === undefined ? [] : [usedBefore])];
}

/** The statuses of so many decisions. */
async function decisions(weir: ServeFixture, user: string, count: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let call = 0; call < count; call++) statuses.push((await weir.ask(asking(user))).status);
  return statuses;
}

/** Two instances on one cache with a local cache each: what a reset reaches, and what it does not. */
async function resetWithTwo(env: Readonly<Record<string, string>>): Promise<void> {
  const both = { ...env, LOCAL_CACHE_SIZE_IN_BYTES: "100000" };
  await using first = await start(both);
  await using second = await start(both);
  const here = first.running.addresses.http;
  const there = second.running.addresses.http;
  for (const weir of [first, second]) {
    await until("the cache to answer", async () => (await weir.ask(asking("warm-up"))).status !== 503);
  }
  assertEquals(await counters(here, "peek", "ann"), [200, 0]);
  assertEquals(await decisions(first, "ann", 3), [200, 200, 429]);
  assertEquals([await counters(here, "peek", "ann"), await counters(there, "peek", "ann")], [[200, 3], [
    200,
    3,
  ]]);
  assertEquals(await decisions(second, "ann", 1), [429]);
  assertEquals(await decisions(second, "bob", 1), [200]);
  assertEquals(await counters(here, "reset", "ann"), [200, 0, 4]);
  // This instance has forgotten that the key was over; the other one still knows it, and asks no cache.
  assertEquals(await decisions(first, "ann", 1), [200]);
  assertEquals(await decisions(second, "ann", 1), [429]);
  assertEquals(await counters(there, "peek", "ann"), [200, 1]);
  assertEquals(await counters(there, "reset", "ann"), [200, 0, 1]);
  assertEquals(await decisions(second, "ann", 3), [200, 200, 429]);
  assertEquals(await counters(here, "peek", "bob"), [200, 1]);
}

Deno.test({
  ...needs(
    ["redis-server", "memcached"],
    "counters in a shared cache: two instances, each with a local cache",
  ),
  async fn() {
    await using redis = await startRedis();
    await resetWithTwo({ BACKEND_TYPE: "kv", KV_URL: redis.url });
    await using memcached = await startMemcached();
    await resetWithTwo({ BACKEND_TYPE: "mc", MC_HOST_PORT: memcached.url });
  },
});

Deno.test({
  ...needs(["redis-server"], "counters per second in their own cache are looked at and reset there"),
  async fn() {
    await using main = await startRedis();
    await using perSecond = await startRedis();
    const env = {
      BACKEND_TYPE: "kv",
      KV_URL: main.url,
      KV_PERSECOND: "true",
      KV_PERSECOND_URL: perSecond.url,
    };
    await using weir = await ServeFixture.start({
      env: { ADMIN_TOKEN, ...env },
      // A second of 30 years: in the cache for limits per second, and no end of a window in sight.
      rules: { "shop.yaml": RULES["shop.yaml"].replace("year,", "second, unit_multiplier: 1000000000,") },
    });
    const { http } = weir.running.addresses;
    await until("the cache to answer", async () => (await weir.ask(asking("ann"))).status !== 503);
    assertEquals(await decisions(weir, "ann", 2), [200, 429]);
    assertEquals([await main.command("DBSIZE"), await perSecond.command("DBSIZE")].map(Number), [0, 1]);
    assertEquals(await counters(http, "peek", "ann"), [200, 3]);
    assertEquals(await counters(http, "reset", "ann"), [200, 0, 3]);
    assertEquals(Number(await perSecond.command("DBSIZE")), 0);
    assertEquals(await counters(http, "peek", "ann"), [200, 0]);
  },
});

Deno.test("counters in memory, on the HTTP port and on the debug port, and /explain on both", async () => {
  await using weir = await start({ LOG_LEVEL: "info" });
  const { http, debug } = weir.running.addresses;
  assertEquals(await decisions(weir, "ann", 3), [200, 200, 429]);
  assertEquals([await counters(http, "peek", "ann"), await counters(debug, "peek", "ann")], [[200, 3], [
    200,
    3,
  ]]);
  const response = await fetch(`http://${debug}/explain?domain=shop&descriptors=user=ann`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  const { counts, descriptors: [{ limit: { rule }, used, remaining }] } = await response.json();
  assertEquals([counts, rule, used, remaining], ["shown", "shop.user", 3, 0]);
  assertEquals(await counters(debug, "reset", "ann"), [200, 0, 3]);
  assertEquals(await decisions(weir, "ann", 1), [200]);
  const line = weir.log.find((text) => text.includes("Counters reset"));
  assert(line !== undefined && line.includes("shop.user") && !line.includes("ann"), line);
});

Deno.test("counters: ADMIN_ADDR takes them away from the HTTP port, with the rest of the administration", async () => {
  await using weir = await start({ ADMIN_ADDR: "127.0.0.1:0" });
  const address = weir.log.join("\n").match(/Listening for administration on '([^']+)'/)?.[1] ?? "";
  assertEquals(await decisions(weir, "ann", 1), [200]);
  assertEquals(await counters(address, "peek", "ann"), [200, 1]);
  assertEquals(await counters(weir.running.addresses.debug, "peek", "ann"), [200, 1]);
  assertEquals(await counters(weir.running.addresses.http, "peek", "ann"), [404, "404 page not found"]);
});

Deno.test("counters: without ADMIN_TOKEN they are not there", async () => {
  await using weir = await start({ ADMIN_TOKEN: "" });
  assertEquals(await counters(weir.running.addresses.http, "reset", "ann"), [404, "404 page not found"]);
});

Deno.test("counters: with the webhook service they are part of its administration", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const store = { WEBHOOK_STORE: `${folder}/weir.db` };
    {
      await using weir = await start(store);
      assertEquals(await decisions(weir, "ann", 1), [200]);
      assertEquals(await counters(weir.running.addresses.http, "peek", "ann"), [200, 1]);
    }
    await using weir = await start({ ...store, ADMIN_TOKEN: "" });
    assertEquals(await counters(weir.running.addresses.http, "peek", "ann"), [404, "not_found"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
