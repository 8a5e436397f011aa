import { assertEquals } from "#assert";
import { bucketLimit } from "../../src/ratelimit/algorithms/bucket.ts";
import {
  type JointLimits,
  type StateLimit,
  stateSize,
  take,
} from "../../src/ratelimit/algorithms/conditional_limit.ts";
import { sliceLimit } from "../../src/ratelimit/algorithms/slices.ts";
import type { Taken } from "../../src/ratelimit/algorithms/taken.ts";
import type { AnyHit, CounterCache } from "../../src/ratelimit/decision/counter_cache.ts";
import { seededRandom } from "../harness/seeded_random.ts";
import { taken } from "../harness/take.ts";

type Limit = JointLimits["limits"][number];

/** The facts of an adapter that a case may use. */
interface JointTraits {
  readonly stored: ((key: string) => Promise<string | undefined>) | undefined;
}

const DAY_MS = 86_400_000;
let lists = 0;

/** Windows of one rule: their keys have one hash tag, and end in different lengths. */
class Windows {
  readonly keys: readonly string[];
  readonly joint: JointLimits;

  constructor(...limits: readonly Limit[]) {
    const list = ++lists;
    this.joint = { limits };
    this.keys = limits.map((_, index) => `{joint_${list}}_${index}s_0`);
  }

  hits(addend: number, joint = this.joint): AnyHit[] {
    return this.keys.map((key, index) => {
      const limit = this.joint.limits[index] ?? 0;
      const hit = { key, addend, expiresInSeconds: 90_000, perSecond: false, joint };
      return typeof limit === "number"
        ? { ...hit, windowEnd: Math.floor(Date.now() / 1_000) + 86_400 }
        : { ...hit, limit: joint.limits[index] as StateLimit };
    });
  }
}

const SLIDING = sliceLimit(10, DAY_MS);
const BUCKET = bucketLimit({ burst: 10, hitsPerUnit: 1, unitSeconds: 86_400 });

/** For a cache that can take conditional hits: hits in several windows are taken in all of them or in none. */
export const JOINT_CASES: Readonly<
  Record<string, (cache: CounterCache, traits: JointTraits) => Promise<void>>
> = {
  async "hits in several windows are taken in all or in none, and given back in all"(cache) {
    for (const windows of [new Windows(7, 10), new Windows(7, SLIDING), new Windows(7, BUCKET)]) {
      const answers = [];
      for (const addend of [5, 3, 2, 0, 1, -4, 4, -50, 7, 0]) {
        answers.push(shortOf(await taken(cache, windows.hits(addend))));
      }
      assertEquals(answers, [
        ...["+5/2 +5/5", "-5/2 +5/5", "+7/0 +7/3", "-7/0 +7/3", "-7/0 +7/3"],
        ...["+3/4 +3/7", "+7/0 +7/3", "+0/7 +0/10", "+7/0 +7/3", "-7/0 +7/3"],
      ]);
    }
  },
  async "a later window that refuses leaves the first as it was"(cache) {
    for (const limit of [3, sliceLimit(3, DAY_MS)]) {
      const windows = new Windows(10, limit, 10);
      const answers = [await taken(cache, windows.hits(3)), await taken(cache, windows.hits(1))];
      assertEquals(answers.map(shortOf), ["+3/7 +3/0 +3/7", "+3/7 -3/0 +3/7"]);
      assertEquals(shortOf(await taken(cache, windows.hits(-1))), "+2/8 +2/1 +2/8");
    }
  },
  async "asking and giving back create no counter of a window"(cache, { stored }) {
    const windows = new Windows(10, SLIDING, BUCKET);
    for (const addend of [0, -3]) {
      assertEquals(shortOf(await taken(cache, windows.hits(addend))), "+0/10 +0/10 +0/10");
      for (const key of stored === undefined ? [] : windows.keys) {
        assertEquals(await stored?.(key), undefined);
      }
    }
  },
  async "removed windows start again"(cache) {
    const windows = new Windows(10, SLIDING, BUCKET);
    await taken(cache, windows.hits(10));
    await cache.remove(windows.keys);
    assertEquals(shortOf(await taken(cache, windows.hits(10))), "+10/0 +10/0 +10/0");
  },
  async "changed limits of windows count what was taken under the others"(cache) {
    const windows = new Windows(10, SLIDING);
    await taken(cache, windows.hits(8));
    const lower = { limits: [5, sliceLimit(9, DAY_MS)] };
    assertEquals(shortOf(await taken(cache, windows.hits(1, lower))), "-8/0 +8/1");
    assertEquals(shortOf(await taken(cache, windows.hits(1))), "+9/1 +9/1");
  },
  async "two lists and single hits of a call are answered in their order"(cache) {
    const [one, other] = [new Windows(5, SLIDING), new Windows(2, BUCKET)];
    const answers = await taken(cache, [...one.hits(3), ...other.hits(3), ...one.hits(2), ...one.hits(1)]);
    assertEquals(shortOf(answers), "+3/2 +3/7 -0/2 +0/10 +5/0 +5/5 -5/0 +5/5");
  },
  async "no window is exceeded by many calls together"(cache) {
    const windows = new Windows(20, sliceLimit(10, DAY_MS), BUCKET);
    const calls = await Promise.all(Array.from({ length: 200 }, () => taken(cache, windows.hits(1))));
    assertEquals(calls.filter((call) => call.every(({ granted }) => granted)).length, 10);
    assertEquals(shortOf(await taken(cache, windows.hits(0))), "+10/10 -10/0 -10/0");
  },
  async "hits in several windows that go out together are answered as if each had been sent"(cache) {
    const all = [new Windows(6, SLIDING), new Windows(BUCKET, 8), new Windows(7, SLIDING, BUCKET)];
    const models = all.map(({ joint }) => joint.limits.map((limit) => new WindowModel(limit)));
    const random = seededRandom(20_261_129);
    const pick = (below: number) => Math.floor(random() * below);
    for (let turn = 0; turn < 200; turn++) {
      const asks = Array.from(
        { length: 1 + pick(8) },
        () => ({ index: pick(all.length), addend: pick(9) - 3 }),
      );
      const expected = asks.map(({ index, addend }) => shortOf(takeAll(models[index] ?? [], addend)));
      const answers = await Promise.all(
        asks.map(({ index, addend }) => taken(cache, all[index]?.hits(addend) ?? [])),
      );
      assertEquals(answers.map(shortOf), expected, `turn ${turn}`);
    }
  },
};

/** The hits in one window, without a cache. */
class WindowModel {
  readonly #limit: Limit;
  readonly #state: Float64Array;
  readonly #nowUs = Date.now() * 1_000;

  constructor(limit: Limit) {
    this.#limit = limit;
    this.#state = new Float64Array(typeof limit === "number" ? 1 : stateSize(limit.kind));
  }

  take(hits: number): Pick<Taken, "granted" | "used" | "available"> {
    if (typeof this.#limit !== "number") {
      return take(this.#state, 0, this.#limit, this.#nowUs, hits);
    }
    const used = Math.max(0, (this.#state[0] ?? 0) + hits);
    this.#state[0] = used;
    return { granted: true, used, available: this.#limit - used };
  }
}

function takeAll(
  models: readonly WindowModel[],
  hits: number,
): Pick<Taken, "granted" | "used" | "available">[] {
  const looked = models.map((model) => {
    const look = model.take(0);
    return { ...look, granted: hits < 0 || Math.max(1, hits) <= look.available };
  });
  const passes = looked.every(({ granted }) => granted);
  return passes && hits !== 0 ? models.map((model) => model.take(hits)) : looked;
}

function shortOf(windows: readonly Pick<Taken, "granted" | "used" | "available">[]): string {
  return windows.map(({ granted, used, available }) => `${granted ? "+" : "-"}${used}/${available}`).join(
    " ",
  );
}
