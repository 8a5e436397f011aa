import { assertEquals, assertMatch } from "#assert";
import { SPAN_KINDS, type SpanRecord } from "../../../src/telemetry/tracing_span_record.ts";
import type { TracedWork } from "../../../src/base/traced_work.ts";
import { CallTracer } from "../../../src/telemetry/tracing_spans.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

const SHAPE = { name: "s", kind: SPAN_KINDS.server };
const NO_HEADERS = { header: () => undefined };

/** The numbers of the calls that are chosen. */
function chosen(calls: number, samplingRate: number, random: () => number): number[] {
  const tracer = new CallTracer({ samplingRate, random, clock: new FakeClock(), onEnd: () => {} });
  return Array.from({ length: calls }, (_, number) => number)
    .filter(() => tracer.startServer(SHAPE, NO_HEADERS) !== undefined);
}

Deno.test("call tracer: a random number decides how many calls are skipped", () => {
  const draws = [0, 0.74, 0.76, 0.5, 0.99];
  // At a rate of one half: 0, 1 and 2 skipped are worth 1/2, 1/4 and 1/8 of the draws.
  assertEquals(chosen(20, 0.5, () => draws.shift() ?? 0), [0, 2, 5, 7, 14, 15, 16, 17, 18, 19]);
});

Deno.test("call tracer: the share of the calls is the rate, and calls are independent", () => {
  const calls = 200_000;
  for (const rate of [0.001, 0.01, 0.25, 0.9]) {
    const numbers = chosen(calls, rate, seededRandom(1));
    const next = numbers.filter((number, place) => numbers[place + 1] === number + 1);
    // Within five standard deviations of a binomial distribution.
    const isNear = (count: number, of: number) =>
      Math.abs(count - of * rate) <= 5 * Math.sqrt(of * rate * (1 - rate));
    const near = [isNear(numbers.length, calls), isNear(next.length, numbers.length)];
    assertEquals([rate, ...near], [rate, true, true]);
  }
});

Deno.test("call tracer: all calls at a rate of 1, none at a rate of 0, whatever is drawn", () => {
  for (const random of [0, 0.5, 0.999_999]) {
    assertEquals([chosen(5, 1, () => random).length, chosen(5, 0, () => random).length], [5, 0]);
  }
});

const WORK: TracedWork = {
  name: "webhook attempt",
  kind: "client",
  id: "0f1e2d3c-4b5a-4978-8695-a4b380000000",
  startedAt: 1_000,
  tookMs: 25.5,
  attributes: { "weir.attempt.number": 2 },
};

function recorded(work: TracedWork, samplingRate: number): SpanRecord[] {
  const spans: SpanRecord[] = [];
  const onEnd = (span: SpanRecord) => void spans.push(span);
  new CallTracer({ onEnd, samplingRate, random: () => 0, clock: new FakeClock() }).record(work);
  return spans;
}

Deno.test("finished work becomes a span with its own times and failure, in the trace of its id", () => {
  for (const failure of [undefined, "timeout"]) {
    const [span] = recorded(failure === undefined ? WORK : { ...WORK, failure }, 1);
    assertEquals([span?.traceId, span?.parentId], [WORK.id.replaceAll("-", ""), ""]);
    assertEquals([span?.start.epochMs, span?.start.startedAt, span?.endedAt], [1_000, 0, 25.5]);
    assertEquals([span?.failed, span?.failure ?? ""], [failure !== undefined, failure ?? ""]);
    assertMatch(span?.spanId ?? "", /^[0-9a-f]{16}$/);
    assertEquals(span?.start.shape, { name: WORK.name, kind: 2, attributes: WORK.attributes });
  }
});

Deno.test("work is sampled by its id", () => {
  // The last digits of the identifier stand for one half.
  for (const [rate, count] of [[0, 0], [0.5, 0], [0.51, 1], [1, 1]] as const) {
    assertEquals(recorded(WORK, rate).length, count, String(rate));
  }
});
