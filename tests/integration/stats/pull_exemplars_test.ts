import { assertEquals } from "@std/assert";
import type { MetricMapping } from "../../../src/stats/pull_mapping.ts";
import { PullBed, TOOK } from "../../harness/pull_bed.ts";

const SPAN = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const LABELS = `{trace_id="${SPAN.traceId}",span_id="${SPAN.spanId}"}`;
const BUCKET = "ratelimit_service_response_time_seconds_bucket";
const EXEMPLARS: readonly {
  readonly title: string;
  readonly accept: string;
  readonly mapping?: readonly MetricMapping[];
  readonly seen: readonly string[];
}[] = [
  {
    title: "OpenMetrics has them in the buckets of their durations",
    accept: "application/openmetrics-text",
    seen: [
      `${BUCKET}{grpc_method="ShouldRateLimit",le="0.00025"} 2 # ${LABELS} 0.00021 1700000000.123`,
      `${BUCKET}{grpc_method="ShouldRateLimit",le="+Inf"} 4 # ${LABELS} 20 1700000001.000`,
    ],
  },
  {
    title: "that of a hidden bucket is in the next one that is shown",
    accept: "application/openmetrics-text",
    mapping: [{ ...TOOK, bounds: [1] }],
    seen: [
      `took_ShouldRateLimit_bucket{method="ShouldRateLimit",le="1"} 3 # ${LABELS} 0.00021 1700000000.123`,
      `took_ShouldRateLimit_bucket{method="ShouldRateLimit",le="+Inf"} 4 # ${LABELS} 20 1700000001.000`,
    ],
  },
  { title: "the text format has none", accept: "text/plain", seen: [] },
];

for (const { title, accept, mapping, seen } of EXEMPLARS) {
  Deno.test(`pull metrics, exemplars: ${title}`, async () => {
    await using bed = new PullBed({ mapping });
    bed.work();
    const timer = bed.store.timer("ratelimit_server.ShouldRateLimit.response_time");
    timer.addExemplar({ span: SPAN, ms: 0.21, endedAt: 1_700_000_000_123 });
    timer.addExemplar({ span: SPAN, ms: 20_000, endedAt: 1_700_000_001_000 });
    const lines = await bed.lines("", { headers: { accept } });
    assertEquals(lines.filter((line) => line.includes("trace_id")), [...seen]);
  });
}
