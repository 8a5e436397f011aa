/** A part of the metrics that were read together, as it is sent to another thread. */
export interface MetricBatch {
  /** When counting began, in milliseconds since the Unix epoch. */
  readonly startedAt: number;
  /** When the metrics were read. */
  readonly readAt: number;
  readonly metrics: readonly BatchedMetric[];
}

/** A metric, or a part of its points. */
export type BatchedMetric = MetricFacts & (NumberPoints | HistogramPoints);

/** The name and the meaning of a metric. */
interface MetricFacts {
  readonly name: string;
  readonly help: string;
}

/** Numbers, one for each set of labels. */
interface NumberPoints {
  readonly kind: "counter" | "gauge";
  readonly points: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

/** Distributions. */
interface HistogramPoints {
  readonly kind: "histogram";
  readonly points: readonly HistogramPoint[];
}

/** The distribution of one set of labels. */
interface HistogramPoint {
  readonly labels: Readonly<Record<string, string>>;
  /** Upper bounds of the buckets but the last. */
  readonly bounds: readonly number[];
  /** One more than bounds. */
  readonly counts: readonly number[];
  readonly count: number;
  readonly sum: number;
}
