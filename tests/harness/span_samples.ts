import type { SpanPack } from "../../src/telemetry/tracing_span_pack.ts";
import { SPAN_KINDS, SpanRecord, type SpanShape } from "../../src/telemetry/tracing_span_record.ts";
import { exportedAll } from "./tracing_bed.ts";

/** A span with this name and nothing else. */
export function spanNamed(name: string): SpanRecord {
  return spanOf({ name, kind: SPAN_KINDS.server });
}

/** A span of this shape, whatever else is given, and nothing else. */
export function spanOf(
  shape: SpanShape,
  given: Partial<SpanRecord["start"]> = {},
  origin: ConstructorParameters<typeof SpanRecord>[0] = { elapsed: () => 0, onEnd: () => {} },
): SpanRecord {
  const ids = { traceId: "1".repeat(32), state: "", parent: undefined, remoteParentId: "" };
  return new SpanRecord(origin, { shape, ...ids, epochMs: 0, startedAt: 0, ...given });
}

/** The names of the spans in a pack. */
export function namesIn(pack: SpanPack): string[] {
  return exportedAll(pack).map(({ name }) => name);
}
