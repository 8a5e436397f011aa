import type { Clock } from "../../../src/base/clock.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { assertEquals, assertRejects, assertThrows } from "#assert";
import { InFlightCache } from "../../../src/cache/in_flight_cache.ts";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import { CacheError } from "../../../src/ratelimit/errors.ts";
import type { Taken } from "../../../src/ratelimit/algorithms/taken.ts";
import type {
  Caller,
  ConditionalHit,
  CounterCache,
  CountReceiver,
  Hit,
} from "../../../src/ratelimit/counter_cache.ts";
import { conditionalHit } from "../../contract/conditional_counter_cases.ts";
import { countOne, hit } from "../../contract/counter_cache_contract.ts";

const TIMES = { timeoutMs: 1_000, clock: new FakeClock() };

/** A cache that answers when it is told to. */
class HeldCache implements CounterCache {
  readonly asked: { readonly verb: string; readonly hits: number; readonly caller: Caller | undefined }[] =
    [];
  readonly #answers: PromiseWithResolvers<number[]>[] = [];

  add(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    return this.#hold("add", hits, caller);
  }
  read(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    return this.#hold("read", hits, caller);
  }
  async take(hits: readonly ConditionalHit[], caller?: Caller): Promise<Taken[]> {
    const counts = await this.#hold("take", hits, caller);
    return counts.map((used) => ({ granted: true, used, available: 0, retryMs: 0, freeMs: 0 }));
  }
  remove(keys: readonly string[]): Promise<void> {
    this.asked.push({ verb: "remove", hits: keys.length, caller: undefined });
    return Promise.resolve();
  }
  close(): Promise<void> {
    this.asked.push({ verb: "close", hits: 0, caller: undefined });
    return Promise.resolve();
  }

  addOne(one: Hit, caller: Caller | undefined, receiver: CountReceiver): void {
    const answer = this.#hold("addOne", [one], caller);
    answer.then(([count = 0]) => receiver.counted(count), (error) => receiver.failed(error));
  }

  /** The oldest question that is not answered. */
  next(): PromiseWithResolvers<number[]> {
    return this.#answers.shift() ?? Promise.withResolvers();
  }

  #hold(verb: string, hits: readonly unknown[], caller: Caller | undefined): Promise<number[]> {
    this.asked.push({ verb, hits: hits.length, caller });
    const answer = Promise.withResolvers<number[]>();
    this.#answers.push(answer);
    return answer.promise;
  }
}

function open(
  maxInFlight: number,
  clock: Clock = new FakeClock(),
): { held: HeldCache; cache: InFlightCache; metrics: () => number[] } {
  const held = new HeldCache();
  const cache = new InFlightCache(held, { maxInFlight, backend: "kv", timeoutMs: 1_000, clock });
  const { counters, gauges } = cache.metrics;
  const metrics = () => [gauges["in_flight"]?.() ?? -1, counters["in_flight_refused"]?.() ?? -1];
  return { held, cache, metrics };
}

const hits = (count: number): Hit[] => Array.from({ length: count }, () => hit());
const conditionalHits = (count: number): ConditionalHit[] => {
  return Array.from({ length: count }, () => conditionalHit());
};

Deno.test("in flight: hits are counted until they are answered, or fail", async () => {
  const { held, cache, metrics } = open(10);
  const [added, read, failed] = [cache.add(hits(2)), cache.read(hits(3)), cache.add(hits(4))];
  assertEquals(metrics(), [9, 0]);
  held.next().resolve([1, 2]);
  assertEquals([await added, metrics()], [[1, 2], [7, 0]]);
  held.next().resolve([5, 6, 7]);
  assertEquals([await read, metrics()], [[5, 6, 7], [4, 0]]);
  held.next().reject(new Error("gone"));
  const error = await assertRejects(async () => await failed);
  assertEquals([error.message, metrics()], ["gone", [0, 0]]);
});

Deno.test("in flight: single hits are counted until they are answered, or fail, and are limited", async () => {
  const { held, cache, metrics } = open(2);
  const [counted, failed] = [countOne(cache, hit()), countOne(cache, hit())];
  assertThrows(() => cache.addOne?.(hit(), undefined, { counted: () => {}, failed: () => {} }));
  assertEquals(metrics(), [2, 1]);
  held.next().resolve([7]);
  assertEquals([await counted, metrics()], [7, [1, 1]]);
  held.next().reject(new Error("gone"));
  const error = await assertRejects(() => failed);
  assertEquals([error.message, metrics()], ["gone", [0, 1]]);
  assertEquals(held.asked.map(({ verb }) => verb), ["addOne", "addOne"]);
});

Deno.test("in flight: who waited may ask again at once", async () => {
  const { held, cache, metrics } = open(1);
  const first = cache.add(hits(1));
  const again = Promise.resolve(first).then(() => cache.add(hits(1)));
  held.next().resolve([1]);
  await first;
  held.next().resolve([2]);
  assertEquals([await again, metrics()], [[2], [0, 0]]);
});

const REFUSED: readonly (readonly [title: string, before: readonly number[], then: number, state: string])[] =
  [
    ["a full cache", [4], 1, "4 of at most 4"],
    ["one hit too many", [1, 2], 2, "3 of at most 4"],
    ["beside a call that is too large by itself", [9], 1, "9 of at most 4"],
  ];

for (const verb of ["add", "read", "take"] as const) {
  for (const [title, before, then, state] of REFUSED) {
    Deno.test(`in flight, ${verb}: ${title} is refused at once and not asked for`, async () => {
      const { held, cache, metrics } = open(4);
      const waiting = before.map((count) => cache.add(hits(count)));
      const inFlight = before.reduce((sum, count) => sum + count);
      const ask = () => verb === "take" ? cache.take?.(conditionalHits(then)) : cache[verb](hits(then));
      const error = assertThrows(ask);
      const { name, message, backend } = error as Error & { backend?: string };
      assertEquals(
        [name, message, backend],
        ["CacheError", `too many hits wait for the cache: ${state}`, "kv"],
      );
      assertEquals([held.asked.length, metrics()], [before.length, [inFlight, 1]]);
      for (const _ of before) held.next().resolve([]);
      await Promise.all(waiting);
      const next = ask();
      held.next().resolve([]);
      assertEquals([await next, metrics()], [[], [0, 1]]);
    });
  }
}

Deno.test("in flight: a call too many is an overload while the cache answers, and an outage while it is silent", async () => {
  const clock = new FakeClock();
  const { held, cache } = open(1, clock);
  const isOverload = () => (assertThrows(() => cache.add(hits(1))) as CacheError).isOverload;
  const seen = [];
  let waiting: Promise<unknown> = Promise.resolve(cache.add(hits(1)));
  seen.push(["before the first answer", isOverload()]);
  held.next().resolve([1]);
  await waiting;
  waiting = Promise.resolve(cache.add(hits(1)));
  clock.advance(999);
  seen.push(["behind an answer", isOverload()]);
  clock.advance(1);
  seen.push(["after a second without one", isOverload()]);
  held.next().reject(new CacheError("kv", "gone"));
  await assertRejects(() => waiting);
  const counted = countOne(cache, hit());
  seen.push(["behind a failure", isOverload()]);
  held.next().resolve([1]);
  await counted;
  waiting = Promise.resolve(cache.take?.(conditionalHits(1)));
  seen.push(["behind an answer to a single hit", isOverload()]);
  held.next().resolve([1]);
  await waiting;
  clock.advance(60_000);
  waiting = Promise.resolve(cache.add(hits(1)));
  seen.push(["after a minute without a hit", isOverload()]);
  clock.advance(1_000);
  seen.push(["a second later", isOverload()]);
  held.next().reject(new CacheError("kv", "gone"));
  await assertRejects(() => waiting);
  waiting = Promise.resolve(cache.add(hits(1)));
  seen.push(["behind its failure", isOverload()]);
  held.next().resolve([1]);
  await waiting;
  assertEquals(seen, [
    ["before the first answer", false],
    ["behind an answer", true],
    ["after a second without one", false],
    ["behind a failure", false],
    ["behind an answer to a single hit", true],
    ["after a minute without a hit", true],
    ["a second later", false],
    ["behind its failure", false],
  ]);
});

Deno.test("in flight: what is answered at once, or fails at once, never waits", async () => {
  const memory = new MemoryCache({ maxKeys: 10, clock: new FakeClock() });
  const cache = new InFlightCache(memory, { maxInFlight: 1, backend: "memory", ...TIMES });
  for (let call = 0; call < 3; call++) cache.add(hits(2));
  memory.add = () => {
    throw new TypeError("broken");
  };
  const failures = Array.from({ length: 3 }, () => assertThrows(() => cache.add(hits(1))).message);
  const [inFlight, refused] = [
    cache.metrics.gauges["in_flight"],
    cache.metrics.counters["in_flight_refused"],
  ];
  assertEquals([failures, inFlight?.(), refused?.()], [Array(3).fill("broken"), 0, 0]);
  await cache.close();
});

Deno.test("in flight: everything is handed on", async () => {
  const { held, cache } = open(4);
  const caller = { cancelled: false };
  const waiting = [cache.add(hits(1), caller), cache.read(hits(2), caller)];
  for (const _ of waiting) held.next().resolve([]);
  await Promise.all(waiting);
  await cache.remove(["a", "b", "c"]);
  await cache.close();
  assertEquals(held.asked, [
    { verb: "add", hits: 1, caller },
    { verb: "read", hits: 2, caller },
    { verb: "remove", hits: 3, caller: undefined },
    { verb: "close", hits: 0, caller: undefined },
  ]);
});

Deno.test("in flight: a caller that asks more than once has the time of one asking", async () => {
  const clock = new FakeClock();
  const { held, cache } = open(10, clock);
  const caller = { cancelled: false, since: clock.now() };
  const read = cache.read(hits(1), caller);
  clock.advance(400);
  held.next().resolve([1]);
  assertEquals(await read, [1]);
  const added = cache.add(hits(1), caller);
  clock.advance(599);
  assertEquals(clock.waiting, 1);
  clock.advance(1);
  const error = await assertRejects(async () => await added);
  assertEquals([error.name, error.message], [
    "CacheError",
    "Cannot query the cache: no response within 1000 ms",
  ]);
  held.next().resolve([2]);
});
