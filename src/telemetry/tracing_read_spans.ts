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
import { placesIn, type SpanList } from "./tracing_span_list.ts";

/** What all spans of a process are exported with. */
export interface SpanMaker {
  readonly resource: ReadableSpan["resource"];
  /** Who made the spans. */
  readonly scope: ReadableSpan["instrumentationScope"];
}

/** The text of a span as JSON reads it, of which this is all that is ours to know. */
interface SpanJson {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: ValueJson }[];
  readonly status: Partial<SpanStatus>;
  readonly flags: number;
}

interface ValueJson {
  readonly stringValue?: string;
  readonly intValue?: number;
  /** JSON has nothing for what is no number. */
  readonly doubleValue?: number | null;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values: readonly ValueJson[] };
}

const NONE: never[] = [];
const UNSET: SpanStatus = { code: SpanStatusCode.UNSET };
const REMOTE_FLAG = 0x200;
const NANOS_PER_SECOND = 1_000_000_000n;

const decoder = new TextDecoder();

/** The spans of a list in the form in which the exporters of the SDK read them. */
export function readSpans(list: SpanList, maker: SpanMaker): ReadableSpan[] {
  return placesIn(list).map(({ start, end }) => {
    const json = JSON.parse(decoder.decode(list.bytes.subarray(start, end))) as SpanJson;
    return new ReadSpan(json, maker);
  });
}

class ReadSpan implements ReadableSpan {
  readonly name: string;
  readonly kind: ReadableSpan["kind"];
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

  constructor(json: SpanJson, { resource, scope }: SpanMaker) {
    const { name, kind, parentSpanId, flags, status } = json;
    this.name = name;
    // The SDK counts them from 0.
    this.kind = kind - 1;
    this.#context = contextOf(json);
    if (parentSpanId !== undefined) {
      const isRemote = (flags & REMOTE_FLAG) !== 0;
      this.parentSpanContext = { ...this.#context, spanId: parentSpanId, isRemote };
    }
    const [start, end] = [BigInt(json.startTimeUnixNano), BigInt(json.endTimeUnixNano)];
    this.startTime = hrTime(start);
    this.endTime = hrTime(end);
    this.duration = hrTime(end - start);
    this.status = status.code === undefined ? UNSET : { ...status, code: status.code };
    this.attributes = Object.fromEntries(json.attributes.map(({ key, value }) => [key, valueOf(value)]));
    this.resource = resource;
    this.instrumentationScope = scope;
  }

  spanContext(): SpanContext {
    return this.#context;
  }
}

function contextOf({ traceId, spanId, traceState }: SpanJson): SpanContext {
  const context = { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
  return traceState === undefined ? context : { ...context, traceState: createTraceState(traceState) };
}

function valueOf(value: ValueJson): AttributeValue | undefined {
  const { stringValue, intValue, doubleValue, boolValue, arrayValue } = value;
  if (arrayValue !== undefined) return arrayValue.values.map(valueOf) as AttributeValue;
  if (doubleValue !== undefined) return doubleValue ?? NaN;
  return stringValue ?? intValue ?? boolValue;
}

/** Nanoseconds as whole seconds and the rest, which is never below zero. */
function hrTime(nanos: bigint): HrTime {
  const rest = ((nanos % NANOS_PER_SECOND) + NANOS_PER_SECOND) % NANOS_PER_SECOND;
  return [Number((nanos - rest) / NANOS_PER_SECOND), Number(rest)];
}
