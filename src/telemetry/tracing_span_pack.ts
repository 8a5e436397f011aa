import type { AttributeValue } from "@opentelemetry/api";
import type { RateLimitRequest } from "../ratelimit/request.ts";
import type { SpanRecord, SpanShape, SpanValue } from "./tracing_span_record.ts";

/**
 * Spans as they are sent to the exporting thread, in columns: arrays of one kind of value are the fastest to
 * copy, and one long text is less work for the garbage collector than many short ones.
 */
export interface SpanPack {
  readonly count: number;
  /** Spans refer to shapes and keys by their index. */
  readonly shapes: readonly SpanShape[];
  readonly keys: readonly string[];
  /** Includes the length of each text. */
  readonly numbers: readonly number[];
  /** All texts without separators. */
  readonly text: string;
  /** Values of attributes that are neither a text nor a request. */
  readonly values: readonly AttributeValue[];
}

/** Bits of a span. */
export const SPAN_BITS = { isRemote: 1, failed: 2, hasFailure: 4 } as const;
/** Bits of a descriptor. */
export const DESCRIPTOR_BITS = { hasLimit: 1, hasHitsAddend: 2, isNegativeHits: 4 } as const;
/** The kind of an attribute's value. */
export const VALUE_KINDS = { other: 0, text: 1, request: 2 } as const;

/** Spans packed in one go: enough to warm the CPU's caches, few enough to be young garbage. */
const PACKED_SPANS = 32;

/** The columns that are being filled. */
class Columns {
  readonly shapes = new Map<SpanShape, number>();
  readonly keys = new Map<string, number>();
  readonly numbers: number[] = [];
  /** Texts joined for each group of packed spans. */
  readonly joined: string[] = [];
  readonly values: AttributeValue[] = [];
  count = 0;
}

/** Gathers spans and packs them. */
export class SpanPacker {
  /** Not packed yet. */
  #spans: SpanRecord[] = [];
  /** Those of the group that is being packed. */
  #texts: string[] = [];
  #columns = new Columns();

  /** Number of spans. */
  get count(): number {
    return this.#columns.count;
  }

  /** Adds an ended span. */
  add(span: SpanRecord): void {
    this.#columns.count++;
    if (this.#spans.push(span) >= PACKED_SPANS) this.#packAll();
  }

  /** The pack of all spans added since the last call. */
  take(): SpanPack {
    this.#packAll();
    const { count, shapes, keys, numbers, joined, values } = this.#columns;
    this.#columns = new Columns();
    return {
      count,
      shapes: [...shapes.keys()],
      keys: [...keys.keys()],
      numbers,
      text: joined.join(""),
      values,
    };
  }

  #packAll(): void {
    for (const span of this.#spans) this.#pack(span);
    this.#columns.joined.push(this.#texts.join(""));
    this.#spans = [];
    this.#texts = [];
  }

  #pack(span: SpanRecord): void {
    const { traceId, spanId, parentId, failed, failure, endedAt, attributes } = span;
    const { shape, state, remoteParentId, epochMs, startedAt } = span.start;
    const bits = (remoteParentId === "" ? 0 : SPAN_BITS.isRemote) | (failed ? SPAN_BITS.failed : 0) |
      (failure === undefined ? 0 : SPAN_BITS.hasFailure);
    const place = indexIn(this.#columns.shapes, shape);
    this.#columns.numbers.push(place, bits, epochMs + startedAt, epochMs + endedAt, attributes.length);
    this.#packText(traceId);
    this.#packText(spanId);
    this.#packText(parentId);
    this.#packText(state);
    if (failure !== undefined) this.#packText(failure);
    for (const { key, value } of attributes) {
      this.#columns.numbers.push(indexIn(this.#columns.keys, key));
      this.#packValue(value);
    }
  }

  #packText(text: string): void {
    this.#columns.numbers.push(text.length);
    this.#texts.push(text);
  }

  #packValue(value: SpanValue): void {
    if (typeof value === "string") {
      this.#columns.numbers.push(VALUE_KINDS.text);
      this.#packText(value);
    } else if (isRequest(value)) {
      this.#columns.numbers.push(VALUE_KINDS.request);
      this.#packRequest(value);
    } else {
      this.#columns.numbers.push(VALUE_KINDS.other);
      this.#columns.values.push(value);
    }
  }

  #packRequest({ domain, descriptors, hitsAddend: hits }: RateLimitRequest): void {
    this.#packText(domain);
    this.#columns.numbers.push(hits, descriptors.length);
    for (const { entries, limit, hitsAddend, isNegativeHits } of descriptors) {
      const bits = (limit === undefined ? 0 : DESCRIPTOR_BITS.hasLimit) |
        (hitsAddend === undefined ? 0 : DESCRIPTOR_BITS.hasHitsAddend) |
        (isNegativeHits === true ? DESCRIPTOR_BITS.isNegativeHits : 0);
      this.#columns.numbers.push(bits, entries.length);
      for (const { key, value } of entries) {
        this.#packText(key);
        this.#packText(value);
      }
      if (limit !== undefined) {
        this.#columns.numbers.push(limit.requestsPerUnit);
        this.#packText(limit.unit ?? "");
      }
      if (hitsAddend !== undefined) this.#columns.numbers.push(hitsAddend);
    }
  }
}

function indexIn<T>(indexes: Map<T, number>, item: T): number {
  const known = indexes.get(item);
  if (known !== undefined) return known;
  indexes.set(item, indexes.size);
  return indexes.size - 1;
}

function isRequest(value: SpanValue): value is RateLimitRequest {
  return typeof value === "object" && value !== null && "descriptors" in value;
}
