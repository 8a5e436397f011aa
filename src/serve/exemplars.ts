import { ROUND_TRIP_METRICS } from "../cache/metrics.ts";
import { methodMetrics } from "../stats/declarations.ts";
import type { StatsStore } from "../stats/store.ts";
import { TRIPS } from "../telemetry/tracing_decision.ts";
import type { SpanRecord } from "../telemetry/tracing_span_record.ts";
import { ATTEMPT_SPAN } from "../webhooks/service/spans.ts";
import { WEBHOOK_METRICS } from "../webhooks/service/metrics.ts";

const ROUND_TRIP = `${ROUND_TRIP_METRICS.prefix}round_trip`;
/** The timers that record the durations of spans, by the names of the spans. */
const TIMERS: ReadonlyMap<string, string> = new Map([
  [
    "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
    `${methodMetrics("ShouldRateLimit").prefix}response_time`,
  ],
  [TRIPS.kv.name, ROUND_TRIP],
  [TRIPS.mc.name, ROUND_TRIP],
  [ATTEMPT_SPAN, `${WEBHOOK_METRICS.prefix}attempt_time`],
]);

/** A function that adds each ended span to its timer as an exemplar. */
export function addExemplars(stats: Pick<StatsStore, "timers">): (span: SpanRecord) => void {
  const timers = stats.timers();
  return (span) => {
    const { shape, epochMs, startedAt } = span.start;
    const timer = timers.get(TIMERS.get(shape.name) ?? "");
    timer?.addExemplar({ span, ms: span.endedAt - startedAt, endedAt: epochMs + span.endedAt });
  };
}
