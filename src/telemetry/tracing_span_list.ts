import { PackReader } from "./tracing_pack_reader.ts";
import type { SpanPack } from "./tracing_span_pack.ts";
import { spanText } from "./tracing_span_text.ts";

/** Texts of spans. */
export interface SpanList {
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

const encoder = new TextEncoder();

/** The spans of a pack as texts. */
export function renderSpans(pack: SpanPack): SpanList {
  const reader = new PackReader(pack);
  const texts = Array.from({ length: pack.count }, () => spanText(reader.next()));
  return { bytes: encoder.encode(texts.join(SEPARATOR)) };
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
