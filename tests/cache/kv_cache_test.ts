import { assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import net from "node:net";
import { systemClock } from "../../src/base/clock.ts";
import { parseKvAddress } from "../../src/cache/kv_address.ts";
import { KvCache } from "../../src/cache/kv_cache.ts";
import type { KvNodeOptions } from "../../src/cache/kv_node.ts";
import { createKvClient, reconnectDelayMs } from "../../src/cache/kv_connect.ts";
import { counterCacheContract, hit, refusesWithoutConnection } from "../contract/counter_cache_contract.ts";
import { freePort } from "../support/free_port.ts";
import { startRedis } from "../support/redis_server.ts";
import { seededRandom } from "../support/seeded_random.ts";
import { needs } from "../support/tools.ts";
import { until } from "../support/until.ts";

interface OpenOptions {
  readonly timeoutMs?: number;
  readonly auth?: string;
  readonly onConnection?: (connected: boolean, reason: string) => void;
  readonly pool?: Partial<Pick<KvNodeOptions, "poolSize" | "onEmpty" | "onEmptyWaitMs" | "windowMs">>;
}

function open(url: string, options: OpenOptions = {}): KvCache {
  const { timeoutMs = 5_000 } = options;
  const address = parseKvAddress(url, undefined, options.auth);
  const { text, database } = address;
  return new KvCache({
    createClient: () => createKvClient({ address, timeoutMs, random: Math.random }),
    address: text,
    database,
    timeoutMs,
    ...{ poolSize: 3, onEmpty: "CREATE", onEmptyWaitMs: 1_000, windowMs: 0 },
    ...options.pool,
    clock: systemClock,
    random: Math.random,
    onConnection: options.onConnection,
  });
}

counterCacheContract("kv over TCP", async () => {
  const redis = await startRedis();
  const cache = open(redis.url);
  await cache.ready;
  return { cache, end: () => redis[Symbol.asyncDispose]() };
});

counterCacheContract("kv over a unix socket", async () => {
  const redis = await startRedis({ unixSocket: true });
  const cache = open(redis.socketPath ?? "");
  await cache.ready;
  return { cache, end: () => redis[Symbol.asyncDispose]() };
});

Deno.test({
  ...needs(
    ["redis-server"],
    "kv cache: an expiry is set once, again for a counter that is new, and when a window is longer",
  ),
  async fn() {
    await using redis = await startRedis();
    const cache = open(redis.url);
    await cache.ready;
    const one = hit({ expiresInSeconds: 77 });
    const ttl = async () => Number(await redis.command("TTL", one.key));
    await cache.add([one]);
    assertEquals(await ttl() > 70, true);
    await redis.command("PERSIST", one.key);
    await cache.add([one]);
    assertEquals([await ttl(), await redis.command("GET", one.key)], [-1, "2"]);
    await cache.add([{ ...one, windowEnd: one.windowEnd + 3_540, expiresInSeconds: 3_600 }]);
    assertEquals(await ttl() > 3_500, true);
    await cache.add([one]);
    assertEquals([await ttl() > 3_500, await redis.command("GET", one.key)], [true, "4"]);
    await redis.command("DEL", one.key);
    assertEquals(await cache.add([one]), [1]);
    await until("the counter that is new to expire", async () => await ttl() > 70);
    await redis.command("FLUSHALL");
    await redis.command("CLIENT", "KILL", "TYPE", "normal");
    await until("counting to go on", async () => (await cache.add([{ ...one, addend: 5 }]))[0] === 5);
    assertEquals(await ttl() > 70, true);
    await cache.add([hit({ key: "century", expiresInSeconds: 31_536_000 * 4_294_967_295 })]);
    assertEquals(Number(await redis.command("TTL", "century")) > 3e11, true);
    await cache.close();
  },
});

Deno.test({
  ...needs(["redis-server"], "kv cache: counters that somebody else has written to are no count below 0"),
  async fn() {
    await using redis = await startRedis();
    const cache = open(redis.url);
    await cache.ready;
    const one = hit();
    await redis.command("SET", one.key, "-100");
    assertEquals([await cache.add([one]), await cache.read([one])], [[0], [0]]);
    for (const text of ["1.5", "", "text"]) {
      await redis.command("SET", one.key, text);
      const error = await assertRejects(async () => await cache.read([one]));
      assertMatch(error.message, /which is not a whole number$/);
    }
    await cache.close();
  },
});

Deno.test({
  ...needs(["redis-server"], "kv cache: hits that go out together count exactly as if each had been sent"),
  async fn() {
    await using redis = await startRedis();
    const cache = open(redis.url);
    await cache.ready;
    const random = seededRandom(20_261_121);
    const pick = (below: number) => Math.floor(random() * below);
    const model = new Map<string, number>();
    for (let turn = 0; turn < 200; turn++) {
      const asks = Array.from(
        { length: 1 + pick(12) },
        () => Array.from({ length: 1 + pick(4) }, () => hit({ key: `k${pick(5)}`, addend: pick(9) - 3 })),
      );
      const expected = asks.map((hits) =>
        hits.map(({ key, addend }) => {
          const before = model.get(key) ?? 0;
          const after = Math.max(0, before + addend);
          if (addend > 0 || model.has(key)) model.set(key, after);
          return after;
        })
      );
      assertEquals(await Promise.all(asks.map((hits) => cache.add(hits))), expected, `turn ${turn}`);
    }
    for (const [key, count] of model) {
      assertEquals([key, await redis.command("GET", key)], [key, String(count)]);
    }
    await cache.close();
  },
});

Deno.test({
  ...needs(["redis-server"], "kv cache: an error reply fails its own call and no other"),
  async fn() {
    await using redis = await startRedis();
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
    const message = `Cannot ask key-value cache "${redis.url}": ERR value is not an integer or out of range`;
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
    const error = await assertRejects(async () => await cache.add([hit()]));
    const waited = performance.now() - before;
    redis.resume();
    assertEquals([error.name, waited < 1_000], ["CacheError", true]);
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

const ADDRESSES: readonly [url: string, socketType: string | undefined, target: unknown, text: string][] = [
  ["localhost:6379", undefined, { host: "localhost", port: 6379 }, "localhost:6379"],
  ["[::1]:6380", undefined, { host: "::1", port: 6380 }, "[::1]:6380"],
  ["/run/kv.sock", undefined, { path: "/run/kv.sock" }, "/run/kv.sock"],
  ["kv.sock", "unix", { path: "kv.sock" }, "kv.sock"],
  ["redis://user:pass@kv.example:6390/3", undefined, { host: "kv.example", port: 6390 }, "kv.example:6390"],
  ["redis://kv.example", undefined, { host: "kv.example", port: 6379 }, "kv.example:6379"],
];

for (const [url, socketType, target, text] of ADDRESSES) {
  Deno.test(`kv address: ${url}`, () => {
    const address = parseKvAddress(url, socketType, undefined);
    assertEquals<unknown>([address.target, address.text], [target, text]);
  });
}

Deno.test("kv address: who logs in", () => {
  const login = (url: string, auth?: string) => {
    const { username, password, database } = parseKvAddress(url, undefined, auth);
    return [username, password, database];
  };
  assertEquals(login("redis://u%40x:p%3Aq@h:1/3"), ["u@x", "p:q", 3]);
  assertEquals(login("redis://u:p@h:1", "other"), [undefined, "other", 0]);
  assertEquals(login("h:1", "user:pass:word"), ["user", "pass:word", 0]);
});

Deno.test("kv address: what cannot be used is said without a password", () => {
  const right = "host:port, [IPv6 address]:port or the path of a unix socket would be right";
  const url = "Cannot use KV_URL: redis://user:password@host:port/database would be right";
  const messages = [
    "localhost",
    "u:secret@h:1",
    "h:0",
    "rediss://u:secret@h:1",
    "redis://u:secret@h:1/x",
    "http://h",
  ]
    .map((text) => assertThrows(() => parseKvAddress(text, undefined, undefined)).message);
  const plain = (shown: string) => `Cannot use KV_URL ${shown}: ${right}`;
  assertEquals(messages, [plain('"localhost"'), plain("(value not shown)"), plain('"h:0"'), url, url, url]);
});

Deno.test({
  ...needs(["redis-server"], "kv connection: a socket that fails twice throws nothing outside every handler"),
  async fn() {
    await using redis = await startRedis();
    const address = parseKvAddress(redis.url, undefined, undefined);
    const client = createKvClient({ address, timeoutMs: 1_000, random: () => 0 });
    client.on("error", () => {});
    await client.connect();
    const { stream } = client as unknown as { stream: net.Socket };
    const error = Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
    assertEquals([stream.emit("error", error), stream.emit("error", error)], [true, true]);
    const closed = new Promise((resolve) => stream.once("close", resolve));
    client.disconnect();
    stream.destroy();
    await closed;
  },
});

Deno.test("kv connection: the waits between attempts double up to the bound, half of it by chance", () => {
  const shortest = [1, 2, 3, 6, 7, 60].map((attempt) => reconnectDelayMs(attempt, 0));
  const longest = [1, 2, 3, 6, 7, 60].map((attempt) => reconnectDelayMs(attempt, 1));
  assertEquals(shortest, [25, 50, 100, 800, 1_000, 1_000]);
  assertEquals(longest, [50, 100, 200, 1_600, 2_000, 2_000]);
});
