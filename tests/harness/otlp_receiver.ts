import { join } from "node:path";
import protobuf from "protobufjs";
import { type GrpcPeer, startGrpcPeer } from "./grpc_peer.ts";

/** A span as a collector sees it. */
export interface ReceivedSpan {
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

/** How a receiver listens and answers. */
export interface OtlpReceiverOptions {
  readonly protocol: "http" | "grpc";
  /** A free one when absent. */
  readonly port?: number;
}

/** A collector of the test: takes spans by OTLP over HTTP (JSON or protobuf) or gRPC, and decodes them. */
export class OtlpReceiver implements AsyncDisposable {
  /** What arrived, in its order. */
  readonly spans: ReceivedSpan[] = [];
  /** Path and headers of each request; of HTTP only. */
  readonly requests: { readonly path: string; readonly headers: Headers }[] = [];
  #server: Deno.HttpServer<Deno.NetAddr> | undefined;
  #peer: GrpcPeer | undefined;
  #url = "";

  /** Starts one and waits until it listens. */
  static async start({ protocol, port = 0 }: OtlpReceiverOptions): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    if (protocol === "http") await receiver.#listenHttp(port);
    else await receiver.#listenGrpc(port);
    return receiver;
  }

  /** What `OTEL_EXPORTER_OTLP_ENDPOINT` is to be. */
  get url(): string {
    return this.#url;
  }

  /** The one span of this name; throws when there is not exactly one. */
  one(name: string): ReceivedSpan {
    const found = this.spans.filter((span) => span.name === name);
    const [span] = found;
    if (span !== undefined && found.length === 1) return span;
    throw new Error(`Cannot find one span "${name}": there are ${found.length}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.shutdown();
    this.#peer?.[Symbol.dispose]();
  }

  async #listenHttp(port: number): Promise<void> {
    const decode = await requestDecoder();
    const options = { hostname: "127.0.0.1", port, onListen: () => {} };
    this.#server = Deno.serve(options, async (request) => {
      this.requests.push({ path: new URL(request.url).pathname, headers: request.headers });
      const [body, isJson] = [
        await bytesOf(request),
        request.headers.get("content-type") === "application/json",
      ];
      this.spans.push(...spansOf(isJson ? JSON.parse(new TextDecoder().decode(body)) : decode(body)));
      // Without an idle connection that outlives the test.
      return new Response(isJson ? "{}" : null, { headers: { connection: "close" } });
    });
    this.#url = `http://127.0.0.1:${this.#server.addr.port}`;
  }

  async #listenGrpc(port: number): Promise<void> {
    const decode = await requestDecoder();
    this.#peer = await startGrpcPeer("/opentelemetry.proto.collector.trace.v1.TraceService/Export", {
      listen: `127.0.0.1:${port}`,
      answer: (bytes) => {
        this.spans.push(...spansOf(decode(bytes)));
        return new Uint8Array(0);
      },
    });
    this.#url = `http://127.0.0.1:${this.#peer.port}`;
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

/** The body of a request, which may be compressed. */
export async function bytesOf({ headers, body }: Request): Promise<Uint8Array> {
  if (headers.get("content-encoding") !== "gzip" || body === null) return await new Response(body).bytes();
  return await new Response(body.pipeThrough(new DecompressionStream("gzip"))).bytes();
}

async function requestDecoder(): Promise<(bytes: Uint8Array) => ExportRequest> {
  const path = join(import.meta.dirname ?? ".", "../testdata/otlp_trace.proto");
  const { root } = protobuf.parse(await Deno.readTextFile(path));
  const message = root.lookupType("opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest");
  return (bytes) => message.toObject(message.decode(bytes), { longs: Number, arrays: true });
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
