import { assertEquals, assertMatch, assertRejects } from "#assert";
import { slotOf } from "../../../src/cache/kv/cluster/slots.ts";
import { bucketLimit } from "../../../src/ratelimit/algorithms/bucket.ts";
import { sliceLimit } from "../../../src/ratelimit/algorithms/slices.ts";
import type { Counted, Taken } from "../../../src/ratelimit/algorithms/taken.ts";
import { ReplyError, RespReader } from "../../../src/cache/kv/resp.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import { conditionalHit } from "../../contract/conditional_counter_cases.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { testKv, testRedis } from "../../harness/kv_bed.ts";
import { openKvCache, openKvCluster } from "../../harness/open_kv.ts";
import { redisReplies } from "../../harness/redis_command.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { ScriptedCache } from "../../harness/scripted_cache.ts";
import { startRedisCluster } from "../../harness/redis_cluster.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { outcomes, take, takeCounts, taken } from "../../harness/take.ts";
import { takeHits } from "../../../src/ratelimit/decision/take_hits.ts";

const HOUR_MS = 3_600_000;

/** True if hits were granted, and how many count then. */
function grantedAndUsed(answers: readonly Taken[]): (readonly [boolean, number])[] {
  return answers.map(({ granted, used }) => [granted, used]);
}

/** Number of calls of a command since the statistics were reset. */
function callsOf(statistics: unknown, command: string): number {
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(String(statistics))?.[1] ?? 0);
}

testRedis("kv takes: a server that forgets its scripts is given them again", async (redis) => {
  await using cache = openKvCache(redis.url, { poolSize: 2 });
  await cache.ready;
  const one = conditionalHit({ limit: sliceLimit(1_000, HOUR_MS) });
  const fixed = hit();
  for (let round = 1; round <= 20; round++) {
    const calls = Array.from({ length: 10 }, () => taken(cache, [one, conditionalHit()]));
    const [counts] = await Promise.all([
      takeCounts(cache, [fixed]),
      ...calls,
      redis.command("SCRIPT", "FLUSH"),
    ]);
    assertEquals(counts, [round]);
    const answers = await Promise.all(calls);
    assertEquals(answers.flat().every(({ granted }) => granted), true);
    assertEquals(Math.max(...answers.map(([taken]) => taken?.used ?? 0)), round * 10);
  }
  const statistics = await redis.command("INFO", "commandstats");
  assertEquals(callsOf(statistics, "eval") > 1, true);
});

testKv("kv takes: every key has its expiry, and what takes nothing creates none", async (redis) => {
  await using cache = openKvCache(redis.url);
  await cache.ready;
  const limits = [sliceLimit(5, HOUR_MS), bucketLimit({ burst: 5, hitsPerUnit: 1, unitSeconds: 3_600 })];
  for (const limit of limits) {
    for (const addend of [0, -2, 6]) await taken(cache, [conditionalHit({ limit, addend })]);
  }
  assertEquals(await redis.command("DBSIZE"), 0);
  for (const limit of limits) {
    const one = conditionalHit({ limit, expiresInSeconds: 500 });
    await taken(cache, [one]);
    assertEquals(await redis.command("PERSIST", one.key), 1);
    const longer = { ...one, expiresInSeconds: 900 };
    await Promise.all([taken(cache, [one]), taken(cache, [longer]), taken(cache, [{ ...one, addend: -1 }])]);
    const seconds = Number(await redis.command("TTL", one.key));
    assertEquals(seconds > 600 && seconds <= 900, true, `${seconds}`);
  }
});

testKv("kv takes: instances whose clocks differ agree, by the clock of the server", async (redis) => {
  await using ahead = openKvCache(redis.url, { clock: new FakeClock(4_000_000_000_000) });
  await using behind = openKvCache(redis.url, { clock: new FakeClock(1_000_000_000) });
  await Promise.all([ahead.ready, behind.ready]);
  const one = conditionalHit({ limit: sliceLimit(2, HOUR_MS) });
  const answers = [];
  for (const cache of [ahead, behind, ahead, behind]) answers.push(...await taken(cache, [one]));
  assertEquals(grantedAndUsed(answers), [[true, 1], [true, 2], [false, 2], [false, 2]]);
  for (const { retryMs } of answers.slice(2)) {
    assertEquals(retryMs > HOUR_MS / 2 && retryMs <= HOUR_MS * 17 / 16, true, `${retryMs}`);
  }
});

const FORBIDDEN = {
  "a user without scripts": ["--user", "default", "on", "nopass", "~*", "&*", "+@all", "-@scripting"],
  "a server that has renamed the commands": [
    "--rename-command",
    "EVALSHA",
    "",
    "--rename-command",
    "EVAL",
    "",
  ],
};

for (const [name, args] of Object.entries(FORBIDDEN)) {
  testRedis(`kv takes: ${name} fails them with the server's words, and counts all others`, async (redis) => {
    await using cache = openKvCache(redis.url);
    await cache.ready;
    const fixed = hit();
    const [refused, counts] = await Promise.all([
      assertRejects(() => taken(cache, [conditionalHit()])),
      takeCounts(cache, [fixed]),
    ]);
    assertMatch(refused.message, /^Cannot query key-value cache ".*": (?:NOPERM|ERR unknown command)/);
    assertEquals([counts, await takeCounts(cache, [fixed])], [[1], [2]]);
  }, { args });
}

testRedis("kv takes: a server that does not answer in time fails them for a while", async (redis) => {
  await using cache = openKvCache(redis.url, { timeoutMs: 100 });
  await cache.ready;
  redis.pause();
  const calls = [taken(cache, [conditionalHit()]), taken(cache, [conditionalHit()])];
  for (const call of calls) {
    assertMatch(
      (await assertRejects(() => call)).message,
      /^Cannot query key-value cache ".*": no answer within 100 ms$/,
    );
  }
  redis.resume();
  const answer = () => taken(cache, [conditionalHit()]).catch(() => []);
  await until("the server is asked again", async () => (await answer())[0]?.used === 1);
});

testRedis("kv takes: counters that were seen before are one call", async (redis) => {
  await using cache = openKvCache(redis.url);
  await cache.ready;
  const limit = bucketLimit({ burst: 5, hitsPerUnit: 1, unitSeconds: 86_400 });
  const counters = Array.from({ length: 30 }, () => cache.counterOf(conditionalHit({ limit })));
  const used = async () => (await Promise.all(counters.map((counter) => take(counter, 1)))).map(usedOf);
  assertEquals(await used(), counters.map(() => 1));
  await redis.command("CONFIG", "RESETSTAT");
  assertEquals(await used(), counters.map(() => 2));
  const statistics = await redis.command("INFO", "commandstats");
  assertEquals(["evalsha", "mget", "setex"].map((name) => callsOf(statistics, name)), [1, 1, 30]);
  await redis.command("FLUSHALL");
  assertEquals(await used(), counters.map(() => 1));
});

testRedis(
  "kv takes: behind a proxy that sends a command to the server of its first key, all hits count",
  async (redis) => {
    await using other = await startRedis();
    await using proxy = await ScriptedCache.listen((answer) => {
      const reader = new RespReader();
      let last = Promise.resolve();
      return (bytes) =>
        reader.read(bytes, (command) => {
          const [name = "", ...args] = Array.isArray(command) ? command.map(String) : [];
          const key = name.startsWith("EVAL") ? args[2] : args[0];
          const { port } = slotOf(key ?? "") % 2 === 0 ? redis : other;
          // One character of the reader is a byte.
          const parts = args.map((part) => Uint8Array.from(part, (byte) => byte.charCodeAt(0)));
          const reply = name === "INFO"
            ? [new ReplyError("ERR unknown")]
            : redisReplies([[name, ...parts]], { port });
          last = Promise.all([reply, last]).then(([[one]]) => answer(respOf(one)));
        });
    });
    await using cache = openKvCache(proxy.url);
    await cache.ready;
    const limit = sliceLimit(1_000, HOUR_MS);
    const counters = Array.from({ length: 20 }, () => cache.counterOf(conditionalHit({ limit })));
    for (let round = 1; round <= 6; round++) {
      const counts = await Promise.all(counters.map((counter) => take(counter, 1)));
      assertEquals(counts.map(usedOf), counters.map(() => round));
    }
  },
);

/** A reply in the form of the protocol. */
function respOf(reply: unknown): string {
  if (Array.isArray(reply)) return `*${reply.length}\r\n${reply.map(respOf).join("")}`;
  if (reply instanceof Error) return `-${reply.message}\r\n`;
  if (typeof reply === "number") return `:${reply}\r\n`;
  return reply === null ? "$-1\r\n" : `$${String(reply).length}\r\n${reply}\r\n`;
}

function usedOf(count: Counted): number {
  return typeof count === "number" ? count : count.used;
}

testKv("kv takes: a counter that is none of ours fails its own hits only", async (redis) => {
  await using cache = openKvCache(redis.url);
  await cache.ready;
  const bad = conditionalHit({ key: "not_ours" });
  await redis.command("SET", bad.key, "5");
  const told = await outcomes(takeHits(cache, [conditionalHit(), bad, conditionalHit()]));
  assertEquals(told.map((outcome) => typeof outcome), ["object", "string", "object"]);
  assertEquals(await redis.command("GET", bad.key), "5");
});

Deno.test({
  ...needs(
    ["redis-server"],
    "kv takes: in a cluster they follow moved slots, and new nodes learn the scripts",
  ),
  async fn() {
    await using cluster = await startRedisCluster();
    await using cache = openKvCluster(cluster.nodes.map(({ port }) => port));
    await cache.ready;
    const hits = Array.from({ length: 30 }, () => conditionalHit({ limit: sliceLimit(1_000, HOUR_MS) }));
    const used = async () => (await taken(cache, hits)).map((taken) => taken.used);
    assertEquals(await used(), hits.map(() => 1));
    const [moving] = hits;
    if (moving === undefined) throw new Error("There are no hits");
    const slot = slotOf(moving.key);
    const from = await cluster.ownerOf(slot);
    const to = (from + 1) % 3;
    let round = 1;
    const seen: number[][] = [];
    await cluster.moveSlot(slot, to, async (step) => {
      if (step === "emptied") await cluster.nodes[to]?.command("SCRIPT", "FLUSH");
      seen.push(await used());
      round++;
    });
    assertEquals(seen, [2, 3, 4].map((count) => hits.map(() => count)));
    await cache.remove(hits.map(({ key }) => key));
    assertEquals(await used(), hits.map(() => 1));
    assertEquals(round, 4);
  },
});
