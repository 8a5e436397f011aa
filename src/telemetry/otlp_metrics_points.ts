import { type HrTime, ValueType } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  DataPointType,
  type MetricData,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import type { BatchedMetric, MetricBatch } from "../base/metric_batch.ts";

/** All metrics of a process have these in common. */
interface MetricSource {
  readonly resource: Resource;
  readonly scope: { readonly name: string; readonly version?: string };
}

interface Times {
  readonly startTime: HrTime;
  readonly endTime: HrTime;
}

/** A batch as the serializers of the SDK read it. */
export function resourceMetricsOf(
  { startedAt, readAt, metrics }: MetricBatch,
  { resource, scope }: MetricSource,
): ResourceMetrics {
  const times = { startTime: hrTime(startedAt), endTime: hrTime(readAt) };
  return { resource, scopeMetrics: [{ scope, metrics: metrics.map((metric) => dataOf(metric, times)) }] };
}

function dataOf(metric: BatchedMetric, times: Times): MetricData {
  const { name, help } = metric;
  const shared = {
    descriptor: { name, description: help, unit: "", valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  if (metric.kind === "histogram") {
    const dataPoints = metric.points.map(({ labels, bounds, counts, count, sum }) => ({
      ...times,
      attributes: labels,
      value: { buckets: { boundaries: [...bounds], counts: [...counts] }, count, sum },
    }));
    return { ...shared, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = metric.points.map(({ labels, value }) => ({ ...times, attributes: labels, value }));
  return metric.kind === "counter"
    ? { ...shared, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...shared, dataPointType: DataPointType.GAUGE, dataPoints };
}

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)];
}
