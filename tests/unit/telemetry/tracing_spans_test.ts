import { assertEquals } from "@std/assert";
import { SPAN_KINDS, spanShape } from "../../../src/telemetry/tracing_span_record.ts";
import { CallTracer } from "../../../src/telemetry/tracing_spans.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

const SHAPE = spanShape("s", SPAN_KINDS.server);
const NO_HEADERS = { header: () => undefined };

/** The numbers of the calls that are chosen. */
function chosen(calls: number, samplingRate: number, random: () => number): number[] {
  const tracer = new CallTracer({ samplingRate, random, clock: new FakeClock(), onEnd: () => {} });
  return Array.from({ length: calls }, (_, number) => number)
    .filter(() => tracer.startServer(SHAPE, NO_HEADERS) !== undefined);
}

/** Numbers from 0 to below 1 that are the same each time (a linear congruential generator). */
function drawn(): () => number {
  let state = 1;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

Deno.test("call tracer: a number that is drawn says how many calls are passed over", () => {
  const draws = [0, 0.74, 0.76, 0.5, 0.99];
  // At a rate of one half: 0, 1 and 2 passed over are worth 1/2, 1/4 and 1/8 of the draws.
  assertEquals(chosen(20, 0.5, () => draws.shift() ?? 0), [0, 2, 5, 7, 14, 15, 16, 17, 18, 19]);
});

Deno.test("call tracer: the share of the calls is the rate, and a call knows nothing of the one before it", () => {
  const calls = 200_000;
  for (const rate of [0.001, 0.01, 0.25, 0.9]) {
    const numbers = chosen(calls, rate, drawn());
    const next = numbers.filter((number, place) => numbers[place + 1] === number + 1);
    // Within five standard deviations of a binomial distribution.
    const isNear = (count: number, of: number) =>
      Math.abs(count - of * rate) <= 5 * Math.sqrt(of * rate * (1 - rate));
    assertEquals({ rate, share: isNear(numbers.length, calls), next: isNear(next.length, numbers.length) }, {
      rate,
      share: true,
      next: true,
    });
  }
});

Deno.test("call tracer: all calls at a rate of 1, none at a rate of 0, whatever is drawn", () => {
  for (const random of [0, 0.5, 0.999_999]) {
    assertEquals([chosen(5, 1, () => random).length, chosen(5, 0, () => random).length], [5, 0]);
  }
});
