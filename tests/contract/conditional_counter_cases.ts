import { assertEquals } from "#assert";
import { type StateLimit, stateSize, take } from "../../src/ratelimit/algorithms/conditional_limit.ts";
import { bucketLimit } from "../../src/ratelimit/algorithms/bucket.ts";
import { sliceLimit } from "../../src/ratelimit/algorithms/slices.ts";
import type { Taken } from "../../src/ratelimit/algorithms/taken.ts";
import type { CounterCache, StateHit } from "../../src/ratelimit/decision/counter_cache.ts";
import { seededRandom } from "../harness/seeded_random.ts";
import { until } from "../harness/until.ts";
import { take as taking, taken } from "../harness/take.ts";

/** The facts of an adapter that a case may use. */
interface ConditionalTraits {
  readonly stored: ((key: string) => Promise<string | undefined>) | undefined;
  /** The order of calls holds for keys of one node only. */
  readonly nodesInTurn?: boolean;
}

let keys = 0;

/** A conditional hit on its own counter, unless a key is given. Its window is so long that no test lasts a part of it. */
export function conditionalHit(part: Partial<StateHit> = {}): StateHit {
  const limit = sliceLimit(10, DAY_MS);
  return {
    key: `conditional_${++keys}`,
    limit,
    addend: 1,
    expiresInSeconds: 90_000,
    perSecond: false,
    ...part,
  };
}

const DAY_MS = 86_400_000;
/** One limit of 10 of each kind. */
const LIMITS: readonly StateLimit[] = [
  sliceLimit(10, DAY_MS),
  bucketLimit({ burst: 10, hitsPerUnit: 1, unitSeconds: 86_400 }),
];

/** For a cache that can take conditional hits. */
export const CONDITIONAL_CASES: Readonly<
  Record<string, (cache: CounterCache, traits: ConditionalTraits) => Promise<void>>
> = {
  async "conditional hits are taken whole or not at all, and given back down to zero"(cache) {
    for (const limit of LIMITS) {
      const { key } = conditionalHit();
      const answers = [];
      for (const addend of [7, 4, 3, 0, 1, -4, 4, -50, 10, 0]) {
        answers.push(shortOf(...await taken(cache, [conditionalHit({ key, limit, addend })])));
      }
      const refused = "refused 10, 0 left";
      assertEquals(answers, [
        ...["granted 7, 3 left", "refused 7, 3 left", "granted 10, 0 left", refused, refused],
        ...["granted 6, 4 left", "granted 10, 0 left", "granted 0, 10 left", "granted 10, 0 left", refused],
      ], limit.kind);
    }
  },
  async "a conditional hit announces when one would pass, and when all is free"(cache) {
    const [slices, bucket] = LIMITS.map((limit) => conditionalHit({ limit, addend: 10 }));
    if (slices === undefined || bucket === undefined) return;
    const [sliced, filled] = await taken(cache, [slices, bucket]);
    // The slice that the hits are in ends at any time.
    for (const ms of [sliced?.retryMs ?? 0, sliced?.freeMs ?? 0]) {
      assertEquals(ms > DAY_MS - 1_000 && ms <= DAY_MS * 17 / 16, true, `${ms}`);
    }
    assertEquals(Math.round((filled?.retryMs ?? 0) / DAY_MS * 100), 100);
    assertEquals(Math.round((filled?.freeMs ?? 0) / DAY_MS * 100), 1_000);
  },
  async "conditional hits of one key in a call are answered one after the other"(cache) {
    const one = conditionalHit({ addend: 4 });
    const answers = await taken(cache, [one, conditionalHit(), one, { ...one, addend: -1 }, one, one]);
    assertEquals(answers.map((answer) => shortOf(answer)), [
      ...["granted 4, 6 left", "granted 1, 9 left", "granted 8, 2 left"],
      ...["granted 7, 3 left", "refused 7, 3 left", "refused 7, 3 left"],
    ]);
  },
  async "asking and giving back create no conditional counter"(cache, { stored }) {
    for (const limit of LIMITS) {
      for (const addend of [0, -3]) {
        const one = conditionalHit({ limit, addend });
        const expected = { granted: true, used: 0, available: 10, retryMs: 0, freeMs: 0 };
        assertEquals(await taken(cache, [one]), [expected]);
        if (stored !== undefined) assertEquals(await stored(one.key), undefined);
      }
    }
  },
  async "removed conditional counters start again"(cache) {
    const all = LIMITS.map((limit) => conditionalHit({ limit, addend: 10 }));
    await taken(cache, all);
    await cache.remove(all.map(({ key }) => key));
    assertEquals((await taken(cache, all)).map(({ granted }) => granted), [true, true]);
  },
  async "a changed limit counts what was taken under the other one"(cache) {
    const one = conditionalHit({ addend: 8 });
    const lower = { ...one, limit: sliceLimit(5, DAY_MS), addend: 1 };
    const answers = await taken(cache, [one, lower, { ...one, addend: 1 }]);
    assertEquals(answers.map((answer) => shortOf(answer)), [
      ...["granted 8, 2 left", "refused 8, 0 left", "granted 9, 1 left"],
    ]);
  },
  async "the time before a reload lowers the rate of a bucket is refilled at the rate from before"(cache) {
    // A tick of an hour refills less than the burst: the one in which the rate changes may have either rate.
    const fast = bucketLimit({ burst: 10, hitsPerUnit: 3_600_000, unitSeconds: 3_600 });
    const slow = bucketLimit({ burst: 10, hitsPerUnit: 1, unitSeconds: 3_600 });
    const [one, later] = [conditionalHit({ limit: fast, addend: 10 }), conditionalHit({ limit: fast })];
    await taken(cache, [one]);
    await taken(cache, [{ ...later, addend: 10 }]);
    await until("the other bucket is full", async () => {
      const [answer] = await taken(cache, [{ ...later, addend: 0 }]);
      return answer?.used === 0;
    });
    const low = { ...one, limit: slow };
    const answers = await taken(cache, [low, { ...low, addend: 1 }]);
    assertEquals(answers.map((answer) => shortOf(answer)), ["granted 10, 0 left", "refused 10, 0 left"]);
    // After a reload that raises the rate, the time before it still has the lower one.
    const [first] = await taken(cache, [{ ...one, addend: 1 }]);
    assertEquals(shortOf(first), "refused 10, 0 left");
    await until("a hit is refilled", async () => (await taken(cache, [{ ...one, addend: 1 }]))[0]?.granted);
  },
  async "large conditional hits are exact"(cache) {
    const most = 2 ** 31;
    const limits = [
      sliceLimit(most, DAY_MS),
      bucketLimit({ burst: most, hitsPerUnit: 7, unitSeconds: 86_400 }),
    ];
    for (const limit of limits) {
      const one = conditionalHit({ limit, addend: most - 1 });
      const answers = await taken(cache, [one, { ...one, addend: 2 }, { ...one, addend: 1 }]);
      assertEquals(answers.map((answer) => shortOf(answer)), [
        ...[`granted ${most - 1}, 1 left`, `refused ${most - 1}, 1 left`, `granted ${most}, 0 left`],
      ]);
    }
  },
  async "no more than the limit is taken by many calls together"(cache) {
    for (const limit of LIMITS) {
      const one = conditionalHit({ limit });
      const calls = Array.from({ length: 200 }, () => taken(cache, [one]));
      const granted = (await Promise.all(calls)).filter(([answer]) => answer?.granted === true);
      assertEquals(granted.length, 10, limit.kind);
    }
  },
  async "conditional hits that go out together are answered as if each had been sent"(
    cache,
    { nodesInTurn },
  ) {
    const onOneNode = nodesInTurn === true ? `{${conditionalHit().key}}` : "";
    const counters = Array.from({ length: 6 }, (_, index) => {
      const limit = LIMITS[index % 2] ?? sliceLimit(1, 1);
      return {
        key: `${conditionalHit().key}${onOneNode}`,
        limit,
        state: new Float64Array(stateSize(limit.kind)),
      };
    });
    const random = seededRandom(20_261_124);
    const pick = (below: number) => Math.floor(random() * below);
    const nowUs = Date.now() * 1_000;
    for (let turn = 0; turn < 200; turn++) {
      const asks = Array.from(
        { length: 1 + pick(8) },
        () => Array.from({ length: 1 + pick(4) }, () => ({ index: pick(6), addend: pick(9) - 3 })),
      );
      const expected = asks.map((hits) =>
        hits.map(({ index, addend }) => {
          const { state = new Float64Array(), limit = sliceLimit(1, 1) } = counters[index] ?? {};
          return shortOf(take(state, 0, limit, nowUs, addend));
        })
      );
      const answers = await Promise.all(
        asks.map((hits) =>
          taken(
            cache,
            hits.map(({ index, addend }) => {
              const { key = "", limit = sliceLimit(1, 1) } = counters[index] ?? {};
              return conditionalHit({ key, limit, addend });
            }),
          )
        ),
      );
      assertEquals(answers.map((each) => each.map((answer) => shortOf(answer))), expected, `turn ${turn}`);
    }
  },
  async "counters that are kept are answered as if each hit had been sent, also after some were removed"(
    cache,
  ) {
    const counters = Array.from({ length: 12 }, (_, index) => {
      const limit = LIMITS[index % 2] ?? sliceLimit(1, 1);
      const one = conditionalHit({ limit });
      const state = new Float64Array(stateSize(limit.kind));
      return { key: one.key, limit, counter: cache.counterOf(one), state };
    });
    const random = seededRandom(20_261_130);
    const pick = (below: number) => Math.floor(random() * below);
    const nowUs = Date.now() * 1_000;
    for (let turn = 0; turn < 100; turn++) {
      const asks = Array.from({ length: 1 + pick(40) }, () => {
        const { state = new Float64Array(), limit = sliceLimit(1, 1), counter } = counters[pick(12)] ?? {};
        const addend = pick(20) === 0 ? [2 ** 31, 2 ** 32, 2 ** 53][pick(3)] ?? 1 : pick(9) - 3;
        return { counter, addend, expected: shortOf(take(state, 0, limit, nowUs, addend)) };
      });
      const answers = await Promise.all(
        asks.map(({ counter, addend }) => counter && taking(counter, addend)),
      );
      const shown = answers.map((answer) => typeof answer === "number" ? `${answer}` : shortOf(answer));
      assertEquals(shown, asks.map(({ expected }) => expected), `turn ${turn}`);
      const removed = counters.filter(() => pick(20) === 0);
      await cache.remove(removed.map(({ key }) => key));
      for (const { state } of removed) state.fill(0);
    }
  },
};

function shortOf(answer?: Taken): string {
  if (answer === undefined) return "no answer";
  return `${answer.granted ? "granted" : "refused"} ${answer.used}, ${answer.available} left`;
}
