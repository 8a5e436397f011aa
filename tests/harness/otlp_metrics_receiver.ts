import { OtlpListener } from "./otlp_listener.ts";
import { type Attributes, attributesOf, type KeyValue } from "./otlp_receiver.ts";

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

/** A collector of metrics. */
export class OtlpMetricsReceiver extends OtlpListener<ExportRequest> {
  /** The points of each request, in the order of their arrival. */
  readonly exports: (readonly ReceivedPoint[])[] = [];

  /** Starts one and waits until it listens. */
  static async start(protocol: "http" | "grpc"): Promise<OtlpMetricsReceiver> {
    const receiver = new OtlpMetricsReceiver();
    await receiver.listen("Metrics", { protocol });
    return receiver;
  }

  /** The newest points of a metric, of those with all of these attributes. */
  newest(name: string, attributes: Attributes = {}): ReceivedPoint | undefined {
    const wanted = Object.entries(attributes);
    return this.exports.flat().findLast((point) =>
      point.name === name && wanted.every(([key, value]) => point.attributes[key] === value)
    );
  }

  protected take(request: ExportRequest): void {
    this.exports.push(pointsOf(request));
  }
}

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
