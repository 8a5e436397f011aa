import { assertEquals, assertRejects, assertThrows } from "#assert";
import { SlicedWork } from "../../../src/base/sliced_work.ts";

/** Work of 1,000 steps that take so long each. */
class Work {
  done = 0;
  readonly sliced: SlicedWork;
  readonly #waiting = new Set<() => void>();
  #elapsedMs = 0;

  constructor(stepMs: number, readonly failsAt = Infinity) {
    this.sliced = new SlicedWork(this.#steps(stepMs), {
      now: () => this.#elapsedMs,
      elapsed: () => this.#elapsedMs,
      after: (_delayMs, run) => {
        this.#waiting.add(run);
        return () => void this.#waiting.delete(run);
      },
    });
  }

  /** Does the next slice; false when there is none. */
  next(): boolean {
    const [run] = this.#waiting;
    if (run === undefined) return false;
    this.#waiting.delete(run);
    run();
    return true;
  }

  *#steps(stepMs: number): Generator<void> {
    for (; this.done < 1_000; this.done++) {
      if (this.done === this.failsAt) throw new RangeError("step failed");
      this.#elapsedMs += stepMs;
      yield;
    }
  }
}

Deno.test("sliced work: long work is done in slices of a few milliseconds", () => {
  const work = new Work(0.05);
  const slices = [work.done];
  while (work.next()) slices.push(work.done);
  const longestMs = Math.max(...slices.map((done, index) => (done - (slices[index - 1] ?? 0)) * 0.05));
  assertEquals([slices.length > 5, longestMs < 10, slices.at(-1)], [true, true, 1_000]);
});

Deno.test("sliced work: short work is done immediately", () => {
  const work = new Work(0.001);
  assertEquals([work.done, work.next()], [1_000, false]);
});

Deno.test("sliced work: the rest can be done immediately, and leaves no timer", () => {
  const work = new Work(1);
  for (let times = 0; times < 2; times++) {
    work.sliced.finish();
    assertEquals([work.done, work.next()], [1_000, false]);
  }
});

Deno.test("sliced work: after a step that threw it is not done, and finishing it throws the same", async () => {
  const work = new Work(1, 500);
  const ended = assertRejects(() => work.sliced.ended);
  while (work.next());
  const failure = await ended;
  assertEquals([work.done, work.sliced.isDone], [500, false]);
  assertEquals(assertThrows(() => work.sliced.finish()), failure);
});
