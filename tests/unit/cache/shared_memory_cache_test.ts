import { assertEquals } from "#assert";
import { setImmediate } from "node:timers/promises";
import { SharedMemoryCache } from "../../../src/cache/shared_memory_cache.ts";
import { SharedCell } from "../../../src/cache/shared_cells.ts";
import { SharedPlaces } from "../../../src/cache/shared_places.ts";
import type { Hit } from "../../../src/ratelimit/counter_cache.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

const END = 1_700_000_060;
const hit = (key: string, addend = 1): Hit => {
  return { key, addend, windowEnd: END, expiresInSeconds: 60, perSecond: false };
};

/** Counters, and another thread that knows their places. */
function bed() {
  const clock = new FakeClock();
  const cache = new SharedMemoryCache({ maxKeys: 100_000, clock });
  const questions: string[] = [];
  const places = new SharedPlaces(cache.cells, (asked) => {
    questions.push(...asked.map(({ key }) => key));
    places.take(cache.share(asked));
  });
  /** Lets the question be sent. */
  const learn = async (key: string) => {
    places.placeOf(hit(key));
    await setImmediate();
    return places.placeOf(hit(key));
  };
  return { clock, cache, places, questions, learn };
}

Deno.test("shared counters: two threads add to one within its limit", async () => {
  const { cache, learn, questions } = bed();
  cache.add([hit("a", 3)]);
  const place = await learn("a");
  assertEquals([place?.addWithin(5, 1), cache.add([hit("a")]), place?.addWithin(5, 1)], [4, [5], undefined]);
  assertEquals([cache.add([hit("a", 4)]), place?.addWithin(5, 1)], [[9], undefined]);
  assertEquals([cache.read([hit("a")]), questions, cache.size], [[9], ["a"], 1]);
  await cache.close();
});

Deno.test("shared counters: one that was removed is not known any more, and can be learned again", async () => {
  const { cache, learn, places } = bed();
  cache.add([hit("a", 3)]);
  const place = await learn("a");
  await cache.remove(["a"]);
  cache.add([hit("b", 5)]);
  const other = await learn("b");
  assertEquals([place?.addWithin(9, 1), places.placeOf(hit("a"))], [undefined, undefined]);
  assertEquals([other?.addWithin(9, 1), cache.read([hit("a"), hit("b")])], [6, [0, 6]]);
  cache.add([hit("a")]);
  assertEquals((await learn("a"))?.addWithin(9, 1), 2);
  await cache.close();
});

Deno.test("shared counters: a counter without hits has no place", async () => {
  const { cache, learn } = bed();
  assertEquals(await learn("a"), undefined);
  await cache.close();
});

Deno.test("shared counters: when all cells are taken, those of windows that are over are used again", async () => {
  const { clock, cache, learn } = bed();
  const keys = Array.from({ length: cache.cells.length }, (_, index) => `k${index}`);
  cache.add(keys.map((key) => hit(key)));
  const first = await learn("k0");
  assertEquals(cache.share(keys.map((key) => hit(key))).filter(({ place }) => place === undefined), []);
  const later = { ...hit("later"), windowEnd: END + 60 };
  cache.add([later]);
  assertEquals(cache.share([later])[0]?.place, undefined);
  clock.advance((END * 1_000) - clock.now());
  const [answer] = cache.share([later]);
  assertEquals([answer?.place?.generation, first?.addWithin(9, 1)], [1, undefined]);
  await cache.close();
});

Deno.test("shared counters: a cell is kept until the longest of the windows that share its key is over", async () => {
  const { clock, cache, learn, places } = bed();
  const longer = { ...hit("a"), windowEnd: END + 3_600 };
  cache.add([hit("a")]);
  await learn("a");
  // This thread tells of the longer window before it uses the place for it.
  assertEquals(places.placeOf(longer), undefined);
  await setImmediate();
  const place = places.placeOf(longer);
  const fill = (windowEnd: number) => {
    const hits = Array.from({ length: cache.cells.length }, (_, index) => {
      return { ...hit(`${windowEnd} ${index}`), windowEnd };
    });
    cache.add(hits);
    return cache.share(hits).filter(({ place }) => place !== undefined).length;
  };
  assertEquals(fill(END), cache.cells.length - 1);
  clock.advance((END * 1_000) - clock.now());
  assertEquals(fill(END + 60), cache.cells.length - 1);
  assertEquals([place?.addWithin(9, 1), cache.read([longer])], [2, [2]]);
  await cache.close();
});

Deno.test("shared memory cache: a clock that is set back frees what was counted in its future, for all threads", async () => {
  const clock = new FakeClock(1_700_000_000_000);
  const cache = new SharedMemoryCache({ maxKeys: 10, clock });
  const hits = [1_699_999_980, 1_699_920_000].map((start) => ({
    ...{ key: `d_k_${start}`, addend: 1, windowEnd: start + 100_000, expiresInSeconds: 60, perSecond: false },
  }));
  cache.add(hits);
  const cells = cache.share(hits).map(({ place }) => {
    return place === undefined ? undefined : new SharedCell(cache.cells, place);
  });
  assertEquals([cells.map((cell) => cell?.count), cache.size], [[1, 1], 2]);
  // The sweeps read the clock.
  clock.advance(1_000);
  clock.aheadMs -= 3_600_000;
  clock.advance(1_000);
  assertEquals([cells.map((cell) => cell?.count), cache.size], [[undefined, 1], 1]);
  assertEquals(cache.read(hits), [0, 1]);
  await cache.close();
});
