import { assertEquals } from "@std/assert";
import {
  BUCKET_STATE_SIZE,
  type BucketLimit,
  bucketLimit,
  MAX_BURST,
  takeFromBucket,
} from "../../../../src/ratelimit/algorithms/bucket.ts";
import type { Taken } from "../../../../src/ratelimit/algorithms/taken.ts";
import { UNITS } from "../../../../src/ratelimit/limit.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";

const RUNS = 2_000;
const CALLS = 60;
const START_US = 1_700_000_000_000_000;
const MILLION = 1_000_000;

interface Given {
  readonly burst: number;
  readonly hitsPerUnit: number;
  readonly unitSeconds: number;
}

/** A bucket with a clock. */
class Bucket {
  limit: BucketLimit;
  nowUs = START_US;
  readonly #state = new Float64Array(BUCKET_STATE_SIZE);

  constructor(given: Given) {
    this.limit = bucketLimit(given);
  }

  take(hits: number): Taken {
    return takeFromBucket(this.#state, 0, this.limit, this.nowUs, hits);
  }

  /** The answer to a question that long from now, which changes nothing. */
  later(ms: number): Taken {
    return takeFromBucket(this.#state.slice(), 0, this.limit, this.nowUs + ms * 1_000, 0);
  }
}

/** The same bucket in exact arithmetic: hits times the unit in microseconds. */
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

const UNIT_SECONDS = Object.values(UNITS).map(({ seconds }) => seconds);

interface Sequence {
  readonly name: string;
  readonly given: Given;
  readonly bucket: Bucket;
  readonly pick: (below: number) => number;
}

/** Random rates, bursts and units; each run has its own seed. */
function* sequences(): Generator<Sequence> {
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = seededRandom(seed);
    const pick = (below: number) => Math.floor(random() * below);
    const size = [10, 1_000, 4_294_967_295][pick(3)] ?? 10;
    const unitSeconds = (UNIT_SECONDS[pick(UNIT_SECONDS.length)] ?? 1) * (1 + pick(3));
    const given = { burst: 1 + pick(Math.min(size, MAX_BURST)), hitsPerUnit: 1 + pick(size), unitSeconds };
    yield { name: `seed ${seed}, ${JSON.stringify(given)}`, given, bucket: new Bucket(given), pick };
  }
}

/** Steps in which a few hits are refilled, and a few up to the whole bucket. */
function step({ bucket, given, pick }: Sequence): void {
  const usPerHit = given.unitSeconds * MILLION / given.hitsPerUnit;
  bucket.nowUs += Math.ceil(usPerHit * (pick(20) === 0 ? pick(given.burst) : pick(3_000) / 1_000));
}

Deno.test("never more than the burst and the rate pass, and never less than that by a millionth", () => {
  for (const sequence of sequences()) {
    const { bucket, given, pick, name } = sequence;
    const exact = new ExactBucket(given);
    const lateHits = given.hitsPerUnit * bucket.limit.tickUs / (given.unitSeconds * MILLION);
    let total = given.burst;
    for (let call = 0; call < CALLS; call++) {
      step(sequence);
      exact.moveTo(bucket.nowUs);
      const hits = pick(8) === 0 ? -1 - pick(3) : pick(4) === 0 ? 1 + pick(given.burst) : 1 + pick(3);
      const before = exact.room;
      const { granted, used, available } = bucket.take(hits);
      const context = `${name}, call ${call}`;
      if (granted) exact.add(hits);
      if (granted && hits > 0) total += hits;
      const lost = lateHits + total / MILLION;
      assertEquals(exact.room >= 0, true, context);
      if (!granted) assertEquals(hits > before - lost - 1e-6, true, context);
      assertEquals(
        available <= exact.room + 1e-6 && available > exact.room - lost - 1.000_001,
        true,
        context,
      );
      assertEquals([used + available, used >= 0], [given.burst, true], context);
    }
  }
});

Deno.test("a rate and a burst that change in the middle apply from the next call on", () => {
  for (const sequence of sequences()) {
    const { bucket, pick, name } = sequence;
    let { given } = sequence;
    const exact = new ExactBucket(given);
    // Each call may be late by a tick, at the rate of the time before it.
    let lost = given.burst / MILLION;
    // The rest of a tick before a reload has the rate after it.
    let gained = 1e-6;
    for (let call = 0; call < CALLS; call++) {
      step({ ...sequence, given });
      exact.moveTo(bucket.nowUs);
      lost += given.hitsPerUnit * bucket.limit.tickUs / (given.unitSeconds * MILLION);
      if (pick(4) === 0) {
        const size = [10, 1_000, 4_294_967_295][pick(3)] ?? 10;
        given = { ...given, burst: 1 + pick(Math.min(size, MAX_BURST)), hitsPerUnit: 1 + pick(size) };
        bucket.limit = bucketLimit(given);
        exact.reload(given);
        gained += given.hitsPerUnit * bucket.limit.tickUs / (given.unitSeconds * MILLION);
      }
      const hits = pick(8) === 0 ? -1 - pick(3) : pick(4) === 0 ? 1 + pick(given.burst) : 1 + pick(3);
      const before = exact.room;
      const { granted, available } = bucket.take(hits);
      const context = `${name}, call ${call}`;
      if (granted) exact.add(hits);
      if (granted && hits > 0) lost += hits / MILLION;
      if (granted && hits > 0) assertEquals(exact.room >= -gained, true, context);
      if (!granted) assertEquals(hits > before - lost - 1e-6, true, context);
      assertEquals(available <= Math.max(0, exact.room) + gained, true, context);
    }
  }
});

Deno.test("a full bucket stays full, and an empty one empty, when a reload changes the rate", () => {
  const [fast, slow] = [100, 1].map((hitsPerUnit) => ({ burst: 10, hitsPerUnit, unitSeconds: 60 }));
  for (const [first, second, waitS, granted] of [[fast, slow, 6, true], [slow, fast, 54, false]] as const) {
    if (first === undefined || second === undefined) continue;
    const bucket = new Bucket(first);
    bucket.take(10);
    bucket.nowUs += waitS * MILLION;
    bucket.limit = bucketLimit(second);
    assertEquals(bucket.take(1).granted, granted);
  }
});

Deno.test("one hit passes after the announced wait and not earlier, and then the bucket is full", () => {
  for (const sequence of sequences()) {
    const { bucket, given, pick, name } = sequence;
    for (let call = 0; call < CALLS; call++) {
      step(sequence);
      const hits = pick(4) === 0 ? given.burst : pick(5) - 1;
      const { retryMs, freeMs, used, available } = bucket.take(Math.min(hits, given.burst));
      const context = `${name}, call ${call}`;
      assertEquals([retryMs > 0, freeMs > 0], [available === 0, used > 0], context);
      assertEquals(bucket.later(retryMs).granted, true, context);
      if (retryMs > 0) assertEquals(bucket.later(retryMs - 1).granted, false, context);
      assertEquals(bucket.later(freeMs).used, 0, context);
      if (freeMs > 0) assertEquals(bucket.later(freeMs - 1).used > 0, true, context);
    }
  }
});

Deno.test("all numbers of the largest buckets are exact", () => {
  for (const seconds of UNIT_SECONDS) {
    const limit = bucketLimit({ burst: MAX_BURST, hitsPerUnit: 7, unitSeconds: seconds });
    const { burst, partsPerHit, tickUs } = limit;
    assertEquals(Number.isSafeInteger((burst + 1) * partsPerHit), true);
    assertEquals(partsPerHit >= MILLION, true);
    assertEquals(partsPerHit * tickUs / (seconds * MILLION) < 1.000_001, true);
  }
});

Deno.test("seven hits per second are refilled without a loss", () => {
  const bucket = new Bucket({ burst: 7, hitsPerUnit: 7, unitSeconds: 1 });
  bucket.take(7);
  let granted = 0;
  // A question at every millisecond must not lose fractions of a hit.
  for (let ms = 1; ms <= 100_000; ms++) {
    bucket.nowUs += 1_000;
    if (bucket.take(1).granted) granted++;
  }
  assertEquals(granted, 700);
});

Deno.test("hits are taken whole or not at all, and the bucket never overflows", () => {
  const bucket = new Bucket({ burst: 10, hitsPerUnit: 1, unitSeconds: 60 });
  const calls = [7, 4, 3, 0, 1, -4, 4, -50, 10, 0];
  assertEquals(
    calls.map((hits) => {
      const { granted, used, available } = bucket.take(hits);
      return [granted, used, available];
    }),
    [
      [true, 7, 3],
      [false, 7, 3],
      [true, 10, 0],
      [false, 10, 0],
      [false, 10, 0],
      [true, 6, 4],
      [true, 10, 0],
      [true, 0, 10],
      [true, 10, 0],
      [false, 10, 0],
    ],
  );
});

Deno.test("a bucket for no hits refuses everything", () => {
  const bucket = new Bucket({ burst: 0, hitsPerUnit: 0, unitSeconds: 1 });
  assertEquals(bucket.take(1), { granted: false, used: 0, available: 0, retryMs: 1_000, freeMs: 0 });
  assertEquals(bucket.take(0).granted, false);
});

Deno.test("a clock that is set back frees nothing, and blocks for no more than a unit longer", () => {
  const bucket = new Bucket({ burst: 3, hitsPerUnit: 3, unitSeconds: 60 });
  bucket.take(3);
  for (const backUs of [1_000_000, 50_000_000, 3_600_000_000]) {
    bucket.nowUs -= backUs;
    const { granted, retryMs } = bucket.take(1);
    assertEquals([granted, retryMs <= 80_000], [false, true], `${backUs}`);
  }
  bucket.nowUs += 20_001_000;
  assertEquals(bucket.take(1).granted, true);
});
