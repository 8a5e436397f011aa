import { assertEquals, assertMatch } from "#assert";
import { hit } from "../../contract/counter_cache_contract.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { testMc, withMc } from "../../harness/mc_bed.ts";
import { turn, watchCall } from "./watched_call.ts";
import { outcomes, takeCounts } from "../../harness/take.ts";
import { takeHits } from "../../../src/ratelimit/decision/take_hits.ts";

/** Of the test that moves its clock itself. */
const CLOCK = new FakeClock();
const TIMEOUT_MS = 3_000;

testMc(3, "a node that is gone fails its own hits and no other", async (cache, servers) => {
  const hits = Array.from({ length: 12 }, () => hit());
  assertEquals(await takeCounts(cache, hits), hits.map(() => 1));
  const [gone] = servers;
  const there = await Promise.all(hits.map(async ({ key }) => await gone?.value(key) === undefined));
  await gone?.kill();
  const told = await until("the failure", async () => {
    const answers = await outcomes(takeHits(cache, hits));
    return answers.some((answer) => typeof answer === "string") && answers;
  });
  assertEquals(told.map((answer) => typeof answer === "string"), there.map((isThere) => !isThere));
  assertEquals([there.includes(true), there.includes(false)], [true, true]);
  const message = told.find((answer) => typeof answer === "string");
  assertMatch(`${message}`, new RegExp(`^Cannot query memcached-style cache "${gone?.url}": `));
});

testMc(
  1,
  "a server that stands still fails every call in time, and counting goes on after it",
  async (cache, _, server) => {
    await takeCounts(cache, [hit()]);
    server.pause();
    const begun = [];
    for (let turns = 0; turns < 60; turns++) {
      begun.push(watchCall(takeCounts(cache, [hit()]), CLOCK), watchCall(cache.remove(["key"]), CLOCK));
      await turn();
      CLOCK.advance(TIMEOUT_MS / 12);
      await turn();
    }
    CLOCK.advance(TIMEOUT_MS);
    await turn();
    const waits = begun.map(([outcome]) => outcome?.message === undefined ? Infinity : outcome.ms);
    // No call waits for a server that is known not to answer.
    assertEquals([Math.max(...waits), Math.min(...waits)], [TIMEOUT_MS, 0]);
    assertEquals(cache.connected, false);
    server.resume();
    await until("the connection to be back", () => {
      CLOCK.advance(TIMEOUT_MS / 100);
      return cache.connected;
    });
    await until("counting to go on", async () => {
      CLOCK.advance(TIMEOUT_MS / 100);
      return (await takeCounts(cache, [hit()]))[0] === 1;
    });
  },
  { timeoutMs: TIMEOUT_MS, clock: CLOCK },
);

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
        await takeCounts(cache, [one]).then(() => answered++, () => lost++);
      };
      // A drop that is noticed late costs more hits.
      for (let round = 0; round < 12 || answered <= 100 && round < 100; round++) {
        if (round % 3 === 1) relay.dropAll({ reset: round % 2 === 0 });
        await Promise.all(Array.from({ length: 20 }, count));
        await until("the connection", () => cache.connected);
      }
      const held = Number(await memcached.value(one.key));
      assertEquals([held >= answered, held <= answered + lost, answered > 100], [true, true, true]);
    });
  },
});
