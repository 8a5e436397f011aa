import { assertEquals } from "@std/assert";
import { bucketLimit } from "../../src/ratelimit/algorithms/bucket.ts";
import { sliceLimit } from "../../src/ratelimit/algorithms/slices.ts";
import type { Taken } from "../../src/ratelimit/algorithms/taken.ts";
import type { ConditionalHit, CounterCache } from "../../src/ratelimit/counter_cache.ts";

/** So long that nothing becomes free during a test. */
const HOUR_S = 3_600;

let keys = 0;

/** A hit on its own counter, at most 10 per hour, unless other parts are given. */
export function conditionalHit(part: Partial<ConditionalHit> = {}): ConditionalHit {
  return {
    key: `taken_${++keys}_${crypto.randomUUID()}`,
    limit: sliceLimit(10, HOUR_S * 1_000),
    addend: 1,
    expiresInSeconds: 2 * HOUR_S,
    perSecond: false,
    ...part,
  };
}

/** Whether hits were granted, and how many count then. */
export function grantedAndUsed(answers: readonly Taken[]): (readonly [boolean, number])[] {
  return answers.map(({ granted, used }) => [granted, used]);
}

const LIMITS = {
  slices: sliceLimit(10, HOUR_S * 1_000),
  bucket: bucketLimit({ burst: 10, hitsPerUnit: 1, unitSeconds: HOUR_S }),
} as const;

/** A cache that takes conditional hits. */
type TakingCache = CounterCache & Required<Pick<CounterCache, "take">>;

/** Whether a cache takes conditional hits. */
export function canTake(cache: CounterCache): cache is TakingCache {
  return cache.take !== undefined;
}

/** What a cache must do that takes conditional hits. */
export const TAKE_CASES: Readonly<Record<string, (cache: TakingCache) => Promise<void>>> = {
  async "conditional hits are taken whole or not at all"(cache) {
    for (const limit of Object.values(LIMITS)) {
      const one = conditionalHit({ limit });
      const answers: Taken[] = [];
      for (const addend of [7, 4, 3, 0, 1, -4, 4, -50, 10]) {
        answers.push(...await cache.take([{ ...one, addend }]));
      }
      assertEquals(grantedAndUsed(answers), [
        [true, 7],
        [false, 7],
        [true, 10],
        [false, 10],
        [false, 10],
        [true, 6],
        [true, 10],
        [true, 0],
        [true, 10],
      ]);
    }
  },
  async "conditional hits of one call are answered one after the other"(cache) {
    const [one, bucket] = [conditionalHit(), conditionalHit({ limit: LIMITS.bucket, addend: 6 })];
    const answers = await cache.take([one, bucket, { ...one, addend: 9 }, bucket, one, {
      ...one,
      addend: 0,
    }]);
    assertEquals(grantedAndUsed(answers), [
      [true, 1],
      [true, 6],
      [true, 10],
      [false, 6],
      [false, 10],
      [false, 10],
    ]);
    assertEquals(answers.map(({ available, retryMs, freeMs }) => [available, retryMs > 0, freeMs > 0]), [
      [9, false, true],
      [4, false, true],
      [0, true, true],
      [4, false, true],
      [0, true, true],
      [0, true, true],
    ]);
  },
  async "a changed limit counts what was taken under the other one"(cache) {
    const one = conditionalHit({ addend: 8 });
    const lower = { ...one, limit: sliceLimit(5, HOUR_S * 1_000), addend: 1 };
    const answers = await cache.take([one, lower, { ...one, addend: 1 }]);
    assertEquals(grantedAndUsed(answers), [[true, 8], [false, 8], [true, 9]]);
  },
  async "removed conditional counters start again"(cache) {
    const hits = [conditionalHit({ addend: 10 }), conditionalHit({ limit: LIMITS.bucket, addend: 10 })];
    await cache.take(hits);
    await cache.remove(hits.map(({ key }) => key));
    assertEquals(grantedAndUsed(await cache.take(hits)), [[true, 10], [true, 10]]);
  },
  async "of many conditional hits at once no more pass than the limit"(cache) {
    for (const limit of Object.values(LIMITS)) {
      const one = conditionalHit({ limit });
      const answers = await Promise.all(Array.from({ length: 100 }, async () => await cache.take([one])));
      assertEquals(answers.flat().filter(({ granted }) => granted).length, 10);
    }
  },
  async "large conditional hits are exact"(cache) {
    const burst = 2 ** 31;
    const limits = [
      sliceLimit(2 ** 40, HOUR_S * 1_000),
      bucketLimit({ burst, hitsPerUnit: 7, unitSeconds: HOUR_S }),
    ];
    for (const limit of limits) {
      const most = limit.kind === "slices" ? limit.limit : limit.burst;
      const one = conditionalHit({ limit, addend: most - 1 });
      const answers = await cache.take([one, { ...one, addend: 2 }, { ...one, addend: 1 }]);
      assertEquals(grantedAndUsed(answers), [[true, most - 1], [false, most - 1], [true, most]]);
    }
  },
};
