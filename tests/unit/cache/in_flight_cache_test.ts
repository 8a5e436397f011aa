import type { Clock } from "../../../src/base/clock.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { assertEquals } from "#assert";
import { InFlightCache } from "../../../src/cache/in_flight_cache.ts";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import { CacheError } from "../../../src/ratelimit/errors.ts";
import type { AnyHit, Caller } from "../../../src/ratelimit/decision/counter_cache.ts";
import { errorOf, takeHits } from "../../../src/ratelimit/decision/take_hits.ts";
import { conditionalHit } from "../../contract/conditional_counter_cases.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import { type CallAnswers, CallCache } from "../../harness/call_cache.ts";
import { outcomes, takeCounts } from "../../harness/take.ts";

const TIMES = { timeoutMs: 1_000, clock: new FakeClock() };

/** A cache whose calls a test answers. */
class HeldCache extends CallCache {
  readonly asked: { readonly hits: number; readonly call: WeakKey | undefined }[] = [];
  readonly handed: string[] = [];
  readonly #answers: PromiseWithResolvers<CallAnswers>[] = [];

  override answer(hits: readonly AnyHit[], caller: Caller | undefined): Promise<CallAnswers> {
    this.asked.push({ hits: hits.length, call: caller?.call });
    const answer = Promise.withResolvers<CallAnswers>();
    this.#answers.push(answer);
    return answer.promise;
  }

  override remove(keys: readonly string[]): Promise<void> {
    this.handed.push(`remove ${keys.join(" ")}`);
    return Promise.resolve();
  }

  override close(): Promise<void> {
    this.handed.push("close");
    return Promise.resolve();
  }

  /** Answers the oldest call. */
  next(...answers: readonly (number | Error)[]): void {
    this.#answers.shift()?.resolve(answers);
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

const hits = (count: number): AnyHit[] => Array.from({ length: count }, () => hit());
const conditionalHits = (count: number): AnyHit[] => Array.from({ length: count }, () => conditionalHit());

/** The error of a call that is refused before anything is sent. */
async function refusalOf(cache: InFlightCache, asked: readonly AnyHit[]): Promise<CacheError> {
  const answers = takeHits(cache, asked);
  assertEquals(answers instanceof Promise, false, "the call is waited for");
  const error = errorOf(await answers);
  if (error instanceof CacheError) return error;
  throw new Error("the call is not refused", { cause: error });
}

Deno.test("in flight: hits are counted until they are answered, or fail", async () => {
  const { held, cache, metrics } = open(10);
  const [added, failed] = [takeCounts(cache, hits(2)), takeHits(cache, hits(4))];
  assertEquals(metrics(), [6, 0]);
  held.next(1, 2);
  assertEquals([await added, metrics()], [[1, 2], [4, 0]]);
  held.next(1, new Error("gone"), 3, 4);
  assertEquals([await outcomes(failed), metrics()], [[1, "gone", 3, 4], [0, 0]]);
});

Deno.test("in flight: who waited may ask again immediately", async () => {
  const { held, cache, metrics } = open(1);
  const again: Promise<unknown>[] = [];
  cache.counterOf(hit()).take(1, undefined, {
    counted: () => void again.push(takeCounts(cache, hits(1))),
    failed: () => {},
  });
  held.next(1);
  await settled();
  held.next(2);
  assertEquals([await again[0], metrics()], [[2], [0, 0]]);
});

const REFUSED: readonly (readonly [title: string, before: readonly number[], then: number, state: string])[] =
  [
    ["a full cache", [4], 1, "4 of at most 4"],
    ["one hit too many", [1, 2], 2, "3 of at most 4"],
    ["next to a call that is too large by itself", [9], 1, "9 of at most 4"],
  ];

for (const [kind, hitsOf] of Object.entries({ "fixed windows": hits, conditional: conditionalHits })) {
  for (const [title, before, then, state] of REFUSED) {
    Deno.test(`in flight, ${kind}: ${title} is refused as a whole and not asked for`, async () => {
      const { held, cache, metrics } = open(4);
      const waiting = before.map((count) => takeCounts(cache, hits(count)));
      const inFlight = before.reduce((sum, count) => sum + count);
      const { backend, message } = await refusalOf(cache, hitsOf(then));
      assertEquals([backend, message], ["kv", `too many hits wait for the cache: ${state}`]);
      assertEquals([held.asked.length, metrics()], [before.length, [inFlight, 1]]);
      for (const _ of before) held.next();
      await Promise.all(waiting);
      const next = takeCounts(cache, hitsOf(then));
      held.next(7);
      assertEquals([(await next)[0], metrics()], [7, [0, 1]]);
    });
  }
}

Deno.test("in flight: a call too many is an overload while the cache answers, and an outage while it is silent", async () => {
  const clock = new FakeClock();
  const { held, cache } = open(1, clock);
  const isOverload = async () => (await refusalOf(cache, hits(1))).isOverload;
  const seen: [string, boolean][] = [];
  const ask = () => takeHits(cache, hits(1));
  let waiting = ask();
  seen.push(["before the first answer", await isOverload()]);
  held.next(1);
  await waiting;
  waiting = ask();
  clock.advance(999);
  seen.push(["behind an answer", await isOverload()]);
  clock.advance(1);
  seen.push(["after a second without one", await isOverload()]);
  held.next(new CacheError("kv", "gone"));
  await waiting;
  waiting = ask();
  seen.push(["behind a failure", await isOverload()]);
  held.next(1);
  await waiting;
  clock.advance(60_000);
  waiting = ask();
  seen.push(["after a minute without a hit", await isOverload()]);
  clock.advance(1_000);
  seen.push(["a second later", await isOverload()]);
  held.next(new CacheError("kv", "gone"));
  await waiting;
  waiting = ask();
  seen.push(["behind its failure", await isOverload()]);
  held.next(1);
  await waiting;
  assertEquals(seen, [
    ["before the first answer", false],
    ["behind an answer", true],
    ["after a second without one", false],
    ["behind a failure", false],
    ["after a minute without a hit", true],
    ["a second later", false],
    ["behind its failure", false],
  ]);
});

Deno.test("in flight: what is answered immediately never waits", async () => {
  const memory = new MemoryCache({ maxKeys: 10, clock: new FakeClock() });
  const cache = new InFlightCache(memory, { maxInFlight: 1, backend: "memory", ...TIMES });
  for (let call = 0; call < 3; call++) assertEquals(takeHits(cache, hits(2)), [1, 1]);
  const [inFlight, refused] = [
    cache.metrics.gauges["in_flight"],
    cache.metrics.counters["in_flight_refused"],
  ];
  assertEquals([inFlight?.(), refused?.()], [0, 0]);
  await cache.close();
});

Deno.test("in flight: everything is handed on", async () => {
  const { held, cache } = open(4);
  const call = { cancelled: false };
  const waiting = [takeCounts(cache, hits(1), call), takeCounts(cache, hits(2), call)];
  held.next(1);
  held.next(1, 2);
  await Promise.all(waiting);
  await cache.remove(["a", "b", "c"]);
  await cache.close();
  assertEquals(held.asked, [{ hits: 1, call }, { hits: 2, call }]);
  assertEquals(held.handed, ["remove a b c", "close"]);
});

Deno.test("in flight: a caller that asks more than once has the time of one asking", async () => {
  const clock = new FakeClock();
  const { held, cache, metrics } = open(10, clock);
  const caller = { cancelled: false, since: clock.elapsed() };
  const read = takeCounts(cache, hits(1), caller);
  clock.advance(400);
  held.next(1);
  assertEquals(await read, [1]);
  const added = takeHits(cache, hits(1), caller);
  clock.advance(599);
  assertEquals(clock.waiting, 1);
  clock.advance(1);
  assertEquals(await outcomes(added), ["Cannot query the cache: no response within 1000 ms"]);
  assertEquals(metrics(), [1, 0]);
  held.next(2);
  await settled();
  assertEquals([metrics(), clock.waiting], [[0, 0], 0]);
});

/** Lets every answer arrive. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
}
