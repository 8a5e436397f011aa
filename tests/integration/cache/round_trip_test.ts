import { assertEquals, assertRejects } from "@std/assert";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import type { CounterCache } from "../../../src/ratelimit/counter_cache.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { openKvCache } from "../../harness/open_kv.ts";
import { startScriptedKv } from "../../harness/scripted_cache.ts";
import { needs, type Tool } from "../../harness/tools.ts";
import { openMc } from "../../harness/mc_bed.ts";
import { turn } from "./watched_call.ts";
import { sharedRedis } from "../../harness/shared_servers.ts";

const server = await sharedRedis();

/** What is between two readings of the clock of these tests, in milliseconds. */
const STEP_MS = 0.25;

/** Each reading is a step later than the one before, so that a duration tells how many were taken. */
function steppingClock(): Clock {
  let steps = 0;
  return { ...systemClock, elapsed: () => ++steps * STEP_MS };
}

/** Whether a duration is some steps of that clock. */
function isSteps(ms: number): boolean {
  return ms > 0 && Number.isInteger(ms / STEP_MS);
}

interface Adapter {
  readonly server: Tool;
  open(owned: AsyncDisposableStack, told: (ms: number) => void): Promise<CounterCache>;
}

const ADAPTERS: Readonly<Record<string, Adapter>> = {
  "key-value cache": {
    server: "redis-server",
    async open(owned, roundTrip) {
      const redis = owned.use(await server.database());
      const cache = owned.use(openKvCache(redis.url, { clock: steppingClock(), roundTrip }));
      await cache.ready;
      return cache;
    },
  },
  "memcached-style cache": {
    server: "memcached",
    async open(owned, roundTrip) {
      const { port } = owned.use(await startMemcached());
      const cache = openMc([port], { clock: steppingClock(), roundTrip });
      owned.defer(() => cache.close());
      await cache.ready;
      return cache;
    },
  },
};

for (const [name, { server, open }] of Object.entries(ADAPTERS)) {
  Deno.test({
    ...needs([server], `round trip, ${name}: is told once for what goes out together, from write to answer`),
    async fn() {
      await using owned = new AsyncDisposableStack();
      const told: number[] = [];
      const cache = await open(owned, (ms) => told.push(ms));
      assertEquals(told, []);
      await Promise.all([cache.add([hit(), hit()]), cache.add([hit()]), cache.read([hit()])]);
      assertEquals([told.length, told.every(isSteps)], [1, true]);
      await cache.add([hit({ addend: 0 })]);
      assertEquals([told.length, told.every(isSteps)], [2, true]);
    },
  });
}

Deno.test("round trip, key-value cache: what is not answered in time has none, what is answered by an error has one", async () => {
  const told: number[] = [];
  await using server = await startScriptedKv(([, key]) => key === "refused" ? "-ERR no\r\n" : undefined);
  const clock = new FakeClock();
  const timeoutMs = 60_000;
  await using cache = openKvCache(server.url, { timeoutMs, clock, roundTrip: (ms) => told.push(ms) });
  await cache.ready;
  await assertRejects(async () => await cache.read([hit({ key: "refused" })]));
  assertEquals(told.length, 1);
  const silent = cache.read([hit({ key: "silent" })]);
  await turn();
  clock.advance(timeoutMs);
  await assertRejects(() => silent);
  assertEquals(told.length, 1);
});
