import { OtlpListener, type OtlpListenOptions } from "./otlp_listener.ts";

/** A span as a collector sees it. */
interface ReceivedSpan {
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  /** Hexadecimal. */
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for none. */
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly attributes: Attributes;
  /** 0 unset, 2 error. */
  readonly status: { readonly code: number; readonly message: string };
  readonly resource: Attributes;
}

/** Attributes by name. */
export type Attributes = Readonly<Record<string, unknown>>;

/** A collector of spans. */
export class OtlpReceiver extends OtlpListener<ExportRequest> {
  readonly spans: ReceivedSpan[] = [];

  /** Starts one and waits until it listens. */
  static async start(options: OtlpListenOptions): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    await receiver.listen("Trace", options);
    return receiver;
  }

  /** The one span of this name; throws when there is not exactly one. */
  one(name: string): ReceivedSpan {
    const found = this.spans.filter((span) => span.name === name);
    const [span] = found;
    if (span !== undefined && found.length === 1) return span;
    throw new Error(`Cannot find one span "${name}": there are ${found.length}`);
  }

  protected take(request: ExportRequest): void {
    this.spans.push(...spansOf(request));
  }
}

/** An export request as both encodings have it; ids are text in JSON and bytes in protobuf. */
interface ExportRequest {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] };
    readonly scopeSpans?: readonly { readonly spans?: readonly WireSpan[] }[];
  }[];
}

interface WireSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string | Uint8Array;
  readonly spanId: string | Uint8Array;
  readonly parentSpanId?: string | Uint8Array;
  readonly traceState?: string;
  readonly attributes?: readonly KeyValue[];
  readonly status?: { readonly code?: number; readonly message?: string };
}

/** An attribute as both encodings have it. */
export interface KeyValue {
  readonly key: string;
  readonly value: Attributes;
}

function spansOf({ resourceSpans = [] }: ExportRequest): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) => {
    const attributes = attributesOf(resource?.attributes);
    return scopeSpans.flatMap(({ spans = [] }) => spans.map((span) => spanOf(span, attributes)));
  });
}

function spanOf(span: WireSpan, resource: Attributes): ReceivedSpan {
  return {
    name: span.name,
    kind: span.kind,
    traceId: hex(span.traceId),
    spanId: hex(span.spanId),
    parentSpanId: hex(span.parentSpanId ?? ""),
    traceState: span.traceState ?? "",
    attributes: attributesOf(span.attributes),
    status: { code: span.status?.code ?? 0, message: span.status?.message ?? "" },
    resource,
  };
}

/** Attributes by name. */
export function attributesOf(pairs: readonly KeyValue[] = []): Attributes {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]));
}

function hex(id: string | Uint8Array): string {
  return typeof id === "string" ? id : new Uint8Array(id).toHex();
}
