import { assertEquals } from "@std/assert";
import {
  SLICE_STATE_SIZE,
  type SliceLimit,
  sliceLimit,
  takeFromSlices,
} from "../../../../src/ratelimit/algorithms/slices.ts";
import type { Taken } from "../../../../src/ratelimit/algorithms/taken.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";

const RUNS = 2_000;
const CALLS = 60;
const START_US = 1_700_000_000_000_000;

/** A counter with a clock. */
class Counter {
  readonly limit: SliceLimit;
  readonly windowUs: number;
  nowUs = START_US;
  readonly #state = new Float64Array(SLICE_STATE_SIZE);

  constructor(limit: number, windowMs: number) {
    this.limit = sliceLimit(limit, windowMs);
    this.windowUs = windowMs * 1_000;
  }

  take(hits: number): Taken {
    return takeFromSlices(this.#state, 0, this.limit, this.nowUs, hits);
  }

  /** The answer to a question that long from now, which changes nothing. */
  later(ms: number): Taken {
    return takeFromSlices(this.#state.slice(), 0, this.limit, this.nowUs + ms * 1_000, 0);
  }
}

interface Sequence {
  readonly counter: Counter;
  readonly pick: (below: number) => number;
}

/** Random limits, windows and steps of time; each run has its own seed. */
function* sequences(): Generator<Sequence & { readonly name: string }> {
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = seededRandom(seed);
    const pick = (below: number) => Math.floor(random() * below);
    const counter = new Counter(1 + pick(12), [1_000, 60_000, 1_500, 86_400_000, 7][pick(5)] ?? 0);
    yield { counter, pick, name: `seed ${seed}` };
  }
}

/** Mostly short steps, some as long as the window. */
function step({ counter, pick }: Sequence): void {
  const us = pick(10) === 0 ? pick(counter.windowUs * 2) : pick(Math.ceil(counter.windowUs / 20));
  counter.nowUs += us;
}

Deno.test("no span of a window holds more than the limit, and a refusal is late by at most a sixteenth", () => {
  for (const { name, ...sequence } of sequences()) {
    const { counter, pick } = sequence;
    const log: { at: number; hits: number }[] = [];
    const within = (us: number) => {
      return log.reduce((sum, { at, hits }) => at > counter.nowUs - us ? sum + hits : sum, 0);
    };
    const lateUs = 17 * counter.limit.sliceUs;
    for (let call = 0; call < CALLS; call++) {
      step(sequence);
      const hits = 1 + pick(3);
      const { granted, used, available } = counter.take(hits);
      if (granted) log.push({ at: counter.nowUs, hits });
      const context = `${name}, call ${call}`;
      assertEquals(within(counter.windowUs) <= counter.limit.limit, true, context);
      if (!granted) assertEquals(within(lateUs) + hits > counter.limit.limit, true, context);
      assertEquals(available, counter.limit.limit - used, context);
    }
  }
});

Deno.test("one hit passes after the announced wait and not earlier, and then all of the limit is free", () => {
  for (const { name, ...sequence } of sequences()) {
    const { counter, pick } = sequence;
    for (let call = 0; call < CALLS; call++) {
      step(sequence);
      const { retryMs, freeMs, used, available } = counter.take(pick(5) - 1);
      const context = `${name}, call ${call}`;
      assertEquals([retryMs > 0, freeMs > 0], [available === 0, used > 0], context);
      assertEquals(counter.later(retryMs).granted, true, context);
      if (retryMs > 0) assertEquals(counter.later(retryMs - 1).granted, false, context);
      assertEquals(counter.later(freeMs).used, 0, context);
      if (freeMs > 0) assertEquals(counter.later(freeMs - 1).used > 0, true, context);
    }
  }
});

Deno.test("never more than the maximum is in flight, and lost hits free themselves after their lease", () => {
  for (const { name, ...sequence } of sequences()) {
    const { counter, pick } = sequence;
    const leaseUs = counter.windowUs;
    let running: number[] = [];
    for (let call = 0; call < CALLS * 2; call++) {
      step(sequence);
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

Deno.test("hits are taken whole or not at all, and never fall below zero", () => {
  const counter = new Counter(10, 60_000);
  const calls = [7, 4, 3, 0, 1, -4, 4, -50, 10, 0];
  assertEquals(
    calls.map((hits) => {
      const { granted, used, available } = counter.take(hits);
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

Deno.test("giving back takes from the oldest slice", () => {
  const counter = new Counter(4, 16_000);
  counter.nowUs = START_US - START_US % 16_000_000;
  counter.take(2);
  counter.nowUs += 8_000_000;
  counter.take(2);
  assertEquals(counter.take(-2).freeMs, 17_000);
});

Deno.test("a limit of 0 refuses everything", () => {
  const counter = new Counter(0, 16_000);
  assertEquals(counter.take(1), { granted: false, used: 0, available: 0, retryMs: 17_000, freeMs: 0 });
  assertEquals(counter.take(0).granted, false);
});

Deno.test("a lowered limit counts what was taken under the higher one", () => {
  const state = new Float64Array(SLICE_STATE_SIZE);
  takeFromSlices(state, 0, sliceLimit(10, 16_000), 0, 10);
  const taken = takeFromSlices(state, 0, sliceLimit(3, 16_000), 0, 1);
  assertEquals(taken, { granted: false, used: 10, available: 0, retryMs: 17_000, freeMs: 17_000 });
});

Deno.test("a clock that is set back frees nothing, and blocks for no more than a window and a sixteenth", () => {
  const counter = new Counter(3, 16_000);
  counter.take(3);
  for (const backUs of [1_000_000, 15_000_000, 3_600_000_000]) {
    counter.nowUs -= backUs;
    const { granted, retryMs } = counter.take(1);
    assertEquals([granted, retryMs <= 34_000], [false, true], `${backUs}`);
  }
  counter.nowUs += 17_000_000;
  assertEquals(counter.take(3).granted, true);
});
