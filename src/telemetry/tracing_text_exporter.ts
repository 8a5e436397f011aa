import { type SpanContext, TraceFlags } from "@opentelemetry/api";
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from "@opentelemetry/otlp-exporter-base/node-http";
import { emptyResource } from "@opentelemetry/resources";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-base";
import { attributesText } from "./tracing_attribute_text.ts";
import type { SpanMaker } from "./tracing_read_spans.ts";
import { type ListedSpan, readSpanList, type SpanList } from "./tracing_span_list.ts";

type OnResult = Parameters<SpanExporter["export"]>[1];
type Delegate = Pick<SpanExporter, "shutdown"> & {
  forceFlush(): Promise<void>;
  export(spans: readonly TextSpan[], onResult: OnResult): void;
};

const RESOURCE = emptyResource();
const CONTEXT: SpanContext = { traceId: "", spanId: "", traceFlags: TraceFlags.SAMPLED };
const HEADERS = { "Content-Type": "application/json" };
const COMMA = 44;

const encoder = new TextEncoder();

/** A span whose text is all that its exporter needs; the rest is what the SDK asks of one that waits. */
class TextSpan implements Pick<ReadableSpan, "resource" | "spanContext"> {
  readonly listed: ListedSpan;

  constructor(listed: ListedSpan) {
    this.listed = listed;
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
  return readSpanList(list).map((listed) => {
    const span: Pick<ReadableSpan, "resource" | "spanContext"> = new TextSpan(listed);
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
    let length = head.length + tail.length + Math.max(0, spans.length - 1);
    for (const { listed: { shape, rest } } of spans) length += shape.length + rest.length;
    const request = new Uint8Array(length);
    request.set(head);
    let at = head.length;
    for (const { listed: { shape, rest } } of spans) {
      if (at > head.length) request[at++] = COMMA;
      request.set(shape, at);
      at += shape.length;
      request.set(rest, at);
      at += rest.length;
    }
    request.set(tail, at);
    return request;
  };
}

/** What a collector answers; the transport tells of one that is none. */
function readResponse(bytes: Uint8Array): Record<string, unknown> {
  return bytes.length === 0 ? {} : JSON.parse(new TextDecoder().decode(bytes));
}
