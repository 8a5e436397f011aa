import type { SpanRecord } from "./tracing_span_record.ts";
import { spanText } from "./tracing_span_text.ts";

/** Texts of spans as they are sent to another thread. */
export interface SpanList {
  readonly count: number;
  /** Each span in OTLP's JSON, in UTF-8, with a comma and a line break between two. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Where a span is in the octets of its list. */
export interface SpanPlace {
  readonly start: number;
  readonly end: number;
}

/** What is between two spans of a list. */
export const SEPARATOR = ",\n";

const LINE_BREAK = 10;
/** As many as the caches of the CPU are worth being filled for, and as decisions can wait for. */
const RENDERED_SPANS = 64;

const encoder = new TextEncoder();

/** Gathers spans, and renders them many at a time. */
export class SpanListWriter {
  /** Those that are not rendered yet. */
  #spans: SpanRecord[] = [];
  #text = "";
  #count = 0;

  /** Number of spans. */
  get count(): number {
    return this.#count;
  }

  /** Puts a span that is over behind the others. */
  add(span: SpanRecord): void {
    this.#count++;
    if (this.#spans.push(span) >= RENDERED_SPANS) this.#render();
  }

  /** All that was put together; the next list begins. */
  take(): SpanList {
    this.#render();
    const list = { count: this.#count, bytes: encoder.encode(this.#text) };
    this.#text = "";
    this.#count = 0;
    return list;
  }

  #render(): void {
    for (const span of this.#spans) {
      if (this.#text !== "") this.#text += SEPARATOR;
      this.#text += span.start.shape.text + spanText(span);
    }
    this.#spans = [];
  }
}

/** Where the spans of a list are. */
export function placesIn({ bytes }: SpanList): SpanPlace[] {
  const places: SpanPlace[] = [];
  for (let start = 0; start < bytes.length;) {
    // No span holds a line break: JSON escapes it.
    const lineBreak = bytes.indexOf(LINE_BREAK, start);
    const end = lineBreak === -1 ? bytes.length : lineBreak - (SEPARATOR.length - 1);
    places.push({ start, end });
    start = end + SEPARATOR.length;
  }
  return places;
}
