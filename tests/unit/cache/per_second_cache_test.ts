import { assertEquals, assertRejects } from "#assert";
import { PerSecondCache } from "../../../src/cache/per_second_cache.ts";
import type { AnyHit } from "../../../src/ratelimit/decision/counter_cache.ts";
import { CacheError } from "../../../src/ratelimit/errors.ts";
import { takeHits } from "../../../src/ratelimit/decision/take_hits.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import { type CallAnswers, CallCache } from "../../harness/call_cache.ts";
import { outcomes } from "../../harness/take.ts";

/** Counts up by one per hit, from a first count, or fails with an error; immediately or later. */
class NumberedCache extends CallCache {
  readonly asked: string[] = [];
  readonly #first: number | Error;
  readonly #isLater: boolean;

  constructor(first: number | Error, isLater: boolean) {
    super();
    this.#first = first;
    this.#isLater = isLater;
  }

  override answer(hits: readonly AnyHit[]): CallAnswers | Promise<CallAnswers> {
    this.asked.push(...hits.map(({ key }) => key));
    const first = this.#first;
    const answers = hits.map((_, index) => first instanceof Error ? first : first + index);
    return this.#isLater ? Promise.resolve(answers) : answers;
  }

  override async remove(keys: readonly string[]): Promise<void> {
    this.asked.push(`remove ${keys.join(" ")}`);
    if (this.#first instanceof Error) throw this.#first;
    await Promise.resolve();
  }

  override async close(): Promise<void> {
    this.asked.push("close");
    if (this.#first instanceof Error) throw this.#first;
    await Promise.resolve();
  }
}

function pair(main: number | Error, perSecond: number | Error, isLater = false) {
  const caches = { main: new NumberedCache(main, isLater), perSecond: new NumberedCache(perSecond, false) };
  return { ...caches, cache: new PerSecondCache(caches) };
}

const MIXED = [
  hit({ key: "second", perSecond: true }),
  hit({ key: "year" }),
  hit({ key: "burst", perSecond: true }),
];
const NO_A = new CacheError("kv", 'Cannot query key-value cache "a:1": no connection');
const NO_B = new CacheError("kv", 'Cannot query key-value cache "b:2": no connection');

for (const isLater of [false, true]) {
  Deno.test(`per-second cache: each hit is counted in its cache; one answers later: ${isLater}`, async () => {
    const { cache, main, perSecond } = pair(10, 1, isLater);
    // Hits of other calls are between these.
    assertEquals(await outcomes(takeHits(cache, MIXED.slice(0, 1))), [1]);
    assertEquals(await outcomes(takeHits(cache, MIXED.slice(1, 2))), [10]);
    assertEquals([main.asked, perSecond.asked], [["year"], ["second"]]);
  });
}

Deno.test("per-second cache: a failure is that of its hits", async () => {
  const { cache } = pair(NO_A, 1);
  assertEquals(await outcomes(takeHits(cache, MIXED.slice(0, 1))), [1]);
  assertEquals(await outcomes(takeHits(cache, MIXED.slice(1, 2))), [NO_A.message]);
});

Deno.test("per-second cache: keys are removed from both, also when one fails", async () => {
  const good = pair(1, 1);
  await good.cache.remove(["a", "b"]);
  assertEquals([good.main.asked, good.perSecond.asked], [["remove a b"], ["remove a b"]]);
  const bad = pair(NO_A, NO_B);
  const error = await assertRejects(() => bad.cache.remove(["a"]));
  assertEquals([error.message, bad.perSecond.asked], [`${NO_A.message}; ${NO_B.message}`, ["remove a"]]);
});

Deno.test("per-second cache: both are closed, also when one throws", async () => {
  const fault = new Error("no");
  for (const { main, perSecond, cache } of [pair(fault, 1), pair(1, fault)]) {
    assertEquals(await assertRejects(() => cache.close()), fault);
    assertEquals([main.asked, perSecond.asked], [["close"], ["close"]]);
  }
});
