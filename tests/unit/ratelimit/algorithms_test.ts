import { assertEquals } from "#assert";
import { type BucketLimit, bucketLimit, MAX_BURST } from "../../../src/ratelimit/algorithms/bucket.ts";
import { type StateLimit, stateSize, take } from "../../../src/ratelimit/algorithms/conditional_limit.ts";
import { type SliceLimit, sliceLimit } from "../../../src/ratelimit/algorithms/slices.ts";
import type { Taken } from "../../../src/ratelimit/algorithms/taken.ts";
import { UNITS } from "../../../src/ratelimit/units.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

const RUNS = 2_000;
const CALLS = 60;
const START_US = 1_700_000_000_000_000;
const MILLION = 1_000_000;

/** A counter with a clock. */
class Counter<Limit extends StateLimit> {
  limit: Limit;
  nowUs = START_US;
  readonly #state: Float64Array;

  constructor(limit: Limit) {
    this.limit = limit;
    this.#state = new Float64Array(stateSize(limit.kind));
  }

  take(hits: number): Taken {
    return take(this.#state, 0, this.limit, this.nowUs, hits);
  }

  /** The answer to a question that long from now, which changes nothing. */
  later(ms: number): Taken {
    return take(this.#state.slice(), 0, this.limit, this.nowUs + ms * 1_000, 0);
  }
}

type Pick = (below: number) => number;

/** A counter of random size, whose steps of time are of the size of its windows. */
interface Sequence<Limit extends StateLimit> {
  readonly name: string;
  readonly counter: Counter<Limit>;
  readonly pick: Pick;
  step(): void;
}

/** Each run has its own seed. */
function* seeds(): Generator<{ readonly seed: number; readonly pick: Pick }> {
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = seededRandom(seed);
    yield { seed, pick: (below) => Math.floor(random() * below) };
  }
}

/** Mostly short steps, some as long as the window. */
function* slices(): Generator<Sequence<SliceLimit> & { readonly windowUs: number }> {
  for (const { seed, pick } of seeds()) {
    const limit = 1 + pick(12);
    const windowMs = [1_000, 60_000, 1_500, 86_400_000, 7][pick(5)] ?? 0;
    const windowUs = windowMs * 1_000;
    const counter = new Counter(sliceLimit(limit, windowMs));
    const step = () => {
      counter.nowUs += pick(10) === 0 ? pick(windowUs * 2) : pick(Math.ceil(windowUs / 20));
    };
    yield { name: `seed ${seed}`, counter, pick, step, windowUs };
  }
}

interface Given {
  readonly burst: number;
  readonly hitsPerUnit: number;
  readonly unitSeconds: number;
}

const UNIT_SECONDS = Object.values(UNITS).map(({ seconds }) => seconds);

/** Steps in which a few hits are refilled, and a few up to the whole bucket; `given` may be replaced. */
function* buckets(): Generator<Sequence<BucketLimit> & { given: Given }> {
  for (const { seed, pick } of seeds()) {
    const unitSeconds = (UNIT_SECONDS[pick(UNIT_SECONDS.length)] ?? 1) * (1 + pick(3));
    const given = randomBucket(pick, unitSeconds);
    const counter = new Counter(bucketLimit(given));
    const sequence = {
      name: `seed ${seed}, ${JSON.stringify(given)}`,
      given,
      counter,
      pick,
      step() {
        const { burst, hitsPerUnit, unitSeconds } = sequence.given;
        const usPerHit = unitSeconds * MILLION / hitsPerUnit;
        counter.nowUs += Math.ceil(usPerHit * (pick(20) === 0 ? pick(burst) : pick(3_000) / 1_000));
      },
    };
    yield sequence;
  }
}

function randomBucket(pick: Pick, unitSeconds: number): Given {
  const size = [10, 1_000, 4_294_967_295][pick(3)] ?? 10;
  return { burst: 1 + pick(Math.min(size, MAX_BURST)), hitsPerUnit: 1 + pick(size), unitSeconds };
}

/** Hits that are given back, many and few. */
function randomHits(pick: Pick, { burst }: Given): number {
  return pick(8) === 0 ? -1 - pick(3) : pick(4) === 0 ? 1 + pick(burst) : 1 + pick(3);
}

/** A bucket in exact arithmetic: hits times the unit in microseconds. */
class ExactBucket {
  readonly #unit: bigint;
  #rate: bigint;
  #capacity: bigint;
  #level = 0n;
  #at = BigInt(START_US);

  constructor({ burst, hitsPerUnit, unitSeconds }: Given) {
    this.#unit = BigInt(unitSeconds * MILLION);
    this.#rate = BigInt(hitsPerUnit);
    this.#capacity = BigInt(burst) * this.#unit;
  }

  /** After `moveTo`: the time until then has the rate from before. */
  reload({ burst, hitsPerUnit }: Given): void {
    this.#rate = BigInt(hitsPerUnit);
    this.#capacity = BigInt(burst) * this.#unit;
  }

  moveTo(nowUs: number): void {
    const level = this.#level - (BigInt(nowUs) - this.#at) * this.#rate;
    this.#level = level < 0n ? 0n : level;
    this.#at = BigInt(nowUs);
  }

  add(hits: number): void {
    const level = this.#level + BigInt(hits) * this.#unit;
    this.#level = level < 0n ? 0n : level;
  }

  /** Hits that would pass, with fractions. */
  get room(): number {
    return Number(this.#capacity - this.#level) / Number(this.#unit);
  }
}

for (const [kind, sequences] of Object.entries({ slices, buckets })) {
  Deno.test(`${kind}: one hit passes after the announced wait and not earlier, and then all is free`, () => {
    for (const { name, counter, pick, step } of sequences()) {
      const { limit } = counter;
      const most = limit.kind === "slices" ? limit.limit : limit.burst;
      for (let call = 0; call < CALLS; call++) {
        step();
        const hits = pick(4) === 0 ? most : pick(5) - 1;
        const { retryMs, freeMs, used, available } = counter.take(Math.min(hits, most));
        const context = `${name}, call ${call}`;
        assertEquals([retryMs > 0, freeMs > 0], [available === 0, used > 0], context);
        assertEquals(counter.later(retryMs).granted, true, context);
        if (retryMs > 0) assertEquals(counter.later(retryMs - 1).granted, false, context);
        assertEquals(counter.later(freeMs).used, 0, context);
        if (freeMs > 0) assertEquals(counter.later(freeMs - 1).used > 0, true, context);
      }
    }
  });
}

const SET_BACK = [
  ["slices", sliceLimit(3, 16_000), 34_000, 17_000_000],
  ["bucket", bucketLimit({ burst: 3, hitsPerUnit: 3, unitSeconds: 60 }), 80_000, 20_001_000],
] as const;

for (const [kind, limit, longestMs, thenUs] of SET_BACK) {
  Deno.test(`${kind}: a clock that is set back frees nothing, and blocks for no more than a unit longer`, () => {
    const counter = new Counter<StateLimit>(limit);
    counter.take(3);
    for (const backUs of [1_000_000, 15_000_000, 50_000_000, 3_600_000_000]) {
      counter.nowUs -= backUs;
      const { granted, retryMs } = counter.take(1);
      assertEquals([granted, retryMs <= longestMs], [false, true], `${backUs}`);
    }
    counter.nowUs += thenUs;
    assertEquals(counter.take(1).granted, true);
  });
}

const NOTHING = [
  ["slices", sliceLimit(0, 16_000), 17_000],
  ["bucket", bucketLimit({ burst: 0, hitsPerUnit: 0, unitSeconds: 1 }), 1_000],
] as const;

for (const [kind, limit, retryMs] of NOTHING) {
  Deno.test(`${kind}: a limit of 0 refuses everything`, () => {
    const counter = new Counter<StateLimit>(limit);
    assertEquals(counter.take(1), { granted: false, used: 0, available: 0, retryMs, freeMs: 0 });
    assertEquals(counter.take(0).granted, false);
  });
}

Deno.test("slices: no span of a window holds more than the limit, and a refusal is late by at most a sixteenth", () => {
  for (const { name, counter, pick, step, windowUs } of slices()) {
    const log: { at: number; hits: number }[] = [];
    const within = (us: number) => {
      return log.reduce((sum, { at, hits }) => at > counter.nowUs - us ? sum + hits : sum, 0);
    };
    const lateUs = 17 * counter.limit.sliceUs;
    for (let call = 0; call < CALLS; call++) {
      step();
      const hits = 1 + pick(3);
      const { granted, used, available } = counter.take(hits);
      if (granted) log.push({ at: counter.nowUs, hits });
      const context = `${name}, call ${call}`;
      assertEquals(within(windowUs) <= counter.limit.limit, true, context);
      if (!granted) assertEquals(within(lateUs) + hits > counter.limit.limit, true, context);
      assertEquals(available, counter.limit.limit - used, context);
    }
  }
});

Deno.test("slices: never more than the maximum is in flight, and lost hits free themselves after their lease", () => {
  for (const { name, counter, pick, step, windowUs: leaseUs } of slices()) {
    let running: number[] = [];
    for (let call = 0; call < CALLS * 2; call++) {
      step();
      running = running.filter((at) => at > counter.nowUs - leaseUs);
      if (running.length > 0 && pick(3) === 0) {
        running.splice(pick(running.length), 1);
        assertEquals(counter.take(-1).granted, true);
      } else if (counter.take(1).granted) running.push(counter.nowUs);
      const { used } = counter.take(0);
      const context = `${name}, call ${call}`;
      assertEquals([running.length <= counter.limit.limit, used >= running.length], [true, true], context);
    }
    counter.nowUs += leaseUs + 2 * counter.limit.sliceUs;
    assertEquals(counter.take(0).used, 0, name);
  }
});

Deno.test("slices: giving back takes from the oldest one", () => {
  const counter = new Counter(sliceLimit(4, 16_000));
  counter.nowUs = START_US - START_US % 16_000_000;
  counter.take(2);
  counter.nowUs += 8_000_000;
  counter.take(2);
  assertEquals(counter.take(-2).freeMs, 17_000);
});

Deno.test("slices: a clock that is set back by a second does not make older hits count as new", () => {
  const counter = new Counter(sliceLimit(3, 16_000));
  counter.nowUs = START_US - START_US % 16_000_000;
  const used = [];
  for (const [waitUs, hits] of [[0, 1], [14_000_000, 2], [-1_000_000, 0], [5_000_000, 0]] as const) {
    counter.nowUs += waitUs;
    used.push(counter.take(hits).used);
  }
  assertEquals(used, [1, 3, 3, 2]);
});

Deno.test("bucket: never more than the burst and the rate pass, and never less than that by a millionth", () => {
  for (const { name, given, counter, pick, step } of buckets()) {
    const exact = new ExactBucket(given);
    const lateHits = given.hitsPerUnit * counter.limit.tickUs / (given.unitSeconds * MILLION);
    let total = given.burst;
    for (let call = 0; call < CALLS; call++) {
      step();
      exact.moveTo(counter.nowUs);
      const hits = randomHits(pick, given);
      const before = exact.room;
      const { granted, used, available } = counter.take(hits);
      const context = `${name}, call ${call}`;
      if (granted) exact.add(hits);
      if (granted && hits > 0) total += hits;
      const lost = lateHits + total / MILLION;
      assertEquals(exact.room >= 0, true, context);
      if (!granted) assertEquals(hits > before - lost - 1e-6, true, context);
      const isNear = available <= exact.room + 1e-6 && available > exact.room - lost - 1.000_001;
      assertEquals([isNear, used + available, used >= 0], [true, given.burst, true], context);
    }
  }
});

Deno.test("bucket: a rate and a burst that change in the middle apply from the next call on", () => {
  for (const sequence of buckets()) {
    const { counter, pick, name } = sequence;
    const exact = new ExactBucket(sequence.given);
    // Each call may be late by a tick, at the rate of the time before it.
    let lost = sequence.given.burst / MILLION;
    // The rest of a tick before a reload has the rate after it.
    let gained = 1e-6;
    const hitsOfTick = ({ hitsPerUnit, unitSeconds }: Given) =>
      hitsPerUnit * counter.limit.tickUs / (unitSeconds * MILLION);
    for (let call = 0; call < CALLS; call++) {
      sequence.step();
      exact.moveTo(counter.nowUs);
      lost += hitsOfTick(sequence.given);
      if (pick(4) === 0) {
        sequence.given = randomBucket(pick, sequence.given.unitSeconds);
        counter.limit = bucketLimit(sequence.given);
        exact.reload(sequence.given);
        gained += hitsOfTick(sequence.given);
      }
      const hits = randomHits(pick, sequence.given);
      const before = exact.room;
      const { granted, available } = counter.take(hits);
      const context = `${name}, call ${call}`;
      if (granted) exact.add(hits);
      if (granted && hits > 0) lost += hits / MILLION;
      if (granted && hits > 0) assertEquals(exact.room >= -gained, true, context);
      if (!granted) assertEquals(hits > before - lost - 1e-6, true, context);
      assertEquals(available <= Math.max(0, exact.room) + gained, true, context);
    }
  }
});

Deno.test("bucket: a full one stays full, and an empty one empty, when a reload changes the rate", () => {
  for (const [from, to, waitS, granted] of [[100, 1, 6, true], [1, 100, 54, false]] as const) {
    const [first, second] = [from, to].map((hitsPerUnit) =>
      bucketLimit({ burst: 10, hitsPerUnit, unitSeconds: 60 })
    );
    if (first === undefined || second === undefined) continue;
    const counter = new Counter(first);
    counter.take(10);
    counter.nowUs += waitS * MILLION;
    counter.limit = second;
    assertEquals(counter.take(1).granted, granted);
  }
});

Deno.test("bucket: all numbers of the largest ones are exact", () => {
  for (const seconds of UNIT_SECONDS) {
    const limit = bucketLimit({ burst: MAX_BURST, hitsPerUnit: 7, unitSeconds: seconds });
    const { burst, partsPerHit, tickUs } = limit;
    assertEquals(Number.isSafeInteger((burst + 1) * partsPerHit), true);
    assertEquals(partsPerHit >= MILLION, true);
    assertEquals(partsPerHit * tickUs / (seconds * MILLION) < 1.000_001, true);
  }
});

Deno.test("bucket: seven hits per second are refilled without a loss", () => {
  const counter = new Counter(bucketLimit({ burst: 7, hitsPerUnit: 7, unitSeconds: 1 }));
  counter.take(7);
  let granted = 0;
  // A question at every millisecond must not lose fractions of a hit.
  for (let ms = 1; ms <= 100_000; ms++) {
    counter.nowUs += 1_000;
    if (counter.take(1).granted) granted++;
  }
  assertEquals(granted, 700);
});
