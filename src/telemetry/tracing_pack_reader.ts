import type { AttributeValue } from "@opentelemetry/api";
import { unitOfName } from "../ratelimit/limit.ts";
import type { Descriptor, Entry, RateLimitRequest } from "../ratelimit/request.ts";
import { attributeText } from "./tracing_attribute_text.ts";
import { requestText } from "./tracing_request_text.ts";
import { DESCRIPTOR_BITS, NOTE_KINDS, SPAN_BITS, type SpanPack } from "./tracing_span_pack.ts";
import type { SpanShape } from "./tracing_span_record.ts";

/** A span that is over, as it is rendered. */
export interface EndedSpan {
  readonly shape: SpanShape;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for none. */
  readonly aboveId: string;
  /** Empty for none. */
  readonly state: string;
  readonly isRemote: boolean;
  /** Milliseconds since the Unix epoch. */
  readonly startMs: number;
  readonly endMs: number;
  readonly failed: boolean;
  readonly failure: string | undefined;
  /** Its own attributes, as they follow those of its shape in OTLP's JSON. */
  readonly attributes: string;
}

/** Reads the spans of a pack, in the order in which they were put in. */
export class PackReader {
  readonly #pack: SpanPack;
  #numbersRead = 0;
  #textRead = 0;
  #valuesRead = 0;

  constructor(pack: SpanPack) {
    this.#pack = pack;
  }

  /** The next span; to be asked for as often as there are spans. */
  next(): EndedSpan {
    const shape = itemAt(this.#pack.shapes, this.#number());
    const bits = this.#number();
    const [startMs, endMs, notes] = [this.#number(), this.#number(), this.#number()];
    const [traceId, spanId, aboveId, state] = [this.#text(), this.#text(), this.#text(), this.#text()];
    const failure = (bits & SPAN_BITS.hasFailure) === 0 ? undefined : this.#text();
    return {
      ...{ shape, traceId, spanId, aboveId, state, startMs, endMs, failure },
      isRemote: (bits & SPAN_BITS.isRemote) !== 0,
      failed: (bits & SPAN_BITS.failed) !== 0,
      attributes: this.#attributes(notes, shape),
    };
  }

  #attributes(count: number, { hasAttributes }: SpanShape): string {
    let text = "";
    for (let place = 0; place < count; place++) {
      if (place > 0 || hasAttributes) text += ",";
      const key = itemAt(this.#pack.keys, this.#number());
      text += attributeText(key, this.#value());
    }
    return text;
  }

  #value(): AttributeValue | undefined {
    switch (this.#number()) {
      case NOTE_KINDS.text:
        return this.#text();
      case NOTE_KINDS.request:
        return requestText(this.#request());
      default:
        // It may be one that nothing stands for, so it is not asked whether it is there.
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
    throw new RangeError(`Cannot read spans: their text ends before "${this.#textRead}"`);
  }
}

function itemAt<T>(items: readonly T[], place: number): T {
  const item = items[place];
  if (item === undefined) throw new RangeError(`Cannot read spans: item "${place}" of a column is missing`);
  return item;
}
