import type { BatchedMetric, HistogramPoint, MetricBatch } from "../base/metric_batch.ts";
import type { Families, Family, Labels, Sample } from "./pull_families.ts";

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
  for (const family of families) {
    const { size, slice } = sliced(family, constantLabels);
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

/** The points of a metric, of which large ones have many, part by part. */
function sliced(family: Family, constantLabels: Labels): {
  readonly size: number;
  readonly slice: (start: number, end: number) => BatchedMetric;
} {
  const { name, help, kind } = family;
  const withConstants = (labels: Labels) => ({ ...constantLabels, ...labels });
  if (kind === "histogram") {
    const points = histogramsOf(family, withConstants);
    const slice = (start: number, end: number) => ({ name, help, kind, points: points.slice(start, end) });
    return { size: points.length, slice };
  }
  const finite = family.samples().filter(({ value }) => Number.isFinite(value));
  const pointOf = ({ labels, value }: Sample) => ({ labels: withConstants(labels), value });
  return {
    size: finite.length,
    slice: (start, end) => ({ name, help, kind, points: finite.slice(start, end).map(pointOf) }),
  };
}

interface Gathered {
  readonly labels: Labels;
  readonly buckets: { readonly bound: number; readonly within: number }[];
  sum: number;
}

/** The samples of each set of labels, but for the bound, as one point. */
function histogramsOf(family: Family, withConstants: (labels: Labels) => Labels): HistogramPoint[] {
  const gathered = new Map<string, Gathered>();
  for (const { labels: { le, ...labels }, metricName, value } of family.samples()) {
    const key = JSON.stringify(labels);
    let one = gathered.get(key);
    if (one === undefined) gathered.set(key, one = { labels: withConstants(labels), buckets: [], sum: 0 });
    if (le !== undefined) one.buckets.push({ bound: le === "+Inf" ? Infinity : Number(le), within: value });
    else if (metricName === `${family.name}_sum`) one.sum = value;
  }
  return [...gathered.values()].map(histogramOf);
}

/** Buckets of OTLP count what is beyond the previous bound. */
function histogramOf({ labels, buckets, sum }: Gathered): HistogramPoint {
  buckets.sort((one, other) => one.bound - other.bound);
  const counts = buckets.map(({ within }, index) => within - (buckets[index - 1]?.within ?? 0));
  const bounds = buckets.slice(0, -1).map(({ bound }) => bound);
  return { labels, bounds, counts, count: buckets.at(-1)?.within ?? 0, sum };
}
