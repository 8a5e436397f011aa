import { assert, assertEquals } from "#assert";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import type { Taken } from "../../../src/ratelimit/algorithms/taken.ts";
import type { LeaseHit } from "../../../src/ratelimit/decision/counter_cache.ts";
import { countsOf, takeHits } from "../../../src/ratelimit/decision/take_hits.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { heapMegabytes } from "../../harness/garbage.ts";
import { LeaseModel } from "../../harness/lease_model.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

const NOW_MS = 1_700_000_000_000;

function leaseHit(
  key: string,
  holder: string,
  { addend = 1, leaseMs = 60_000, limit = 1_000_000 } = {},
): LeaseHit {
  return {
    key,
    holder,
    addend,
    limit: { kind: "leases", limit, leaseUs: leaseMs * 1_000 },
    expiresInSeconds: 61,
    perSecond: false,
  };
}

function take(cache: MemoryCache, hit: LeaseHit): Taken {
  const answers = takeHits(cache, [hit]);
  if (answers instanceof Promise) throw new Error("the cache answers later");
  const [taken] = countsOf(answers);
  if (taken === undefined || typeof taken === "number") throw new Error("the cache counts in windows");
  return taken;
}

interface Bed {
  readonly cache: MemoryCache;
  readonly clock: FakeClock;
}

function testLeases(name: string, maxKeys: number, run: (bed: Bed) => void | Promise<void>): void {
  Deno.test(`memory cache, leases: ${name}`, async () => {
    const clock = new FakeClock(NOW_MS);
    const cache = new MemoryCache({ maxKeys, clock });
    await run({ cache, clock });
    await cache.close();
    assertEquals(clock.waiting, 0);
  });
}

testLeases(
  "each place takes the room of a key until it is given back, or its lease ends",
  100,
  ({ cache, clock }) => {
    take(cache, leaseHit("k", "a", { addend: 3 }));
    take(cache, leaseHit("k", "b"));
    take(cache, leaseHit("other", "a", { leaseMs: 1_000 }));
    assertEquals(cache.size, 5);
    take(cache, leaseHit("k", "a", { addend: -2 }));
    assertEquals(cache.size, 3);
    clock.advance(2_000);
    assertEquals(cache.size, 2);
    clock.advance(60_000);
    assertEquals([cache.size, cache.evicted], [0, 0]);
  },
);

testLeases("asking, giving back and refused hits hold nothing", 100, ({ cache }) => {
  take(cache, leaseHit("k", "a", { addend: 0 }));
  take(cache, leaseHit("k", "a", { addend: -1 }));
  take(cache, leaseHit("k", "a", { addend: 5, limit: 4 }));
  assertEquals(cache.size, 0);
});

testLeases(
  "beyond the bound, the counter that is free first is evicted, and for no refused hit",
  4,
  ({ cache }) => {
    take(cache, leaseHit("short", "a", { leaseMs: 1_000 }));
    take(cache, leaseHit("long", "a", { addend: 3 }));
    assertEquals(take(cache, leaseHit("long", "b", { limit: 3 })).granted, false);
    assertEquals(take(cache, leaseHit("new", "b", { addend: 2, limit: 1 })).granted, false);
    assertEquals([cache.size, cache.evicted], [4, 0]);
    assertEquals(take(cache, leaseHit("long", "b")).used, 4);
    assertEquals([cache.size, cache.evicted], [4, 1]);
    // Its own counter is the only one: it starts again.
    assertEquals([take(cache, leaseHit("long", "c")).used, cache.size, cache.evicted], [1, 1, 2]);
    assertEquals([take(cache, leaseHit("long", "d", { addend: 9 })).used, cache.size], [9, 9]);
  },
);

testLeases("removed counters give their room back", 100, async ({ cache }) => {
  take(cache, leaseHit("k", "a", { addend: 30 }));
  await cache.remove(["k"]);
  assertEquals([cache.size, take(cache, leaseHit("k", "a", { addend: 0 })).used], [0, 0]);
});

const SEED = 20_261_129;

testLeases(
  "random takes, returns and ends over several keys are those of lists",
  10_000,
  ({ cache, clock }) => {
    const random = seededRandom(SEED);
    const pick = (below: number) => Math.floor(random() * below);
    const limit = 8;
    const models = Array.from({ length: 3 }, () => new LeaseModel(limit, 1_000_000));
    for (let call = 0; call < 20_000; call++) {
      if (pick(3) === 0) clock.advance(pick(pick(20) === 0 ? 2_000 : 60));
      const [index, holder, addend] = [pick(3), `h${pick(6)}`, [1, 1, 2, 0, -1, -3][pick(6)] ?? 1];
      const taken = take(cache, leaseHit(`k${index}`, holder, { addend, limit, leaseMs: 1_000 }));
      const expected = models[index]?.take(clock.now() * 1_000, holder, addend);
      assertEquals(taken, expected, `seed ${SEED}, call ${call}: ${addend} of ${holder}`);
      assertEquals(taken.used <= limit, true);
    }
    clock.advance(1_000);
    for (const index of models.keys()) {
      assertEquals(take(cache, leaseHit(`k${index}`, "x", { addend: 0, limit, leaseMs: 1_000 })).used, 0);
    }
    assertEquals([cache.size, cache.evicted], [0, 0]);
  },
);

testLeases("a million places fit into the memory that a million keys may take", 1_000_000, ({ cache }) => {
  const before = heapMegabytes();
  const id = () => `${crypto.randomUUID()}`;
  for (let index = 0; index < 200_000; index++) take(cache, leaseHit(`k${index % 100}`, id()));
  const bytes = (heapMegabytes() - before) * 2 ** 20 / 200_000;
  assertEquals([cache.size, cache.evicted], [200_000, 0]);
  assert(bytes < 350, `${bytes} bytes for each place`);
});
