import { assertEquals, assertRejects } from "#assert";
import { type KvCommands, KvQuotaShares } from "../../../src/cache/kv/quota_shares.ts";
import { QUOTA_SCRIPT } from "../../../src/cache/kv/scripts/quota.ts";
import { OVER_MS } from "../../../src/quota/member.ts";
import { LEASE_MS, type QuotaNeed } from "../../../src/quota/quota_shares.ts";
import { testRedis } from "../../harness/kv_bed.ts";
import { openKvCache, openKvCluster } from "../../harness/open_kv.ts";
import { exchangePart, type QuotaHash } from "../../harness/quota_share_script.ts";
import { redisCommands } from "../../harness/redis_command.ts";
import { startRedisCluster } from "../../harness/redis_cluster.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { needs } from "../../harness/tools.ts";

const HISTORIES = 200;
const STEPS = 40;
/** The script with its time in the last two arguments. */
const TIMED = QUOTA_SCRIPT.replace("redis.call('TIME')", "{ARGV[7], ARGV[8]}")
  // Its life is measured by the clock of the server.
  .replace("redis.call('PEXPIRE', key, lease + over)", "");

testRedis("kv quotas: the script divides as its model does", async ({ port }) => {
  const seed = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  const random = seededRandom(seed);
  const pick = (below: number) => Math.floor(random() * below);
  for (let history = 0; history < HISTORIES; history++) {
    let hash: QuotaHash = { parts: new Map(), unknownUntil: 0 };
    let now = 1_700_000_000_000;
    const key = `quota_${history}`;
    const steps = Array.from({ length: STEPS }, () => {
      now += pick(pick(8) === 0 ? 2 * LEASE_MS : 2_000);
      const instance = ["a", "b", "c"][pick(3)] ?? "a";
      const limit = pick(10) === 0 ? 50 : 100;
      const held = pick(3) === 0 ? 0 : random() * limit;
      const need: QuotaNeed = { key, isPerSecond: false, limit, demand: pick(2) * random() * 200, held };
      const { granted, hash: next } = exchangePart(hash, instance, need, now);
      hash = next;
      const time = [Math.floor(now / 1_000), (now % 1_000) * 1_000];
      const args = [instance, limit, need.demand, held, LEASE_MS, OVER_MS, ...time].map(String);
      return { granted, command: ["EVAL", TIMED, "1", key, ...args] };
    });
    const replies = await redisCommands(steps.map(({ command }) => command), { port });
    const near = (value: number) => value.toFixed(6);
    assertEquals(
      replies.map((reply) => near(Number(reply))),
      steps.map(({ granted }) => near(granted)),
      `seed ${seed}, history ${history}`,
    );
  }
});

testRedis(
  "kv quotas: two instances share a limit, and one that leaves gives its part back",
  async (redis) => {
    await using cache = openKvCache(redis.url);
    await cache.ready;
    await sharesAreGivenBack(cache);
    const key = `pre_${NEED.key}`;
    const ttl = Number(await redis.command("PTTL", key));
    assertEquals(ttl > 0 && ttl <= LEASE_MS + OVER_MS, true, `${ttl}`);
    // The script is sent again where the server has lost it.
    await redis.command("SCRIPT", "FLUSH");
    await sharesAreGivenBack(cache);
    await redis.command("DEL", key);
    await redis.command("SET", key, "no hash");
    await assertRejects(() => sharesOf(cache, "a").exchange(NEED), "WRONGTYPE");
  },
);

Deno.test({
  ...needs(["redis-server"], "kv quotas: instances share a limit by a cluster"),
  async fn() {
    await using cluster = await startRedisCluster();
    await using cache = openKvCluster(cluster.nodes.slice(0, 1).map(({ port }) => port));
    await cache.ready;
    await sharesAreGivenBack(cache);
  },
});

const NEED: QuotaNeed = { key: "shop_account_a_quota", isPerSecond: true, limit: 100, demand: 80, held: 0 };

function sharesOf(main: KvCommands, instance: string): KvQuotaShares {
  return new KvQuotaShares({ main, instance, keyPrefix: "pre_" });
}

async function sharesAreGivenBack(cache: KvCommands): Promise<void> {
  const [one, two] = [sharesOf(cache, "a"), sharesOf(cache, "b")];
  assertEquals(await one.exchange(NEED), { perSecond: 100, leaseMs: LEASE_MS });
  assertEquals((await two.exchange(NEED)).perSecond, 0);
  assertEquals((await one.exchange({ ...NEED, held: 100 })).perSecond, 50);
  assertEquals((await two.exchange(NEED)).perSecond, 0);
  await one.exchange({ ...NEED, held: 50 });
  assertEquals((await two.exchange(NEED)).perSecond, 50);
  await one.leave(NEED.key, true);
  assertEquals((await two.exchange({ ...NEED, held: 50 })).perSecond, 100);
  await two.leave(NEED.key, true);
}
