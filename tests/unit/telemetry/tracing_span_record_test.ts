import { assertEquals } from "#assert";
import {
  newSpanId,
  newTraceId,
  SPAN_KINDS,
  type SpanRecord,
} from "../../../src/telemetry/tracing_span_record.ts";
import { exported } from "../../harness/tracing_bed.ts";
import { spanOf } from "../../harness/span_samples.ts";

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
  assertEquals([span, other].map((one) => [exported(one).attributes, exported(one).status]), [
    [{ shared: "yes", own: 1 }, { code: 2, message: "it broke" }],
    [{ shared: "yes" }, { code: 0 }],
  ]);
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
  { onEnd = () => {}, attributes }: {
    readonly onEnd?: (span: SpanRecord) => void;
    readonly attributes: Readonly<Record<string, string>>;
  },
): SpanRecord {
  return spanOf({ name: "s", kind: SPAN_KINDS.server, attributes }, {}, { elapsed: () => 0, onEnd });
}
