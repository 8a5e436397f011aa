import { assertEquals, assertRejects, assertThrows } from "#assert";
import { PerSecondCache } from "../../../src/cache/per_second_cache.ts";
import type { Caller, CounterCache, Hit } from "../../../src/ratelimit/counter_cache.ts";
import { CacheError } from "../../../src/ratelimit/errors.ts";
import { hit } from "../../contract/counter_cache_contract.ts";

/** What a scripted cache answers: counts at once, counts later, or an error at once or later. */
type Script = number[] | Promise<number[]> | Error;
type Counts = readonly (number | undefined)[];

/** A cache that notes what it is asked and answers what it is told to. */
class ScriptedCache implements CounterCache {
  readonly asked: (readonly [method: string, ...rest: unknown[]])[] = [];
  #answer: Script;

  constructor(answer: Script = []) {
    this.#answer = answer;
  }

  add(hits: readonly Hit[], caller?: Caller): number[] | Promise<number[]> {
    this.asked.push(["add", hits, caller]);
    return this.#counts();
  }

  read(hits: readonly Hit[], caller?: Caller): number[] | Promise<number[]> {
    this.asked.push(["read", hits, caller]);
    return this.#counts();
  }

  async remove(keys: readonly string[]): Promise<void> {
    this.asked.push(["remove", keys]);
    await this.#counts();
  }

  close(): Promise<void> {
    this.asked.push(["close"]);
    if (this.#answer instanceof Error) throw this.#answer;
    return Promise.resolve();
  }

  #counts(): number[] | Promise<number[]> {
    if (this.#answer instanceof Error) throw this.#answer;
    return this.#answer;
  }
}

function pair(main: Script, perSecond: Script) {
  const caches = { main: new ScriptedCache(main), perSecond: new ScriptedCache(perSecond) };
  return { ...caches, cache: new PerSecondCache(caches) };
}

const [YEAR, DAY, SECOND, BURST] = [
  hit({ key: "year" }),
  hit({ key: "day" }),
  hit({ key: "second", perSecond: true }),
  hit({ key: "burst", perSecond: true }),
];
const MIXED = [SECOND, YEAR, DAY, BURST];

Deno.test("per-second cache: a single hit goes to its cache, if both take single hits", () => {
  const { main, perSecond, cache } = pair([], []);
  assertEquals(cache.addOne, undefined);
  const counted: string[] = [];
  const both = new PerSecondCache({
    main: Object.assign(main, { addOne: ({ key }: Hit) => void counted.push(`main ${key}`) }),
    perSecond: Object.assign(perSecond, {
      addOne: ({ key }: Hit) => void counted.push(`per second ${key}`),
    }),
  });
  for (const one of MIXED) both.addOne?.(one, undefined, { counted: () => {}, failed: () => {} });
  assertEquals(counted, ["per second second", "main year", "main day", "per second burst"]);
});
const CALLER: Caller = { cancelled: false };

const no = (where: string, counts: Counts = []) =>
  new CacheError("kv", `Cannot query key-value cache "${where}": no connection`, { counts });
const NO_A = 'Cannot query key-value cache "a:1": no connection';
const NO_B = 'Cannot query key-value cache "b:2": no connection';
/** Settled by the time that somebody waits, and no rejection that nobody saw. */
const later = (answer: number[] | Error) => {
  const promise = answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  promise.catch(() => {});
  return promise;
};

/** Not a copy. */
function assertSame(actual: unknown, expected: unknown): void {
  assertEquals(Object.is(actual, expected), true, `${actual} is not ${expected}`);
}

for (const method of ["add", "read"] as const) {
  Deno.test(`per-second cache: ${method} gives each hit to one cache, and the counts back in order`, () => {
    const { cache, main, perSecond } = pair([10, 20], [1, 2]);
    assertEquals(cache[method](MIXED, CALLER), [1, 10, 20, 2]);
    assertEquals([main.asked, perSecond.asked], [
      [[method, [YEAR, DAY], CALLER]],
      [[method, [SECOND, BURST], CALLER]],
    ]);
  });

  Deno.test(`per-second cache: ${method} of hits that are all of one kind goes straight through`, async () => {
    const [counts, failure] = [later([7, 8]), no("a:1", [undefined, 5])];
    const cases = [[[YEAR, DAY], "main", "perSecond"], [[SECOND, BURST], "perSecond", "main"]] as const;
    for (const [hits, asked, spared] of cases) {
      const caches = pair(counts, counts);
      assertSame(caches.cache[method](hits, CALLER), counts);
      assertSame(caches[asked].asked[0]?.[1], hits);
      assertEquals(caches[spared].asked, []);
      const failing = pair(failure, failure);
      assertSame(assertThrows(() => failing.cache[method](hits)), failure);
    }
    await counts;
  });
}

Deno.test("per-second cache: no hits at all have no counts", () => {
  const { cache, perSecond } = pair([], []);
  assertEquals([cache.add([]), perSecond.asked], [[], []]);
});

Deno.test("per-second cache: both are asked before either has answered", async () => {
  const answers = [Promise.withResolvers<number[]>(), Promise.withResolvers<number[]>()] as const;
  const { cache, main, perSecond } = pair(answers[0].promise, answers[1].promise);
  const counts = cache.add(MIXED);
  assertEquals([main.asked.length, perSecond.asked.length], [1, 1]);
  answers[1].resolve([1, 2]);
  answers[0].resolve([10, 20]);
  assertEquals(await counts, [1, 10, 20, 2]);
});

Deno.test("per-second cache: an answer at once waits for one that comes later", async () => {
  assertEquals(await pair([10, 20], later([1, 2])).cache.add(MIXED), [1, 10, 20, 2]);
  assertEquals(await pair(later([10, 20]), [1, 2]).cache.add(MIXED), [1, 10, 20, 2]);
});

const FAILURES: readonly [
  name: string,
  main: () => Script,
  perSecond: () => Script,
  text: string,
  counts: Counts,
][] = [
  ["main", () => no("a:1"), () => [1, 2], NO_A, [1, undefined, undefined, 2]],
  ["main, later", () => later(no("a:1")), () => later([1, 2]), NO_A, [1, undefined, undefined, 2]],
  ["per second", () => [10, 20], () => no("b:2"), NO_B, [undefined, 10, 20, undefined]],
  [
    "per second, later",
    () => [10, 20],
    () => later(no("b:2")),
    NO_B,
    [undefined, 10, 20, undefined],
  ],
  ["main, in part", () => no("a:1", [undefined, 20]), () => [1, 2], NO_A, [1, undefined, 20, 2]],
  ["both", () => later(no("a:1")), () => no("b:2"), `${NO_A}; ${NO_B}`, []],
  [
    "both, each in part",
    () => later(no("a:1", [10])),
    () => later(no("b:2", [undefined, 2])),
    `${NO_A}; ${NO_B}`,
    [undefined, 10, undefined, 2],
  ],
];

for (const [name, main, perSecond, text, counts] of FAILURES) {
  Deno.test(`per-second cache: a failure of ${name}`, async () => {
    const { cache } = pair(main(), perSecond());
    const error = await assertRejects(async () => await cache.add(MIXED));
    const told = error instanceof CacheError ? [error.backend, error.message, error.counts] : error;
    assertEquals(told, ["kv", text, counts]);
  });
}

Deno.test("per-second cache: a fault of a cache goes on as it is", async () => {
  const fault = new TypeError("a fault");
  for (const other of [() => [1, 2], () => later(no("b:2")), () => no("b:2")]) {
    for (const { cache } of [pair(fault, other()), pair(later(fault), other()), pair(other(), fault)]) {
      assertSame(await assertRejects(async () => await cache.add(MIXED)), fault);
    }
  }
});

Deno.test("per-second cache: keys are removed from both, also when one fails", async () => {
  const good = pair([], []);
  await good.cache.remove(["a", "b"]);
  assertEquals([good.main.asked, good.perSecond.asked], [[["remove", ["a", "b"]]], [["remove", ["a", "b"]]]]);
  const bad = pair(no("a:1"), no("b:2"));
  const error = await assertRejects(() => bad.cache.remove(["a"]));
  assertEquals([error.message, bad.perSecond.asked], [`${NO_A}; ${NO_B}`, [["remove", ["a"]]]]);
});

Deno.test("per-second cache: both are closed, also when one throws", async () => {
  for (const [main, perSecond] of [[new Error("no"), []], [[], new Error("no")]] as const) {
    const caches = pair(main instanceof Error ? main : [], perSecond instanceof Error ? perSecond : []);
    assertEquals((await assertRejects(() => caches.cache.close())).message, "no");
    assertEquals([caches.main.asked, caches.perSecond.asked], [[["close"]], [["close"]]]);
  }
});
