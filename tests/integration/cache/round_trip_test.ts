import { assertEquals, assertRejects } from "#assert";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import type { CounterCache } from "../../../src/ratelimit/decision/counter_cache.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { testKv } from "../../harness/kv_bed.ts";
import { openKvCache } from "../../harness/open_kv.ts";
import { startScriptedKv } from "../../harness/scripted_cache.ts";
import { testMc, withMc } from "../../harness/mc_bed.ts";
import { turn } from "./watched_call.ts";
import { readCounts, takeCounts } from "../../harness/take.ts";

/** Milliseconds between two readings of the clock of these tests. */
const STEP_MS = 0.25;

/** Each reading is a step later than the previous one, so that a duration tells how many were taken. */
function steppingClock(): Clock {
  let steps = 0;
  return { ...systemClock, elapsed: () => ++steps * STEP_MS };
}

/** True if a duration is some steps of that clock. */
function isSteps(ms: number): boolean {
  return ms > 0 && Number.isInteger(ms / STEP_MS);
}

/** One round trip is reported for what goes out together, from write to answer. */
async function checkTold(cache: CounterCache, told: readonly number[]): Promise<void> {
  assertEquals(told, []);
  await Promise.all([
    takeCounts(cache, [hit(), hit()]),
    takeCounts(cache, [hit()]),
    readCounts(cache, [hit()]),
  ]);
  assertEquals([told.length, told.every(isSteps)], [1, true]);
  await takeCounts(cache, [hit({ addend: 0 })]);
  assertEquals([told.length, told.every(isSteps)], [2, true]);
}

testKv("round trip, key-value cache: is reported once for what goes out together", async (redis) => {
  const told: number[] = [];
  const options = { clock: steppingClock(), roundTrip: (ms: number) => told.push(ms) };
  await using cache = openKvCache(redis.url, options);
  await cache.ready;
  await checkTold(cache, told);
});

testMc(1, "a round trip is reported once for what goes out together", async (_, [server]) => {
  const told: number[] = [];
  const options = { clock: steppingClock(), roundTrip: (ms: number) => void told.push(ms) };
  await withMc([server?.port ?? 0], options, async (cache) => {
    await cache.ready;
    await checkTold(cache, told);
  });
});

Deno.test("round trip, key-value cache: what is not answered in time has none, what is answered by an error has one", async () => {
  const told: number[] = [];
  await using server = await startScriptedKv(([, key]) => key === "refused" ? "-ERR no\r\n" : undefined);
  const clock = new FakeClock();
  const timeoutMs = 60_000;
  await using cache = openKvCache(server.url, { timeoutMs, clock, roundTrip: (ms) => told.push(ms) });
  await cache.ready;
  await assertRejects(async () => await readCounts(cache, [hit({ key: "refused" })]));
  assertEquals(told.length, 1);
  const silent = readCounts(cache, [hit({ key: "silent" })]);
  await turn();
  clock.advance(timeoutMs);
  await assertRejects(() => silent);
  assertEquals(told.length, 1);
});
