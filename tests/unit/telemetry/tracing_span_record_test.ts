import { assertEquals } from "@std/assert";
import { attributeKey } from "../../../src/telemetry/tracing_attribute_text.ts";
import { newSpanId, newTraceId } from "../../../src/telemetry/tracing_span_ids.ts";
import { SPAN_KINDS, SpanRecord, spanShape } from "../../../src/telemetry/tracing_span_record.ts";
import { exported } from "../../harness/tracing_bed.ts";

const PLACE = { traceId: "1".repeat(32), spanId: "2".repeat(16), state: "", aboveId: "", isRemote: false };

Deno.test("span record: times are whole seconds and nanoseconds, and no nanosecond too many", () => {
  const cases: [epochMs: number, startedAt: number, endedAt: number, times: [number, number][]][] = [
    [1_000, 0, 0, [[1, 0], [1, 0], [0, 0]]],
    [1_700_000_000_000, 250.5, 1_250.5, [[1_700_000_000, 250_500_000], [1_700_000_001, 250_500_000], [1, 0]]],
    [0, 999.999_999_9, 2_000, [[1, 0], [2, 0], [1, 0]]],
    [-250, 0, 250, [[-1, 750_000_000], [0, 0], [0, 250_000_000]]],
  ];
  for (const [epochMs, startedAt, endedAt, times] of cases) {
    const span = startSpan({ elapsed: () => endedAt, epochMs, startedAt });
    span.end();
    const { startTime, endTime, duration } = exported(span);
    assertEquals([startTime, endTime, duration], times);
  }
});

Deno.test("span record: it is handed on once, with what was noted on it and not on others", () => {
  const ended: SpanRecord[] = [];
  const attributes = { shared: "yes" };
  const span = startSpan({ onEnd: (one) => void ended.push(one), attributes });
  const other = startSpan({ attributes });
  span.set(attributeKey("own"), 1);
  span.fail("it broke");
  span.end();
  span.end();
  assertEquals(ended, [span]);
  assertEquals([exported(span).attributes, exported(other).attributes], [{ shared: "yes", own: 1 }, {
    shared: "yes",
  }]);
  assertEquals([exported(span).status, exported(other).status], [{ code: 2, message: "it broke" }, {
    code: 0,
  }]);
  assertEquals([span.ended, other.ended], [true, false]);
});

Deno.test("span record: identifiers that were not given are made once, and are of one trace", () => {
  const origin = { elapsed: () => 0, onEnd: () => {} };
  const start = { shape: spanShape("s", SPAN_KINDS.server), ...PLACE, traceId: "", spanId: "" };
  const times = { epochMs: 0, startedAt: 0 };
  const above = new SpanRecord(origin, { ...start, ...times });
  const below = new SpanRecord(origin, { ...start, ...times, above });
  // The one below is over first.
  const { traceId, spanId, aboveId } = below;
  assertEquals([above.traceId, above.spanId, below.spanId], [traceId, aboveId, spanId]);
  assertEquals([traceId.length, aboveId.length, aboveId === spanId, above.aboveId], [32, 16, false, ""]);
});

Deno.test("span ids: they are lower-case hexadecimal of their length, and no two are the same", () => {
  const traceIds = Array.from({ length: 1_000 }, newTraceId);
  const spanIds = Array.from({ length: 1_000 }, newSpanId);
  assertEquals(traceIds.filter((id) => !/^[0-9a-f]{32}$/.test(id)), []);
  assertEquals(spanIds.filter((id) => !/^[0-9a-f]{16}$/.test(id)), []);
  assertEquals([new Set(traceIds).size, new Set(spanIds).size], [1_000, 1_000]);
});

function startSpan(
  { elapsed = () => 0, epochMs = 0, startedAt = 0, onEnd = () => {}, attributes = {} }: {
    readonly elapsed?: () => number;
    readonly epochMs?: number;
    readonly startedAt?: number;
    readonly onEnd?: (span: SpanRecord) => void;
    readonly attributes?: Readonly<Record<string, string>>;
  },
): SpanRecord {
  const shape = spanShape("s", SPAN_KINDS.server, attributes);
  return new SpanRecord({ elapsed, onEnd }, { shape, ...PLACE, epochMs, startedAt });
}
