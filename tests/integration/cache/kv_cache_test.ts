import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import net from "node:net";
import { PerSecondCache } from "../../../src/cache/per_second_cache.ts";
import { CacheError } from "../../../src/ratelimit/errors.ts";
import { hit, refusesWithoutConnection } from "../../contract/counter_cache_contract.ts";
import { freePort } from "../../harness/free_port.ts";
import { openKvCache as open } from "../../harness/open_kv.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { sharedRedis } from "../../harness/shared_servers.ts";

const server = await sharedRedis();

Deno.test({
  ...needs(
    ["redis-server"],
    "kv cache: an expiry is set once, again for a counter that is new, and when a window is longer",
  ),
  async fn() {
    await using redis = await startRedis();
    const cache = open(redis.url);
    await cache.ready;
    // A further connection might lead to another server, so each one has expiries set again.
    await until("the connections", () => cache.metrics.gauges.cx_active?.() === 3);
    const one = hit({ expiresInSeconds: 777 });
    const ttl = async () => Number(await redis.command("TTL", one.key));
    await cache.add([one]);
    assertEquals(await ttl() > 700, true);
    await redis.command("PERSIST", one.key);
    await cache.add([one]);
    assertEquals([await ttl(), await redis.command("GET", one.key)], [-1, "2"]);
    await cache.add([{ ...one, windowEnd: one.windowEnd + 3_540, expiresInSeconds: 3_600 }]);
    assertEquals(await ttl() > 3_500, true);
    await cache.add([one]);
    assertEquals([await ttl() > 3_500, await redis.command("GET", one.key)], [true, "4"]);
    await redis.command("DEL", one.key);
    assertEquals(await cache.add([one]), [1]);
    await until("the counter that is new to expire", async () => await ttl() > 700);
    await redis.command("FLUSHALL");
    await redis.command("CLIENT", "KILL", "TYPE", "normal");
    await until("counting to go on", async () => (await cache.add([{ ...one, addend: 5 }]))[0] === 5);
    assertEquals(await ttl() > 700, true);
    await cache.add([hit({ key: "century", expiresInSeconds: 31_536_000 * 4_294_967_295 })]);
    assertEquals(Number(await redis.command("TTL", "century")) > 3e11, true);
    await cache.close();
  },
});

Deno.test({
  ...needs(
    ["redis-server"],
    "kv cache: a counter that somebody else has set below 0 fails the call, and is read as 0",
  ),
  async fn() {
    await using redis = await server.database();
    const cache = open(redis.url);
    await cache.ready;
    const one = hit();
    await redis.command("SET", one.key, "-100");
    const negative = await assertRejects(async () => await cache.add([one]));
    assertMatch(negative.message, /: it answered -99 to INCRBY 1$/);
    assertEquals(await cache.read([one]), [0]);
    for (const text of ["1.5", "", "text"]) {
      await redis.command("SET", one.key, text);
      const error = await assertRejects(async () => await cache.read([one]));
      assertMatch(error.message, /which is not a whole number$/);
    }
    await cache.close();
  },
});

Deno.test({
  ...needs(["redis-server"], "kv cache: an error reply fails its own call and no other"),
  async fn() {
    await using redis = await server.database();
    const cache = open(redis.url);
    await cache.ready;
    const [good, bad] = [hit(), hit()];
    await redis.command("SET", bad.key, "text");
    const [first, failed, last] = await Promise.allSettled([
      cache.add([good]),
      cache.add([bad]),
      cache.add([good]),
    ]);
    assertEquals([first, last], [{ status: "fulfilled", value: [1] }, { status: "fulfilled", value: [2] }]);
    const message =
      `Cannot query key-value cache "127.0.0.1:${redis.port}": ERR value is not an integer or out of range`;
    assertEquals(failed?.status === "rejected" && failed.reason.message, message);
    const unread = await assertRejects(async () => await cache.read([bad]));
    assertMatch(unread.message, /the counter is "text", which is not a whole number/);
    await cache.close();
  },
});

Deno.test("kv cache: without a server every call fails at once, and the outage is told once", async () => {
  const port = freePort();
  const told: string[] = [];
  const cache = open(`127.0.0.1:${port}`, {
    onConnection: (connected, reason) => told.push(`${connected} ${reason}`),
  });
  await until("the outage to be told", () => told.length > 0);
  await refusesWithoutConnection(cache, `127.0.0.1:${port}`);
  assertMatch(told[0] ?? "", /^false .*ECONNREFUSED/);
  assertEquals(cache.connected, false);
  await cache.close();
  assertEquals(told.length, 1);
});

Deno.test({
  ...needs(["redis-server"], "kv cache: goes on by itself when the server is back, and counts nothing twice"),
  async fn() {
    await using redis = await startRedis();
    const told: boolean[] = [];
    const cache = open(redis.url, { onConnection: (connected) => told.push(connected) });
    await cache.ready;
    const one = hit();
    assertEquals(await cache.add([one]), [1]);
    await redis.kill();
    await until("the outage to be told", () => told.includes(false));
    await refusesWithoutConnection(cache, redis.url);
    await redis.restartOnSamePort();
    await until("the connection to be back", () => cache.connected);
    assertEquals([await cache.add([one]), told], [[1], [true, false, true]]);
    await cache.close();
  },
});

Deno.test({
  ...needs(["redis-server"], "kv cache: a server that stands still fails the call within the time"),
  async fn() {
    await using redis = await startRedis();
    const cache = open(redis.url, { timeoutMs: 200 });
    await cache.ready;
    redis.pause();
    const before = performance.now();
    // The server stands still for as long as the call waits.
    const error = await assertRejects(async () => await cache.add([hit()]));
    const waited = performance.now() - before;
    redis.resume();
    assertEquals([error.name, waited < 10_000], ["CacheError", true]);
    await until("the connection to be back", () => cache.connected);
    await until("counting to go on", async () => (await cache.add([hit()]))[0] === 1);
    await cache.close();
  },
});

Deno.test("kv cache: calls in flight fail when the server closes the connection", async () => {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      if (bytes.toString("latin1").toLowerCase().includes("info")) {
        socket.write("$16\r\nredis_version:7\n\r\n");
      } else socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  const cache = open(`127.0.0.1:${port}`);
  await cache.ready;
  const error = await assertRejects(async () => await cache.add([hit()]));
  assertEquals(error.name, "CacheError");
  await cache.close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

Deno.test({
  ...needs(
    ["redis-server"],
    "kv cache: logs in with the password of KV_AUTH; a wrong one is told without it",
  ),
  async fn() {
    await using redis = await startRedis({ args: ["--requirepass", "secret:with:colons"] });
    const right = open(redis.url, { auth: ":secret:with:colons" });
    await until(
      "the right password to be let in",
      async () => (await right.add([hit()]))[0] === 1 || undefined,
    );
    await right.close();
    const told: string[] = [];
    const onConnection = (_: boolean, reason: string) => void told.push(reason);
    const wrong = open(redis.url, { auth: "wrong-password", onConnection });
    await until("the refusal to be told", () => told.length > 0);
    const error = await assertRejects(async () => await wrong.add([hit()]));
    const texts = [error.message, ...told].join("\n");
    assertEquals([error.name, texts.includes("wrong-password")], ["CacheError", false]);
    assertMatch(texts, /WRONGPASS|invalid username-password/);
    await wrong.close();
  },
});

Deno.test({
  ...needs(["redis-server"], "kv cache: counts in the database that is named, and in no other"),
  async fn() {
    await using redis = await startRedis();
    const third = open(`redis://${redis.url}/3`);
    await third.ready;
    const one = hit();
    await third.add([one]);
    assertEquals(await redis.command("GET", one.key), null);
    await redis.command("CLIENT", "KILL", "TYPE", "normal");
    await until("the connection to be back in its database", async () => (await third.add([one]))[0] === 2);
    await third.close();
    const told: string[] = [];
    const none = open(`redis://${redis.url}/99`, { onConnection: (_, reason) => void told.push(reason) });
    await until("the refusal to be told", () => told.length > 0);
    const error = await assertRejects(async () => await none.add([one]));
    assertMatch(error.message, /database 99 was refused: ERR DB index is out of range/);
    await none.close();
  },
});

Deno.test({
  ...needs(
    ["redis-server"],
    "per-second cache: counts that came from one redis-server while the other is gone",
  ),
  async fn() {
    await using first = await startRedis();
    await using second = await startRedis();
    const [main, perSecond] = [open(first.url), open(second.url)];
    const cache = new PerSecondCache({ main, perSecond });
    await Promise.all([main.ready, perSecond.ready]);
    const [year, burst] = [hit({ addend: 3 }), hit({ perSecond: true, addend: 5 })];
    assertEquals(await cache.add([burst, year]), [5, 3]);
    assertEquals([await first.command("DBSIZE"), await second.command("DBSIZE")], [1, 1]);
    await second.kill();
    await until("the outage to be seen", () => !perSecond.connected);
    const error = await assertRejects(async () => await cache.add([burst, year]));
    assertEquals(error instanceof CacheError ? error.counts : error, [undefined, 6]);
    assertEquals(
      error.message.startsWith(`Cannot query key-value cache "${second.url}": `),
      true,
      error.message,
    );
    assertEquals(await cache.add([year]), [9]);
    await cache.close();
  },
});
