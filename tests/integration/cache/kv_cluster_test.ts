import { assertEquals } from "#assert";
import type { KvCluster, KvClusterOptions } from "../../../src/cache/kv/cluster/cluster.ts";
import { slotOf } from "../../../src/cache/kv/cluster/slots.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import { freePort } from "../../harness/free_port.ts";
import { runExpiryFaults } from "../../harness/kv_expiry_faults.ts";
import { openKvCluster } from "../../harness/open_kv.ts";
import { type RedisCluster, startRedisCluster } from "../../harness/redis_cluster.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { needs, toolAvailable } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { outcomes, readCounts, takeCounts } from "../../harness/take.ts";
import { takeHits } from "../../../src/ratelimit/decision/take_hits.ts";

/** One cluster for all tests that leave it as it was: it takes seconds until one can be used. */
let shared: RedisCluster | undefined;

Deno.test.beforeAll(async () => {
  if (toolAvailable("redis-server")) shared = await startRedisCluster();
});
Deno.test.afterAll(async () => await shared?.[Symbol.asyncDispose]());

function sharedCluster(): RedisCluster {
  if (shared === undefined) throw new Error("Cannot use the shared cluster: it was not started");
  return shared;
}

function portsOf(cluster: RedisCluster): number[] {
  return cluster.nodes.map(({ port }) => port);
}

/** A test with the shared cluster and a cache over it. */
function testShared(
  name: string,
  run: (cache: KvCluster, cluster: RedisCluster) => Promise<void>,
  options: Partial<KvClusterOptions> = {},
): void {
  Deno.test({
    ...needs(["redis-server"], name),
    async fn() {
      const cluster = sharedCluster();
      await using cache = openKvCluster(portsOf(cluster), options);
      await cache.ready;
      await run(cache, cluster);
    },
  });
}

/** Counters that are to be there at the end of a test are kept for so many seconds. */
const LONG_S = 3_600;

let tags = 0;

/** A key whose slot the node at a position has. */
async function keyOn(cluster: RedisCluster, index: number): Promise<string> {
  for (;;) {
    const key = `key_{${++tags}}`;
    if (await cluster.ownerOf(slotOf(key)) === index) return key;
  }
}

testShared("kv cluster: an outdated table is mended, and nothing fails", async (cache, cluster) => {
  const keys = [await keyOn(cluster, 0), await keyOn(cluster, 1), await keyOn(cluster, 2)];
  const hits = keys.map((key) => hit({ key }));
  const [moving = ""] = keys;
  assertEquals(await takeCounts(cache, hits), [1, 1, 1]);
  await cluster.moveSlot(slotOf(moving), 2);
  assertEquals(await takeCounts(cache, hits), [2, 2, 2]);
  // None if the table was read again since the move.
  const moved = cache.metrics.counters.cluster_moved?.() ?? NaN;
  assertEquals(moved <= 1, true, `${moved} hits were moved`);
  assertEquals([await takeCounts(cache, hits), cache.metrics.counters.cluster_moved?.()], [[3, 3, 3], moved]);
  assertEquals([await cluster.ownerOf(slotOf(moving)), await cluster.sumOf(moving)], [2, 3]);
  await cluster.settled();
  await cluster.moveSlot(slotOf(moving), 0);
  await cluster.settled();
  await cache.remove(keys);
  assertEquals(await readCounts(cache, hits), [0, 0, 0]);
});

testShared("kv cluster: while a slot moves each key is counted where it is", async (cache, cluster) => {
  const tag = await keyOn(cluster, 0);
  const [stays, moves, starts, goes] = ["stays", "moves", "starts", "goes"].map((name) =>
    hit({ key: name + tag })
  );
  if (!stays || !moves || !starts || !goes) throw new Error("Cannot name the hits");
  assertEquals(await takeCounts(cache, [stays, moves, goes]), [1, 1, 1]);
  const seen: unknown[] = [];
  await cluster.moveSlot(slotOf(tag), 1, async (step) => {
    if (step === "open") {
      await cluster.moveKey(moves.key, 0, 1);
      await cluster.moveKey(goes.key, 0, 1);
      await cache.remove([goes.key]);
    }
    seen.push(
      step,
      await takeCounts(cache, [stays, moves, starts, { ...moves, addend: 0 }]),
      await readCounts(cache, [goes]),
    );
  });
  const steps = ["open", [2, 2, 1, 2], [0], "emptied", [3, 3, 2, 3], [0], "taken", [4, 4, 3, 4], [0]];
  assertEquals(seen, steps);
  assertEquals(await takeCounts(cache, [stays, moves, starts, goes]), [5, 5, 4, 1]);
  assertEquals(Number(await cluster.node(1).command("TTL", starts.key)) > 0, true);
  assertEquals((cache.metrics.counters.cluster_ask?.() ?? 0) >= 6, true);
  await cluster.settled();
  await cluster.moveSlot(slotOf(tag), 0);
  await cluster.settled();
});

testShared("kv cluster: many slots move under load, and no hit fails or is lost", async (cache, cluster) => {
  const tagged = await Promise.all(Array.from({ length: 16 }, () => keyOn(cluster, 0)));
  const others = await Promise.all([keyOn(cluster, 1), keyOn(cluster, 2)]);
  const hits = [...tagged, ...others].map((key) => hit({ key, expiresInSeconds: LONG_S }));
  await using load = new Load(cache, hits);
  const slots = tagged.map((key) => slotOf(key));
  for (const slot of slots) await cluster.moveSlot(slot, 1 + (slot % 2));
  // Nodes that take back what others have not yet heard to be theirs would drop its keys.
  await cluster.settled();
  for (const slot of slots) await cluster.moveSlot(slot, 0);
  await load.stop();
  await cluster.settled();
  const sums = await Promise.all(hits.map(({ key }) => cluster.sumOf(key)));
  assertEquals([load.errors, sums], [[], hits.map(({ key }) => load.answered.get(key) ?? 0)]);
  assertEquals((cache.metrics.counters.cluster_moved?.() ?? 0) > 0, true);
});

Deno.test({
  ...needs(
    ["redis-server"],
    "kv cluster: a lost primary costs its own hits only, and only until its replica serves",
  ),
  async fn() {
    await using cluster = await startRedisCluster({ replicas: true });
    const told: boolean[] = [];
    await using cache = openKvCluster(portsOf(cluster).slice(0, 3), { onConnection: (up) => told.push(up) });
    await cache.ready;
    const [lost, left] = [
      hit({ key: await keyOn(cluster, 0), expiresInSeconds: LONG_S }),
      hit({ key: await keyOn(cluster, 1), expiresInSeconds: LONG_S }),
    ];
    await takeCounts(cache, [lost, left]);
    await using onLost = new Load(cache, [lost]);
    await using onLeft = new Load(cache, [left]);
    await until("both to be counted", () => onLost.calls > 20 && onLeft.calls > 20);
    await cluster.killPrimary(0);
    await until("the loss to be felt", () => onLost.errors.length > 0);
    const both = await outcomes(takeHits(cache, [lost, left]));
    assertEquals(both.map((outcome) => typeof outcome), ["string", "number"]);
    await cluster.takeOver(0);
    await until("the replica to serve", () => onLost.sinceError > 20);
    const { length } = onLost.errors;
    const before = onLost.calls;
    await until("some more hits", () => onLost.calls > before + 200);
    await Promise.all([onLost.stop(), onLeft.stop()]);
    assertEquals([onLost.errors.length, onLeft.errors, told], [length, [], [true]]);
    assertEquals(await cluster.sumOf(left.key), (onLeft.answered.get(left.key) ?? 0) + 2);
    await until("the others to know it", async () => await cluster.ownerOf(slotOf(lost.key), 1) === 3);
    // The node that was lost comes back as a replica, and redirects clients that still ask it.
    await cluster.node(0).restartOnSamePort();
    await using late = openKvCluster(portsOf(cluster).slice(0, 1));
    await late.ready;
    const [count = 0] = await takeCounts(cache, [lost]);
    await until(
      "the hit to be sent on",
      async () => (await takeCounts(late, [lost]))[0] === Number(count) + 1,
    );
  },
});

Deno.test({
  ...needs(["redis-server"], "kv cluster: seeds without a server do no harm while one is alive"),
  async fn() {
    await using cache = openKvCluster([freePort(), freePort(), ...portsOf(sharedCluster()).slice(2)]);
    const one = hit();
    assertEquals([await takeCounts(cache, [one]), await takeCounts(cache, [one])], [[1], [2]]);
  },
});

testShared(
  "kv cluster: under faults and moving slots every key has an expiry in the end",
  async (cache, cluster) => {
    const slot = slotOf("faults_0");
    let turns = 0;
    await runExpiryFaults({
      cache,
      primaries: () => cluster.nodes,
      failover: () => cluster.moveSlot(slot, turns++ % 3),
      rounds: 10,
      random: seededRandom(20_261_124),
    });
    await cluster.settled();
  },
  { timeoutMs: 200 },
);

Deno.test({
  ...needs(["redis-server"], "kv slots: every key has the slot that a server gives it"),
  async fn() {
    const redis = sharedCluster().node(0);
    const random = seededRandom(31);
    const letters = ["a", "Z", "_", "{", "}", "ä", "値", "😀", " ", "\r\n", '"', "\u0000", "9", "\ud800"];
    const keys = Array.from({ length: 150 }, () => {
      return Array.from({ length: random() * 12 }, () => letters[Math.floor(random() * letters.length)]).join(
        "",
      );
    });
    for (const key of ["{}a", "{a", "a}", "}{a}", "{{a}}", "{a}{b}", "{ä}", ...keys]) {
      assertEquals([key, slotOf(key)], [key, Number(await redis.command("CLUSTER", "KEYSLOT", key))]);
    }
  },
});

/** Calls that never stop: several at a time, each with one hit on each of the keys in turn. */
class Load implements AsyncDisposable {
  /** Sums of the answers by key. */
  readonly answered = new Map<string, number>();
  readonly errors: string[] = [];
  calls = 0;
  /** Calls that went well since the last error. */
  sinceError = 0;
  #stopped = false;
  readonly #workers: Promise<void>[];

  constructor(cache: KvCluster, hits: readonly ReturnType<typeof hit>[]) {
    this.#workers = Array.from({ length: 4 }, (_, worker) => this.#work(cache, hits, worker));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#workers);
  }

  /** Stops it where a test has failed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #work(cache: KvCluster, hits: readonly ReturnType<typeof hit>[], worker: number): Promise<void> {
    for (let turn = worker; !this.#stopped; turn++) {
      const some = [turn, turn + 7, turn + 13].flatMap((at) => hits[at % hits.length] ?? []);
      const asked = hits.length === 1 ? some.slice(0, 1) : some;
      try {
        await takeCounts(cache, asked);
        for (const { key } of asked) this.answered.set(key, (this.answered.get(key) ?? 0) + 1);
        this.sinceError++;
      } catch (error) {
        this.errors.push(String(error));
        this.sinceError = 0;
      }
      this.calls++;
      // A call that fails immediately must not keep everything else from happening.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}
