import { assertEquals, assertRejects } from "#assert";
import type { CounterCache, Hit } from "../../src/ratelimit/decision/counter_cache.ts";
import { CONDITIONAL_CASES } from "./conditional_counter_cases.ts";
import { JOINT_CASES } from "./joint_counter_cases.ts";
import { LEASE_CASES } from "./lease_counter_cases.ts";
import { needs, type Tool } from "../harness/tools.ts";
import { seededRandom } from "../harness/seeded_random.ts";
import { readCounts, take, takeCounts } from "../harness/take.ts";

/** An adapter under test. */
interface CounterCacheFixture {
  readonly cache: CounterCache;
  /** The text that the server holds for a key, where one server can be asked for any. */
  readonly stored?: (key: string) => Promise<string | undefined>;
  /** Ends what the adapter stands on; the cache itself is closed by the suite. */
  end(): Promise<void>;
}

/** In what an adapter differs from the others. */
export interface CounterCacheTraits {
  /** Programs without which the suite is skipped. */
  readonly tools?: readonly Tool[];
  /** Keys that it cannot hold: calls with them fail with `InvalidRequestError`, and count nothing. */
  readonly refusesKey?: (key: string) => boolean;
  /**
   * A call whose keys are on several nodes asks one after the other, so that another call of the same turn
   * may overtake it: an order of calls holds for keys of one node.
   */
  readonly nodesInTurn?: boolean;
}

let keys = 0;

/** A hit on its own counter, unless a key is given. */
export function hit(part: Partial<Hit> = {}): Hit {
  const windowEnd = Math.floor(Date.now() / 1000) + 60;
  return { key: `contract_${++keys}`, addend: 1, windowEnd, expiresInSeconds: 60, perSecond: false, ...part };
}

/** The contract of counter caches: the cases are steps of one test, on one cache. */
export function counterCacheContract(
  name: string,
  open: () => Promise<CounterCacheFixture>,
  traits: CounterCacheTraits = {},
): void {
  const { tools = [] } = traits;
  Deno.test(needs(tools, `counter cache ${name}`), async (test) => {
    const fixture = await open();
    try {
      const cases = fixture.cache.isConditional
        ? { ...CASES, ...CONDITIONAL_CASES, ...LEASE_CASES, ...JOINT_CASES }
        : CASES;
      for (const [title, run] of Object.entries(cases)) {
        await test.step(title, () => run(fixture.cache, { ...traits, stored: fixture.stored }));
      }
    } finally {
      await fixture.cache.close();
      await fixture.end();
    }
  });
}

/** The facts of an adapter that a case may use. */
interface CaseTraits extends CounterCacheTraits {
  readonly stored: CounterCacheFixture["stored"] | undefined;
}

const CASES: Readonly<Record<string, (cache: CounterCache, traits: CaseTraits) => Promise<void>>> = {
  async "a new counter starts at its first hits"(cache) {
    assertEquals(await takeCounts(cache, [hit({ addend: 3 })]), [3]);
  },
  async "counts go up from call to call"(cache) {
    const one = hit();
    assertEquals([await takeCounts(cache, [one]), await takeCounts(cache, [{ ...one, addend: 4 }])], [[1], [
      5,
    ]]);
  },
  async "counts come in the order of the hits"(cache) {
    const [a, b, c] = [hit({ addend: 5 }), hit({ addend: 7 }), hit({ addend: 9 })];
    assertEquals(await takeCounts(cache, [a, b, c]), [5, 7, 9]);
    assertEquals(await takeCounts(cache, [c, a, b]), [18, 10, 14]);
  },
  async "two hits of one key in a call see successive counts"(cache) {
    const one = hit();
    assertEquals(await takeCounts(cache, [one, hit({ addend: 2 }), { ...one, addend: 10 }]), [1, 2, 11]);
  },
  async "a counter counts as often as it is used, together with others of its key"(cache) {
    const one = hit();
    const counter = cache.counterOf(one);
    const outcomes = await Promise.all([
      take(counter, 1),
      takeCounts(cache, [{ ...one, addend: 4 }]),
      take(counter, 2),
    ]);
    assertEquals(outcomes, [1, [5], 7]);
    // The adapter may keep the key in its own form.
    const other = hit({ key: `${one.key}_é` });
    const again = cache.counterOf(other);
    assertEquals([await take(again, 1), await take(again, 1)], [1, 2]);
    assertEquals(await readCounts(cache, [one, other]), [7, 2]);
  },
  async "a counter that was removed starts again"(cache) {
    const one = hit();
    const counter = cache.counterOf(one);
    assertEquals([await take(counter, 0), await take(counter, 3), await take(counter, -1)], [0, 3, 2]);
    await cache.remove([one.key]);
    assertEquals([await take(counter, 0), await take(counter, -1), await take(counter, 2)], [0, 0, 2]);
    assertEquals(await readCounts(cache, [one]), [2]);
  },
  async "zero reads and makes no counter"(cache) {
    const one = hit();
    assertEquals(await takeCounts(cache, [{ ...one, addend: 0 }]), [0]);
    await takeCounts(cache, [one]);
    assertEquals(await takeCounts(cache, [{ ...one, addend: 0 }]), [1]);
    assertEquals(await readCounts(cache, [one]), [1]);
  },
  async "reading moves nothing"(cache) {
    const [one, none] = [hit({ addend: 6 }), hit()];
    await takeCounts(cache, [one]);
    assertEquals(await readCounts(cache, [none, one]), [0, 6]);
    assertEquals(await readCounts(cache, [none, one]), [0, 6]);
  },
  async "giving back goes down and stops at zero"(cache) {
    const one = hit({ addend: 10 });
    await takeCounts(cache, [one]);
    const counts = [];
    for (const addend of [-4, -5, -5, -1]) counts.push(await takeCounts(cache, [{ ...one, addend }]));
    assertEquals(counts, [[6], [1], [0], [0]]);
    assertEquals(await takeCounts(cache, [{ ...one, addend: 2 }]), [2]);
  },
  async "giving back what was never counted makes no counter"(cache) {
    const one = hit({ addend: -3 });
    assertEquals(await takeCounts(cache, [one]), [0]);
    assertEquals(await takeCounts(cache, [{ ...one, addend: 1 }]), [1]);
  },
  async "a step down between two up"(cache) {
    const one = hit({ addend: 5 });
    assertEquals(await takeCounts(cache, [one, { ...one, addend: -3 }, { ...one, addend: 1 }]), [5, 2, 3]);
  },
  async "removed counters start again"(cache) {
    const [one, other] = [hit({ addend: 5 }), hit({ addend: 8 })];
    await takeCounts(cache, [one, other]);
    await cache.remove([one.key, "contract_never_there"]);
    assertEquals(await readCounts(cache, [one, other]), [0, 8]);
    await cache.remove([]);
  },
  async "windows of different length that share a key share its counter"(cache) {
    const minute = hit();
    const hour = { ...minute, windowEnd: minute.windowEnd + 3_540, expiresInSeconds: 3_600 };
    assertEquals(
      [await takeCounts(cache, [minute]), await takeCounts(cache, [hour]), await takeCounts(cache, [minute])],
      [[1], [2], [
        3,
      ]],
    );
  },
  async "a window of more than 30 days"(cache) {
    const seconds = 31 * 86_400;
    const month = hit({ windowEnd: Math.floor(Date.now() / 1000) + seconds, expiresInSeconds: seconds });
    assertEquals([await takeCounts(cache, [month]), await takeCounts(cache, [month])], [[1], [2]]);
    assertEquals(await readCounts(cache, [month]), [2]);
  },
  async "keys differ by each letter"(cache, { refusesKey = () => false }) {
    const names = [
      "d_k_a_0",
      "d_k_A_0",
      "d_k_ä_0",
      "d_k_à_0",
      "d_k_値_0",
      "d_k_ _0",
      "d_k__0",
      'd_k_"\r\n$_0',
    ];
    const all = names.map((key, index) => hit({ key: `contract_${++keys}_${key}`, addend: index + 1 }));
    const hits = all.filter(({ key }) => !refusesKey(key));
    for (const refused of all.filter(({ key }) => refusesKey(key))) {
      const error = await assertRejects(async () => await takeCounts(cache, [...hits, refused]));
      assertEquals(error.name, "InvalidRequestError");
    }
    const counts = hits.map(({ addend }) => addend);
    assertEquals(await takeCounts(cache, hits), counts);
    assertEquals(await readCounts(cache, hits), counts);
  },
  async "large hits are exact"(cache) {
    const one = hit({ addend: 2 ** 40 });
    await takeCounts(cache, [one]);
    assertEquals(await takeCounts(cache, [{ ...one, addend: 2 ** 40 + 1 }]), [2 ** 41 + 1]);
  },
  async "many hits at the same time lose nothing"(cache) {
    const [one, other] = [hit(), hit()];
    const calls = Array.from(
      { length: 500 },
      (_, index) => takeCounts(cache, index % 2 === 0 ? [one, other] : [one]),
    );
    const counts = (await Promise.all(calls)).map(([count]) => Number(count)).sort((a, b) => a - b);
    assertEquals(counts, Array.from({ length: 500 }, (_, index) => index + 1));
    assertEquals(await readCounts(cache, [one, other]), [500, 250]);
  },
  async "hits that go out together count exactly as if each had been sent"(cache, { stored, nodesInTurn }) {
    const onOneNode = nodesInTurn === true ? `{${hit().key}}` : "";
    const names = Array.from({ length: 5 }, () => `${hit().key}${onOneNode}`);
    const random = seededRandom(20_261_121);
    const pick = (below: number) => Math.floor(random() * below);
    const model = new Map<string, number>();
    for (let turn = 0; turn < 200; turn++) {
      const asks = Array.from(
        { length: 1 + pick(12) },
        () =>
          Array.from({ length: 1 + pick(4) }, () => hit({ key: names[pick(5)] ?? "", addend: pick(9) - 3 })),
      );
      const expected = asks.map((hits) => hits.map((one) => countIn(model, one)));
      const counts = await Promise.all(asks.map((hits) => takeCounts(cache, hits)));
      assertEquals(counts, expected, `turn ${turn}`);
    }
    for (const [key, count] of model) {
      const [read] = await readCounts(cache, [hit({ key })]);
      assertEquals([key, read], [key, count]);
      if (stored !== undefined) assertEquals([key, await stored(key)], [key, String(count)]);
    }
  },
};

/** Counts a hit in a model of the counters: none goes below zero, and giving back makes none. */
function countIn(model: Map<string, number>, { key, addend }: Hit): number {
  const before = model.get(key) ?? 0;
  const after = Math.max(0, before + addend);
  if (addend > 0 || model.has(key)) model.set(key, after);
  return after;
}
