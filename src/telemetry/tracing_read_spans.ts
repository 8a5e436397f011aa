import {
  type Attributes,
  type AttributeValue,
  createTraceState,
  type HrTime,
  type SpanContext,
  type SpanStatus,
  SpanStatusCode,
  TraceFlags,
} from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import type { FlatSpans } from "./tracing_flat_spans.ts";
import type { SpanKindNumber } from "./tracing_span_record.ts";

/** What all spans of a process are exported with. */
export interface SpanMaker {
  readonly resource: ReadableSpan["resource"];
  /** Who made the spans. */
  readonly scope: ReadableSpan["instrumentationScope"];
}

type Next = () => AttributeValue | undefined;

const NONE: never[] = [];
const UNSET: SpanStatus = { code: SpanStatusCode.UNSET };

/** The spans of a flat list in the form in which the exporters of the SDK read them. */
export function readSpans(flat: FlatSpans, maker: SpanMaker): ReadableSpan[] {
  const spans: ReadableSpan[] = [];
  let at = 0;
  const next = () => flat[at++];
  while (at < flat.length) spans.push(new ReadSpan(next, maker));
  return spans;
}

class ReadSpan implements ReadableSpan {
  readonly name: string;
  readonly kind: SpanKindNumber;
  readonly parentSpanContext?: SpanContext;
  readonly startTime: HrTime;
  readonly endTime: HrTime;
  readonly duration: HrTime;
  readonly status: SpanStatus;
  readonly attributes: Attributes;
  readonly resource: ReadableSpan["resource"];
  readonly instrumentationScope: ReadableSpan["instrumentationScope"];
  readonly ended = true;
  readonly links = NONE;
  readonly events = NONE;
  readonly droppedAttributesCount = 0;
  readonly droppedEventsCount = 0;
  readonly droppedLinksCount = 0;
  readonly #context: SpanContext;

  constructor(next: Next, { resource, scope }: SpanMaker) {
    this.name = String(next());
    this.kind = Number(next()) as SpanKindNumber;
    this.#context = readContext(next);
    const aboveId = String(next());
    const isRemote = next() === true;
    if (aboveId !== "") this.parentSpanContext = { ...this.#context, spanId: aboveId, isRemote };
    const epochMs = Number(next());
    const startedAt = Number(next());
    const endedAt = Number(next());
    this.startTime = hrTime(epochMs + startedAt);
    this.endTime = hrTime(epochMs + endedAt);
    this.duration = hrTime(endedAt - startedAt);
    this.status = readStatus(next() === true, next());
    this.attributes = readAttributes(Number(next()), next);
    this.resource = resource;
    this.instrumentationScope = scope;
  }

  spanContext(): SpanContext {
    return this.#context;
  }
}

function readContext(next: Next): SpanContext {
  const [traceId, spanId, state] = [String(next()), String(next()), String(next())];
  const context = { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
  return state === "" ? context : { ...context, traceState: createTraceState(state) };
}

function readStatus(failed: boolean, message: AttributeValue | undefined): SpanStatus {
  if (!failed) return UNSET;
  return { code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message: String(message) }) };
}

function readAttributes(count: number, next: Next): Attributes {
  const attributes: Attributes = {};
  for (let at = 0; at < count; at++) attributes[String(next())] = next();
  return attributes;
}

/** Milliseconds as whole seconds and nanoseconds. */
function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  const nanos = Math.round((ms - seconds * 1_000) * 1_000_000);
  return nanos < 1_000_000_000 ? [seconds, nanos] : [seconds + 1, 0];
}
