import { type SpanContext, TraceFlags } from "@opentelemetry/api";
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from "@opentelemetry/otlp-exporter-base/node-http";
import { emptyResource } from "@opentelemetry/resources";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-base";
import { attributesText } from "./tracing_attribute_text.ts";
import type { SpanMaker } from "./tracing_read_spans.ts";
import { placesIn, SEPARATOR, type SpanList, type SpanPlace } from "./tracing_span_list.ts";

type OnResult = Parameters<SpanExporter["export"]>[1];
type Delegate = Pick<SpanExporter, "shutdown"> & {
  forceFlush(): Promise<void>;
  export(spans: readonly TextSpan[], onResult: OnResult): void;
};

const RESOURCE = emptyResource();
const CONTEXT: SpanContext = { traceId: "", spanId: "", traceFlags: TraceFlags.SAMPLED };
const HEADERS = { "Content-Type": "application/json" };

const encoder = new TextEncoder();
const between = encoder.encode(SEPARATOR);

/** A span whose text is all that its exporter needs; the rest is what the SDK asks of one that waits. */
class TextSpan implements Pick<ReadableSpan, "resource" | "spanContext"> {
  /** The octets of the whole list, and where it is in them. */
  readonly bytes: Uint8Array;
  readonly place: SpanPlace;

  constructor(bytes: Uint8Array, place: SpanPlace) {
    this.bytes = bytes;
    this.place = place;
  }

  get resource(): ReadableSpan["resource"] {
    return RESOURCE;
  }

  spanContext(): SpanContext {
    return CONTEXT;
  }
}

/** The spans of a list, for an exporter of texts and for no other. */
export function carrySpans(list: SpanList): ReadableSpan[] {
  return placesIn(list).map((place) => {
    const span: Pick<ReadableSpan, "resource" | "spanContext"> = new TextSpan(list.bytes, place);
    return span as ReadableSpan;
  });
}

/** Sends texts of spans as they are, over the SDK's own transport, which reads the standard variables. */
export class TextExporter implements SpanExporter {
  readonly #delegate: Delegate;

  constructor(maker: SpanMaker) {
    const options = convertLegacyHttpOptions({}, "TRACES", "v1/traces", HEADERS);
    const counting = { name: "span", countItems: (spans: readonly TextSpan[]) => spans.length } as const;
    const serializer = { serializeRequest: requestWriter(maker), deserializeResponse: readResponse };
    const type = "otlp_http_span_exporter";
    this.#delegate = createOtlpHttpExportDelegate(options, serializer, type, counting, undefined);
  }

  export(spans: ReadableSpan[], onResult: OnResult): void {
    this.#delegate.export(spans.filter((span) => span instanceof TextSpan), onResult);
  }

  forceFlush(): Promise<void> {
    return this.#delegate.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#delegate.shutdown();
  }
}

/** Puts an export request around spans; what is the same in all of them is made once. */
function requestWriter({ resource, scope }: SpanMaker): (spans: readonly TextSpan[]) => Uint8Array {
  const head = encoder.encode(
    `{"resourceSpans":[{"resource":{"attributes":[${attributesText(resource.attributes)}],` +
      `"droppedAttributesCount":0},"scopeSpans":[{"scope":${JSON.stringify(scope)},"spans":[`,
  );
  const tail = encoder.encode("]}]}]}");
  return (spans) => {
    const parts = [head, ...rangesOf(spans), tail];
    const request = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of parts) {
      request.set(part, at);
      at += part.length;
    }
    return request;
  };
}

/** The octets of all spans with what is between them: those that follow each other in a list are one range. */
function rangesOf(spans: readonly TextSpan[]): Uint8Array[] {
  const ranges: Uint8Array[] = [];
  let first: TextSpan | undefined;
  let last: TextSpan | undefined;
  const endRange = () => {
    if (first === undefined || last === undefined) return;
    if (ranges.length > 0) ranges.push(between);
    ranges.push(first.bytes.subarray(first.place.start, last.place.end));
  };
  for (const span of spans) {
    const isNext = last?.bytes === span.bytes && last.place.end + between.length === span.place.start;
    if (!isNext) {
      endRange();
      first = span;
    }
    last = span;
  }
  endRange();
  return ranges;
}

/** What a collector answers; the transport tells of one that is none. */
function readResponse(bytes: Uint8Array): Record<string, unknown> {
  return bytes.length === 0 ? {} : JSON.parse(new TextDecoder().decode(bytes));
}
