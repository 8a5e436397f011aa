import { assertEquals, assertMatch } from "@std/assert";
import { CacheError } from "../../src/ratelimit/errors.ts";
import { hit } from "../contract/counter_cache_contract.ts";
import { freePort } from "../support/free_port.ts";
import { startMemcached } from "../support/memcached.ts";
import { startTcpRelay } from "../support/tcp_relay.ts";
import { needs } from "../support/tools.ts";
import { until } from "../support/until.ts";
import { refusal, testMc, withMc } from "./mc_bed.ts";

/** The end of a call that waits for its deadline may be off by so much. */
const TOLERANCE_MS = 50;

testMc(3, "a node that is gone fails its own hits and no other", async (cache, servers) => {
  const hits = Array.from({ length: 12 }, () => hit());
  assertEquals(await cache.add(hits), hits.map(() => 1));
  const [gone] = servers;
  const there = await Promise.all(hits.map(async ({ key }) => await gone?.value(key) === undefined));
  await gone?.kill();
  const error = await until("the failure", async () => {
    return await refusal(() => cache.add(hits), CacheError);
  });
  assertEquals(error.counts, there.map((isThere) => isThere ? 2 : undefined));
  assertEquals([there.includes(true), there.includes(false)], [true, true]);
  assertMatch(error.message, new RegExp(`^Cannot ask memcached-style cache "${gone?.url}": `));
});

testMc(
  1,
  "a server that stands still fails every call in time, and counting goes on after it",
  async (cache, _, server) => {
    await cache.add([hit()]);
    server.pause();
    const waits: number[] = [];
    const began = performance.now();
    while (performance.now() - began < 1_500) {
      const start = performance.now();
      const call = cache.add([hit()]).then(() => "answered", () => "failed").then((end) => {
        waits.push(performance.now() - start);
        return end;
      });
      const removal = cache.remove(["key"]).then(() => "answered", () => "failed");
      await new Promise((resolve) => setTimeout(resolve, 25));
      if (performance.now() - began > 1_400) assertEquals([await call, await removal], ["failed", "failed"]);
    }
    const longest = Math.max(...waits);
    assertEquals([waits.length > 20, Math.abs(longest - 300) <= TOLERANCE_MS || longest], [true, true]);
    assertEquals(cache.connected, false);
    // Nobody waits for a server of which it is known that it does not answer.
    assertEquals(Math.min(...waits) < 20, true);
    server.resume();
    await until("the connection to be back", () => cache.connected);
    await until("counting to go on", async () => (await cache.add([hit()]))[0] === 1);
  },
  { timeoutMs: 300 },
);

testMc(
  1,
  "goes on by itself when the server is back, and counts nothing twice",
  async (cache, _, server) => {
    const told: (string | boolean)[][] = [];
    const onConnection = (connected: boolean, reason: string, node: string) =>
      void told.push([connected, reason === "", node]);
    await withMc([server.port], { onConnection }, async (other) => {
      await other.ready;
      const one = hit();
      assertEquals(await other.add([one]), [1]);
      await server.kill();
      await until("the outage to be told", () => told.length > 1);
      assertMatch((await refusal(() => other.add([one]), CacheError)).message, /: no connection: /);
      await server.restartOnSamePort();
      await until("the connection to be back", () => other.connected && cache.connected);
      assertEquals([await other.add([one]), await cache.add([one])], [[1], [2]]);
      assertEquals(told, [[true, true, server.url], [false, false, server.url], [true, true, server.url]]);
    });
  },
);

Deno.test("mc cache: without a server every call fails at once, and the outage is told once", async () => {
  const port = freePort();
  const told: string[] = [];
  const onConnection = (connected: boolean, reason: string) => void told.push(`${connected} ${reason}`);
  await withMc([port], { onConnection }, async (cache) => {
    await until("the outage to be told", () => told.length > 0);
    const calls: (() => Promise<unknown>)[] = [
      () => cache.add([hit()]),
      () => cache.read([hit()]),
      () => cache.remove(["key"]),
    ];
    for (const call of calls) {
      const error = await refusal(call, CacheError);
      assertMatch(
        error.message,
        new RegExp(`^Cannot ask memcached-style cache "127.0.0.1:${port}": no connection: `),
      );
    }
    assertEquals([cache.connected, told.length], [false, 1]);
    assertMatch(told[0] ?? "", /^false .*ECONNREFUSED/);
  });
});

Deno.test("mc cache: an address of IPv6 is dialled without brackets and told with them", async () => {
  const told: string[] = [];
  const onConnection = (_: boolean, reason: string, node: string) => void told.push(`${node} ${reason}`);
  await withMc([], { hosts: [{ host: "::1", port: 1 }], onConnection }, async () => {
    await until("the refusal", () => told.length > 0);
    assertMatch(told[0] ?? "", /^\[::1\]:1 connect E\w+/);
  });
});

Deno.test({
  ...needs(
    ["memcached"],
    "mc cache: a line that is dropped again and again loses no hit that was answered",
  ),
  async fn() {
    await using memcached = await startMemcached();
    await using relay = await startTcpRelay(memcached.port);
    await withMc([relay.port], { maxIdleConnections: 2 }, async (cache) => {
      await cache.ready;
      const one = hit();
      let answered = 0;
      let lost = 0;
      const count = async () => {
        await cache.add([one]).then(() => answered++, () => lost++);
      };
      for (let turn = 0; turn < 12; turn++) {
        if (turn % 3 === 1) relay.dropAll({ reset: turn % 2 === 0 });
        await Promise.all(Array.from({ length: 20 }, count));
        await until("the connection", () => cache.connected);
      }
      const held = Number(await memcached.value(one.key));
      assertEquals([held >= answered, held <= answered + lost, answered > 100], [true, true, true]);
    });
  },
});
