import type { BatchedMetric, MetricBatch } from "../base/metric_batch.ts";
import type { Families, HistogramSample, Labels, Sample } from "./pull_families.ts";

/** The times and labels that the batches of a read share. */
interface BatchOptions {
  readonly constantLabels: Labels;
  readonly startedAtSeconds: number;
  /** In milliseconds since the Unix epoch. */
  readonly readAt: number;
}

/** Points in a batch: a collector accepts at most 4 MB over gRPC, and labels may be long. */
const MAX_POINTS = 1_000;

/** All metrics of a read in batches; the points of one metric may be in several. */
export function* batchesOf(families: Families, options: BatchOptions): Generator<MetricBatch, void, void> {
  const { constantLabels, startedAtSeconds, readAt } = options;
  let metrics: BatchedMetric[] = [];
  let free = MAX_POINTS;
  const take = (): MetricBatch => {
    const batch = { startedAt: startedAtSeconds * 1_000, readAt, metrics };
    metrics = [];
    free = MAX_POINTS;
    return batch;
  };
  const withConstants = (labels: Labels) => ({ ...constantLabels, ...labels });
  for (const { size, slice } of slicesOf(families, withConstants)) {
    for (let at = 0; at < size;) {
      const end = Math.min(at + free, size);
      metrics.push(slice(at, end));
      free -= end - at;
      at = end;
      if (free === 0) yield take();
    }
  }
  if (metrics.length > 0) yield take();
}

/** A metric, of which large ones have many points, part by part. */
interface Sliced {
  readonly size: number;
  readonly slice: (start: number, end: number) => BatchedMetric;
}

function* slicesOf(families: Families, withConstants: (labels: Labels) => Labels): Generator<Sliced> {
  for (const family of families.histograms.values()) {
    const { name, help } = family;
    const all = family.samples();
    const pointOf = ({ labels, bounds, counts, sum }: HistogramSample) => {
      const count = counts.reduce((total, one) => total + one, 0);
      return { labels: withConstants(labels), bounds, counts, count, sum };
    };
    const slice = (start: number, end: number): BatchedMetric => {
      return { name, help, kind: "histogram", points: all.slice(start, end).map(pointOf) };
    };
    yield { size: all.length, slice };
  }
  for (const family of families.numbers.values()) {
    const { name, help } = family;
    const kind = family.kind === "counter" ? "counter" : "gauge";
    const finite = family.samples().filter(({ value }) => Number.isFinite(value));
    const pointOf = ({ labels, value }: Sample) => ({ labels: withConstants(labels), value });
    const slice = (start: number, end: number): BatchedMetric => {
      return { name, help, kind, points: finite.slice(start, end).map(pointOf) };
    };
    yield { size: finite.length, slice };
  }
}
