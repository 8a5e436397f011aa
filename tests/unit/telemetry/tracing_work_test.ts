import { assertEquals, assertMatch } from "@std/assert";
import type { SpanRecord } from "../../../src/telemetry/tracing_span_record.ts";
import { recordWork, type TracedWork } from "../../../src/telemetry/tracing_work.ts";

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
  recordWork(work, { samplingRate, onEnd: (span) => void spans.push(span) });
  return spans;
}

Deno.test("work that is over becomes a span with its own times, in the trace of what it belongs to", () => {
  const [span] = recorded(WORK, 1);
  const { traceId, spanId, epochMs, startedAt, shape, aboveId } = span?.start ?? {};
  assertEquals([traceId, aboveId, epochMs, startedAt, span?.endedAt, span?.failed], [
    "0f1e2d3c4b5a49788695a4b380000000",
    "",
    1_000,
    0,
    25.5,
    false,
  ]);
  assertMatch(spanId ?? "", /^[0-9a-f]{16}$/);
  assertEquals(
    shape?.text,
    '{"name":"webhook attempt","kind":3,"attributes":[{"key":"weir.attempt.number","value":{"intValue":2}}',
  );
});

Deno.test("work that failed says of what", () => {
  const [span] = recorded({ ...WORK, failure: "timeout" }, 1);
  assertEquals([span?.failed, span?.failure], [true, "timeout"]);
});

Deno.test("work is chosen by what it belongs to", () => {
  // The last digits of the identifier stand for one half.
  for (const [rate, count] of [[0, 0], [0.5, 0], [0.51, 1], [1, 1]] as const) {
    assertEquals(recorded(WORK, rate).length, count, String(rate));
  }
});
