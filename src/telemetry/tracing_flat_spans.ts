import type { AttributeValue } from "@opentelemetry/api";
import type { SpanRecord } from "./tracing_span_record.ts";

/**
 * Spans one behind the other, each as its values in the order of `addSpan`. A flat list costs the sender
 * less than objects do, and nothing is shared with spans that still change.
 */
export type FlatSpans = (AttributeValue | undefined)[];

/** Puts a span that is over behind the others. */
export function addSpan(flat: FlatSpans, span: SpanRecord): void {
  const { start, startedAt, endedAt, failed, failure, attributes } = span;
  const { name, kind, place, above, epochMs } = start;
  const { traceId, spanId, state } = place;
  flat.push(name, kind, traceId, spanId, state, above?.spanId ?? "", above?.isRemote ?? false);
  flat.push(epochMs, startedAt, endedAt, failed, failure);
  const count = flat.push(0) - 1;
  for (const key in attributes) flat.push(key, attributes[key]);
  flat[count] = (flat.length - count - 1) / 2;
}
