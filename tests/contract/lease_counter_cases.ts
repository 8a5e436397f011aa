import { assertEquals } from "#assert";
import { type LeaseLimit, MAX_PLACES_OF_HOLDER } from "../../src/ratelimit/algorithms/leases.ts";
import type { Taken } from "../../src/ratelimit/algorithms/taken.ts";
import type { CounterCache, LeaseHit } from "../../src/ratelimit/decision/counter_cache.ts";
import { LeaseModel } from "../harness/lease_model.ts";
import { seededRandom } from "../harness/seeded_random.ts";
import { taken } from "../harness/take.ts";
import { until } from "../harness/until.ts";

const DAY_US = 86_400_000_000;
const SEED = 20_261_129;

let keys = 0;

/** A hit of a holder on its own counter, unless a key is given. */
function leaseHit(part: Partial<LeaseHit> = {}): LeaseHit {
  return {
    key: `lease_${++keys}`,
    limit: limitOf(10),
    holder: "a",
    addend: 1,
    expiresInSeconds: 90_000,
    perSecond: false,
    ...part,
  };
}

function limitOf(limit: number, leaseUs = DAY_US): LeaseLimit {
  return { kind: "leases", limit, leaseUs };
}

/** For a cache that can take conditional hits. */
export const LEASE_CASES: Readonly<Record<string, (cache: CounterCache) => Promise<void>>> = {
  async "places are taken whole or not at all, and given back by their holder alone"(cache) {
    const { key } = leaseHit();
    const answers = [];
    for (
      const [holder, addend] of [
        ...[["a", 7], ["b", 4], ["b", 3], ["c", 0], ["c", -5], ["a", -4], ["a", -4]],
        ...[["b", 1], ["b", -4], ["b", 1]],
      ] as const
    ) answers.push(...await taken(cache, [leaseHit({ key, holder: `${holder}`, addend: Number(addend) })]));
    assertEquals(answers.map(shortOf), [
      ...["granted 7, 3 left", "refused 7, 3 left", "granted 10, 0 left", "refused 10, 0 left"],
      ...["granted 10, 0 left", "granted 6, 4 left", "granted 3, 7 left", "granted 4, 6 left"],
      ...["granted 0, 10 left", "granted 1, 9 left"],
    ]);
  },
  async "asking and giving back create no places"(cache) {
    for (const addend of [0, -3]) {
      const expected = { granted: true, used: 0, available: 10, retryMs: 0, freeMs: 0 };
      assertEquals(await taken(cache, [leaseHit({ addend })]), [expected]);
    }
  },
  async "each place is free exactly after its lease, while others are taken and given back"(cache) {
    const limit = limitOf(3, 1_000_000);
    // On a slow machine a lease may end before the calls that are to come within it.
    await until("calls within a lease", async () => {
      const lost = leaseHit({ limit, holder: "lost", expiresInSeconds: 2 });
      await taken(cache, [lost]);
      let [answer] = await taken(cache, [{ ...lost, addend: 0 }]);
      assertEquals([answer?.used, (answer?.freeMs ?? 0) <= 1_000], [1, true]);
      let calls = 0;
      await until("the lost place is free", async () => {
        const busy = { ...lost, holder: `busy ${++calls}` };
        await taken(cache, [busy]);
        [answer] = await taken(cache, [{ ...busy, addend: -1 }]);
        return answer?.used === 0;
      });
      return calls > 1;
    });
  },
  async "a holder has a bounded number of places, of which the newest are given back first"(cache) {
    const one = leaseHit({ limit: limitOf(1_000), addend: MAX_PLACES_OF_HOLDER });
    const answers = await taken(cache, [
      one,
      { ...one, addend: 1 },
      { ...one, addend: 1, holder: "b" },
      { ...one, addend: -1 },
      { ...one, addend: 1 },
      { ...one, addend: -1_000 },
    ]);
    assertEquals(answers.map(({ granted, used }) => [granted, used]), [
      ...[[true, 100], [false, 100], [true, 101], [true, 100], [true, 101], [true, 1]],
    ]);
  },
  async "names of holders differ by each letter"(cache) {
    const names = ["", "a", "A", "1:a", ":a", "ä", "a b", "a\r\n$1", "値".repeat(80)];
    const { key } = leaseHit();
    for (const holder of names) await taken(cache, [leaseHit({ key, holder })]);
    for (const [index, holder] of names.entries()) {
      const back = leaseHit({ key, holder, addend: -1 });
      const [first, second] = await taken(cache, [back, back]);
      assertEquals([first?.used, second?.used], [names.length - index - 1, names.length - index - 1], holder);
    }
  },
  async "a changed limit counts the places that were taken under the other one"(cache) {
    const one = leaseHit({ addend: 8 });
    const lower = { ...one, limit: limitOf(5), addend: 1 };
    const answers = await taken(cache, [one, lower, { ...lower, addend: -4 }, lower]);
    assertEquals(answers.map(shortOf), [
      ...["granted 8, 2 left", "refused 8, 0 left", "granted 4, 1 left", "granted 5, 0 left"],
    ]);
  },
  async "removed places are free"(cache) {
    const one = leaseHit({ addend: 10 });
    await taken(cache, [one]);
    await cache.remove([one.key]);
    assertEquals((await taken(cache, [one])).map(shortOf), ["granted 10, 0 left"]);
  },
  async "no more places than the limit are taken by many holders together"(cache) {
    const { key } = leaseHit();
    const calls = Array.from(
      { length: 200 },
      (_, index) => taken(cache, [leaseHit({ key, holder: `${index}` })]),
    );
    const granted = (await Promise.all(calls)).filter(([answer]) => answer?.granted === true);
    assertEquals(granted.length, 10);
  },
  async "takes and returns in random order are those of a list"(cache) {
    const random = seededRandom(SEED);
    const pick = (below: number) => Math.floor(random() * below);
    // One counter: calls of one turn have an order on each node only.
    const { key } = leaseHit();
    const model = new LeaseModel(10, DAY_US);
    for (let turn = 0; turn < 200; turn++) {
      const asks = Array.from(
        { length: 1 + pick(8) },
        () =>
          Array.from({ length: 1 + pick(3) }, () =>
            leaseHit({
              key,
              holder: `h${pick(5)}`,
              addend: pick(7) - 3,
            })),
      );
      const expected = asks.map((hits) =>
        hits.map(({ holder, addend }) => shortOf(model.take(0, holder, addend)))
      );
      const answers = await Promise.all(asks.map((hits) => taken(cache, hits)));
      assertEquals(answers.map((each) => each.map(shortOf)), expected, `seed ${SEED}, turn ${turn}`);
    }
  },
};

function shortOf({ granted, used, available }: Taken): string {
  return `${granted ? "granted" : "refused"} ${used}, ${available} left`;
}
