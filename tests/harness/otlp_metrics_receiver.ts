import { join } from "node:path";
import protobuf from "protobufjs";
import { type GrpcPeer, startGrpcPeer } from "./grpc_peer.ts";
import { type Attributes, attributesOf, bytesOf, type KeyValue } from "./otlp_receiver.ts";

/** A data point as a collector sees it. */
export interface ReceivedPoint {
  readonly name: string;
  readonly kind: "sum" | "gauge" | "histogram";
  readonly attributes: Attributes;
  /** Of a sum or a gauge. */
  readonly value?: number;
  /** Of a histogram. */
  readonly histogram?: {
    readonly count: number;
    readonly sum: number;
    readonly counts: readonly number[];
    readonly bounds: readonly number[];
  };
  /** In nanoseconds, without the last digits. */
  readonly startedAt: number;
  readonly readAt: number;
  /** 2 cumulative; of sums and histograms. */
  readonly temporality?: number;
  readonly isMonotonic?: boolean;
  readonly resource: Attributes;
}

/** A collector of the test: takes metrics by OTLP over HTTP (JSON or protobuf) or gRPC, and decodes them. */
export class OtlpMetricsReceiver implements AsyncDisposable {
  /** The points of each request, in the order of their arrival. */
  readonly exports: (readonly ReceivedPoint[])[] = [];
  /** Path and headers of each request; of HTTP only. */
  readonly requests: { readonly path: string; readonly headers: Headers }[] = [];
  /** Status of each answer over HTTP from now on. */
  status = 200;
  /** What `OTEL_EXPORTER_OTLP_ENDPOINT` is to be. */
  url = "";
  #server: Deno.HttpServer<Deno.NetAddr> | undefined;
  #peer: GrpcPeer | undefined;

  /** Starts one and waits until it listens. */
  static async start(protocol: "http" | "grpc"): Promise<OtlpMetricsReceiver> {
    const receiver = new OtlpMetricsReceiver();
    const decode = await requestDecoder();
    if (protocol === "http") receiver.#listenHttp(decode);
    else await receiver.#listenGrpc(decode);
    return receiver;
  }

  /** The newest points of a metric, of those with all of these attributes. */
  newest(name: string, attributes: Attributes = {}): ReceivedPoint | undefined {
    const wanted = Object.entries(attributes);
    return this.exports.flat().findLast((point) =>
      point.name === name && wanted.every(([key, value]) => point.attributes[key] === value)
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.shutdown();
    this.#peer?.[Symbol.dispose]();
  }

  #listenHttp(decode: Decode): void {
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
      const { headers } = request;
      this.requests.push({ path: new URL(request.url).pathname, headers });
      const isJson = headers.get("content-type") === "application/json";
      const body = await bytesOf(request);
      if (this.status === 200) {
        this.exports.push(pointsOf(isJson ? JSON.parse(new TextDecoder().decode(body)) : decode(body)));
      }
      const { status } = this;
      // Without an idle connection that outlives the test.
      return new Response(isJson ? "{}" : null, { status, headers: { connection: "close" } });
    });
    this.url = `http://127.0.0.1:${this.#server.addr.port}`;
  }

  async #listenGrpc(decode: Decode): Promise<void> {
    this.#peer = await startGrpcPeer("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", {
      answer: (bytes) => {
        this.exports.push(pointsOf(decode(bytes)));
        return new Uint8Array(0);
      },
    });
    this.url = `http://127.0.0.1:${this.#peer.port}`;
  }
}

type Decode = (bytes: Uint8Array) => ExportRequest;

/** An export request as both encodings have it; JSON has 64-bit numbers as text. */
interface ExportRequest {
  readonly resourceMetrics?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] };
    readonly scopeMetrics?: readonly { readonly metrics?: readonly WireMetric[] }[];
  }[];
}

type WireMetric = { readonly name: string } & Readonly<Partial<Record<ReceivedPoint["kind"], WireData>>>;

interface WireData {
  readonly dataPoints?: readonly WirePoint[];
  readonly aggregationTemporality?: number;
  readonly isMonotonic?: boolean;
}

interface WirePoint {
  readonly attributes?: readonly KeyValue[];
  readonly startTimeUnixNano: number | string;
  readonly timeUnixNano: number | string;
  readonly asDouble?: number;
  readonly count?: number | string;
  readonly sum?: number;
  readonly bucketCounts?: readonly (number | string)[];
  readonly explicitBounds?: readonly number[];
}

async function requestDecoder(): Promise<Decode> {
  const path = join(import.meta.dirname ?? ".", "../testdata/otlp_metrics.proto");
  const { root } = protobuf.parse(await Deno.readTextFile(path));
  const message = root.lookupType("opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest");
  return (bytes) => message.toObject(message.decode(bytes), { longs: Number });
}

function pointsOf({ resourceMetrics = [] }: ExportRequest): ReceivedPoint[] {
  return resourceMetrics.flatMap(({ resource, scopeMetrics = [] }) => {
    const attributes = attributesOf(resource?.attributes);
    return scopeMetrics.flatMap(({ metrics = [] }) =>
      metrics.flatMap((metric) => ofMetric(metric, attributes))
    );
  });
}

function ofMetric(metric: WireMetric, resource: Attributes): ReceivedPoint[] {
  return (["sum", "gauge", "histogram"] as const).flatMap((kind) => {
    const { dataPoints = [], aggregationTemporality: temporality, isMonotonic } = metric[kind] ?? {};
    return dataPoints.map((point) => ({
      name: metric.name,
      kind,
      attributes: attributesOf(point.attributes),
      ...(kind === "histogram" ? { histogram: histogramOf(point) } : { value: point.asDouble ?? 0 }),
      startedAt: Number(point.startTimeUnixNano),
      readAt: Number(point.timeUnixNano),
      ...(temporality === undefined ? {} : { temporality }),
      ...(isMonotonic === undefined ? {} : { isMonotonic }),
      resource,
    }));
  });
}

function histogramOf({ count = 0, sum = 0, bucketCounts = [], explicitBounds = [] }: WirePoint) {
  return { count: Number(count), sum, counts: bucketCounts.map(Number), bounds: [...explicitBounds] };
}
