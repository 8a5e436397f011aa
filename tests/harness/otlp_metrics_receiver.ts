import { OtlpListener } from "./otlp_listener.ts";
import { type Attributes, attributesOf, type KeyValue } from "./otlp_receiver.ts";

/** A collector of metrics. */
export class OtlpMetricsReceiver extends OtlpListener<ExportRequest> {
  /** In the order of their arrival. */
  readonly #points: ReceivedPoint[] = [];

  /** Starts one and waits until it listens. */
  static async start(protocol: "http" | "grpc"): Promise<OtlpMetricsReceiver> {
    const receiver = new OtlpMetricsReceiver();
    await receiver.listen("Metrics", { protocol });
    return receiver;
  }

  /** The newest points of a metric, of those with all of these attributes. */
  newest(name: string, attributes: Attributes = {}): ReceivedPoint | undefined {
    const wanted = Object.entries(attributes);
    return this.#points.findLast((point) =>
      point.name === name && wanted.every(([key, value]) => point.attributes[key] === value)
    );
  }

  protected take({ resourceMetrics = [] }: ExportRequest): void {
    for (const { resource, scopeMetrics = [] } of resourceMetrics) {
      const attributes = attributesOf(resource?.attributes);
      const metrics = scopeMetrics.flatMap((scope) => scope.metrics ?? []);
      this.#points.push(...metrics.flatMap((metric) => ofMetric(metric, attributes)));
    }
  }
}

/** An export request as both encodings have it; JSON has 64-bit numbers as text. */
interface ExportRequest {
  readonly resourceMetrics?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] };
    readonly scopeMetrics?: readonly { readonly metrics?: readonly WireMetric[] }[];
  }[];
}

const KINDS = ["sum", "gauge", "histogram"] as const;

type WireMetric = { readonly name: string } & Readonly<Partial<Record<typeof KINDS[number], WireData>>>;

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

type ReceivedPoint = ReturnType<typeof ofMetric>[number];

/** A point of a histogram, or of a sum or a gauge with its value. Times are in nanoseconds, without the last digits. */
function ofMetric(metric: WireMetric, resource: Attributes) {
  return KINDS.flatMap((kind) => {
    const { dataPoints = [], aggregationTemporality: temporality, isMonotonic } = metric[kind] ?? {};
    return dataPoints.map((point) => ({
      name: metric.name,
      kind,
      temporality,
      isMonotonic,
      resource,
      attributes: attributesOf(point.attributes),
      value: kind === "histogram" ? undefined : point.asDouble ?? 0,
      histogram: kind === "histogram" ? histogramOf(point) : undefined,
      startedAt: Number(point.startTimeUnixNano),
      readAt: Number(point.timeUnixNano),
    }));
  });
}

function histogramOf({ count = 0, sum = 0, bucketCounts = [], explicitBounds = [] }: WirePoint) {
  return { count: Number(count), sum, counts: bucketCounts.map(Number), bounds: [...explicitBounds] };
}
