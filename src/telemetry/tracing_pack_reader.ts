import {
  type Attributes,
  type AttributeValue,
  createTraceState,
  type HrTime,
  SpanStatusCode,
  TraceFlags,
} from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { unitOfName } from "../ratelimit/units.ts";
import type { Descriptor, Entry, RateLimitRequest } from "../ratelimit/request.ts";
import { requestText } from "./tracing_request_text.ts";
import { DESCRIPTOR_BITS, SPAN_BITS, type SpanPack, VALUE_KINDS } from "./tracing_span_pack.ts";

/** The resource and the scope of all spans of a process. */
type SpanSource = Pick<ReadableSpan, "resource" | "instrumentationScope">;

const NANOS_PER_SECOND = 1_000_000_000;
/** The same for all spans. */
const EMPTY = {
  ended: true,
  links: [],
  events: [],
  droppedAttributesCount: 0,
  droppedEventsCount: 0,
  droppedLinksCount: 0,
};

/** The spans of a pack in their order, as the exporters of the SDK take them. Throws for a pack that is incomplete. */
export function readSpans(pack: SpanPack, source: SpanSource): ReadableSpan[] {
  const reader = new PackReader(pack);
  return Array.from({ length: pack.count }, () => reader.next(source));
}

class PackReader {
  readonly #pack: SpanPack;
  #numbersRead = 0;
  #textRead = 0;
  #valuesRead = 0;

  constructor(pack: SpanPack) {
    this.#pack = pack;
  }

  next(source: SpanSource): ReadableSpan {
    const { name, kind, attributes } = itemAt(this.#pack.shapes, this.#number());
    const bits = this.#number();
    const [startMs, endMs, count] = [this.#number(), this.#number(), this.#number()];
    const [traceId, spanId, parentId, state] = [this.#text(), this.#text(), this.#text(), this.#text()];
    const failure = (bits & SPAN_BITS.hasFailure) === 0 ? {} : { message: this.#text() };
    const code = (bits & SPAN_BITS.failed) === 0 ? SpanStatusCode.UNSET : SpanStatusCode.ERROR;
    const traceState = state === "" ? {} : { traceState: createTraceState(state) };
    const context = { traceId, spanId, traceFlags: TraceFlags.SAMPLED, ...traceState };
    const isRemote = (bits & SPAN_BITS.isRemote) !== 0;
    const [startTime, endTime] = [hrTime(startMs), hrTime(endMs)];
    return {
      ...source,
      ...EMPTY,
      ...(parentId === "" ? {} : { parentSpanContext: { ...context, spanId: parentId, isRemote } }),
      name,
      kind,
      startTime,
      endTime,
      duration: hrTimeBetween(startTime, endTime),
      status: { code, ...failure },
      attributes: this.#attributes(count, attributes),
      spanContext: () => context,
    };
  }

  #attributes(count: number, shared: Attributes | undefined): Attributes {
    const attributes = { ...shared };
    for (let place = 0; place < count; place++) {
      const key = itemAt(this.#pack.keys, this.#number());
      attributes[key] = this.#value();
    }
    return attributes;
  }

  #value(): AttributeValue | undefined {
    switch (this.#number()) {
      case VALUE_KINDS.text:
        return this.#text();
      case VALUE_KINDS.request:
        return requestText(this.#request());
      default:
        return this.#pack.values[this.#valuesRead++];
    }
  }

  #request(): RateLimitRequest {
    const domain = this.#text();
    const [hitsAddend, count] = [this.#number(), this.#number()];
    const descriptors: Descriptor[] = [];
    for (let place = 0; place < count; place++) descriptors.push(this.#descriptor());
    return { domain, descriptors, hitsAddend };
  }

  #descriptor(): Descriptor {
    const [bits, count] = [this.#number(), this.#number()];
    const entries: Entry[] = [];
    for (let place = 0; place < count; place++) entries.push({ key: this.#text(), value: this.#text() });
    const hasLimit = (bits & DESCRIPTOR_BITS.hasLimit) !== 0;
    return {
      entries,
      limit: hasLimit ? { requestsPerUnit: this.#number(), unit: unitOfName(this.#text()) } : undefined,
      hitsAddend: (bits & DESCRIPTOR_BITS.hasHitsAddend) === 0 ? undefined : this.#number(),
      isNegativeHits: (bits & DESCRIPTOR_BITS.isNegativeHits) !== 0,
    };
  }

  #number(): number {
    return itemAt(this.#pack.numbers, this.#numbersRead++);
  }

  #text(): string {
    const start = this.#textRead;
    this.#textRead += this.#number();
    if (this.#textRead <= this.#pack.text.length) return this.#pack.text.slice(start, this.#textRead);
    throw new RangeError(`Cannot read spans: the text ends before character ${this.#textRead}`);
  }
}

function itemAt<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`Cannot read spans: item ${index} of a column is missing`);
  return item;
}

/** Milliseconds as whole seconds and nanoseconds, which are never below zero. */
function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  const nanos = Math.round((ms - seconds * 1_000) * 1_000_000);
  return nanos < NANOS_PER_SECOND ? [seconds, nanos] : [seconds + 1, 0];
}

function hrTimeBetween([startSeconds, startNanos]: HrTime, [endSeconds, endNanos]: HrTime): HrTime {
  const [seconds, nanos] = [endSeconds - startSeconds, endNanos - startNanos];
  return nanos < 0 ? [seconds - 1, nanos + NANOS_PER_SECOND] : [seconds, nanos];
}
