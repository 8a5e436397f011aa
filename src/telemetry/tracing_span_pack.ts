import type { AttributeValue } from "@opentelemetry/api";
import type { RateLimitRequest } from "../ratelimit/request.ts";
import type { AttributeKey } from "./tracing_attribute_text.ts";
import type { NotedValue, SpanRecord, SpanShape } from "./tracing_span_record.ts";

/**
 * Spans as they are sent to another thread, which renders them. What they say stands in columns, one behind the other
 * and of each span as much as it has: arrays of one kind of value are the fastest to copy, and one long text gives the
 * collector of garbage less to do than many that live until they are sent.
 */
export interface SpanPack {
  readonly count: number;
  /** The shapes and keys that spans name by their place here. */
  readonly shapes: readonly SpanShape[];
  readonly keys: readonly AttributeKey[];
  /** Also the length of each text. */
  readonly numbers: readonly number[];
  /** All texts without anything between them. */
  readonly text: string;
  /** Values of attributes that are neither a text nor a request. */
  readonly values: readonly AttributeValue[];
}

/** What the bits of a span's number say. */
export const SPAN_BITS = { isRemote: 1, failed: 2, hasFailure: 4 } as const;
/** What the bits of a descriptor's number say. */
export const DESCRIPTOR_BITS = { hasLimit: 1, hasHitsAddend: 2, isNegativeHits: 4 } as const;
/** What an attribute's number says of its value. */
export const NOTE_KINDS = { value: 0, text: 1, request: 2 } as const;

/** As many as the caches of the CPU are worth being filled for; what they hold is garbage while it is young. */
const PACKED_SPANS = 32;

/** Gathers spans, and packs them many at a time. */
export class SpanPacker {
  /** Those that are not packed yet. */
  #spans: SpanRecord[] = [];
  #shapes = new Map<SpanShape, number>();
  #keys = new Map<AttributeKey, number>();
  #numbers: number[] = [];
  /** The texts of spans that were packed together, and those of the ones that are being packed. */
  #joined: string[] = [];
  #texts: string[] = [];
  #values: AttributeValue[] = [];
  #count = 0;

  /** Number of spans. */
  get count(): number {
    return this.#count;
  }

  /** Puts a span that is over behind the others. */
  add(span: SpanRecord): void {
    this.#count++;
    if (this.#spans.push(span) >= PACKED_SPANS) this.#packAll();
  }

  /** All that was put together; the next pack begins. */
  take(): SpanPack {
    this.#packAll();
    const pack: SpanPack = {
      count: this.#count,
      shapes: [...this.#shapes.keys()],
      keys: [...this.#keys.keys()],
      numbers: this.#numbers,
      text: this.#joined.join(""),
      values: this.#values,
    };
    this.#shapes = new Map();
    this.#keys = new Map();
    this.#numbers = [];
    this.#joined = [];
    this.#values = [];
    this.#count = 0;
    return pack;
  }

  #packAll(): void {
    for (const span of this.#spans) this.#pack(span);
    this.#joined.push(this.#texts.join(""));
    this.#spans = [];
    this.#texts = [];
  }

  #pack(span: SpanRecord): void {
    const { traceId, spanId, aboveId, failed, failure, endedAt, notes } = span;
    const { shape, state, isRemote, epochMs, startedAt } = span.start;
    const bits = (isRemote ? SPAN_BITS.isRemote : 0) | (failed ? SPAN_BITS.failed : 0) |
      (failure === undefined ? 0 : SPAN_BITS.hasFailure);
    this.#numbers.push(
      placeIn(this.#shapes, shape),
      bits,
      epochMs + startedAt,
      epochMs + endedAt,
      notes.length,
    );
    this.#packText(traceId);
    this.#packText(spanId);
    this.#packText(aboveId);
    this.#packText(state);
    if (failure !== undefined) this.#packText(failure);
    for (const { key, value } of notes) {
      this.#numbers.push(placeIn(this.#keys, key));
      this.#packValue(value);
    }
  }

  #packText(text: string): void {
    this.#numbers.push(text.length);
    this.#texts.push(text);
  }

  #packValue(value: NotedValue): void {
    if (typeof value === "string") {
      this.#numbers.push(NOTE_KINDS.text);
      this.#packText(value);
    } else if (isRequest(value)) {
      this.#numbers.push(NOTE_KINDS.request);
      this.#packRequest(value);
    } else {
      this.#numbers.push(NOTE_KINDS.value);
      this.#values.push(value);
    }
  }

  #packRequest({ domain, descriptors, hitsAddend: hits }: RateLimitRequest): void {
    this.#packText(domain);
    this.#numbers.push(hits, descriptors.length);
    for (const { entries, limit, hitsAddend, isNegativeHits } of descriptors) {
      const bits = (limit === undefined ? 0 : DESCRIPTOR_BITS.hasLimit) |
        (hitsAddend === undefined ? 0 : DESCRIPTOR_BITS.hasHitsAddend) |
        (isNegativeHits === true ? DESCRIPTOR_BITS.isNegativeHits : 0);
      this.#numbers.push(bits, entries.length);
      for (const { key, value } of entries) {
        this.#packText(key);
        this.#packText(value);
      }
      if (limit !== undefined) {
        this.#numbers.push(limit.requestsPerUnit);
        this.#packText(limit.unit ?? "");
      }
      if (hitsAddend !== undefined) this.#numbers.push(hitsAddend);
    }
  }
}

function placeIn<T>(places: Map<T, number>, thing: T): number {
  const known = places.get(thing);
  if (known !== undefined) return known;
  places.set(thing, places.size);
  return places.size - 1;
}

function isRequest(value: NotedValue): value is RateLimitRequest {
  return typeof value === "object" && "descriptors" in value;
}
