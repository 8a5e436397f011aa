import type { SpanRecord } from "./tracing_span_record.ts";
import { spanText } from "./tracing_span_text.ts";

/** Texts of spans as they are sent to another thread. */
export interface SpanList {
  /** Texts of the shapes that the spans have. */
  readonly shapes: readonly string[];
  /**
   * A line for each span, in UTF-8 and with a line break between two: the place of its shape in decimal
   * digits, and what follows the shape's text, which begins with no digit.
   */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A span in OTLP's JSON, in two parts. */
export interface ListedSpan {
  readonly shape: Uint8Array;
  readonly rest: Uint8Array;
}

const LINE_BREAK = 10;
const DIGIT_0 = 48;
const DIGIT_9 = 57;

const encoder = new TextEncoder();

/** Puts texts of spans together. What spans have in common is in a list once, so less has to be copied. */
export class SpanListWriter {
  #shapes: string[] = [];
  #lines: string[] = [];

  /** Number of spans. */
  get count(): number {
    return this.#lines.length;
  }

  /** Puts a span that is over behind the others. */
  add(span: SpanRecord): void {
    const { text } = span.start.shape;
    // There are few, and texts that are the same are mostly the same object.
    let place = this.#shapes.indexOf(text);
    if (place === -1) place = this.#shapes.push(text) - 1;
    this.#lines.push(`${place}${spanText(span)}`);
  }

  /** All that was put together; the next list begins. */
  take(): SpanList {
    // No line holds a line break: JSON escapes it.
    const list = { shapes: this.#shapes, bytes: encoder.encode(this.#lines.join("\n")) };
    this.#shapes = [];
    this.#lines = [];
    return list;
  }
}

/** The spans of a list; their octets are not copied. */
export function readSpanList({ shapes, bytes }: SpanList): ListedSpan[] {
  const shapeBytes = shapes.map((text) => encoder.encode(text));
  const spans: ListedSpan[] = [];
  for (let start = 0; start < bytes.length;) {
    const lineBreak = bytes.indexOf(LINE_BREAK, start);
    const end = lineBreak === -1 ? bytes.length : lineBreak;
    let place = 0;
    for (let digit = bytes[start]; digit !== undefined && isDigit(digit); digit = bytes[++start]) {
      place = place * 10 + digit - DIGIT_0;
    }
    const shape = shapeBytes[place];
    if (shape !== undefined) spans.push({ shape, rest: bytes.subarray(start, end) });
    start = end + 1;
  }
  return spans;
}

function isDigit(octet: number): boolean {
  return octet >= DIGIT_0 && octet <= DIGIT_9;
}
