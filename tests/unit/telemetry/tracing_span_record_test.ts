import { assertEquals } from "@std/assert";
import {
  newSpanId,
  newTraceId,
  SPAN_KINDS,
  type SpanRecord,
} from "../../../src/telemetry/tracing_span_record.ts";
import { exported } from "../../harness/tracing_bed.ts";
import { spanOf } from "../../harness/tracing_exporter_double.ts";

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

Deno.test("span record: it ends once, with its own attributes and failure", () => {
  const ended: SpanRecord[] = [];
  const attributes = { shared: "yes" };
  const span = startSpan({ onEnd: (one) => void ended.push(one), attributes });
  const other = startSpan({ attributes });
  span.set("own", 1);
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

Deno.test("span record: missing ids are created once, and belong to one trace", () => {
  const shape = { name: "s", kind: SPAN_KINDS.server };
  const parent = spanOf(shape, { traceId: "" });
  const child = spanOf(shape, { traceId: "", parent });
  // The child ends first.
  const { traceId, spanId, parentId } = child;
  assertEquals([parent.traceId, parent.spanId, child.spanId], [traceId, parentId, spanId]);
  assertEquals([traceId.length, parentId.length, parentId === spanId, parent.parentId], [32, 16, false, ""]);
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
  const shape = { name: "s", kind: SPAN_KINDS.server, attributes };
  return spanOf(shape, { epochMs, startedAt }, { elapsed, onEnd });
}
