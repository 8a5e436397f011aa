import { assertEquals } from "#assert";
import { ROUND_TRIP_METRICS } from "../../../src/cache/metrics.ts";
import { addExemplars } from "../../../src/serve/exemplars.ts";
import { methodMetrics } from "../../../src/stats/declarations.ts";
import { StatsStore } from "../../../src/stats/store.ts";
import { SPAN_KINDS } from "../../../src/telemetry/tracing_span_record.ts";
import { attemptSpan } from "../../../src/webhooks/service/spans.ts";
import { WEBHOOK_METRICS } from "../../../src/webhooks/service/metrics.ts";
import { SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { spanOf } from "../../harness/span_samples.ts";

const ATTEMPT = attemptSpan({
  deliveryId: "d",
  endpointId: "e",
  event: "a",
  number: 1,
  manual: false,
  result: "failed",
  startedAt: 0,
  tookMs: 1,
  status: undefined,
  errorKind: undefined,
});

const CASES: readonly [span: string, timer: string | undefined][] = [
  [SHOULD_RATE_LIMIT.slice(1), "ratelimit_server.ShouldRateLimit.response_time"],
  ["KV Pipeline Execution", "ratelimit.cache.round_trip"],
  ["MC Fetch Execution", "ratelimit.cache.round_trip"],
  [ATTEMPT.name, "ratelimit.webhooks.attempt_time"],
  ["ShouldRateLimit Execution", undefined],
  ["POST /json", undefined],
];

for (const [name, expected] of CASES) {
  Deno.test(`exemplars: the span "${name}" is one of ${expected ?? "no timer"}`, () => {
    const stats = new StatsStore(10);
    stats.addTimers(methodMetrics("ShouldRateLimit"));
    stats.addTimers(ROUND_TRIP_METRICS);
    stats.addTimers(WEBHOOK_METRICS);
    for (const timer of stats.timers().values()) timer.record(40);
    let elapsed = 1_000;
    const origin = { elapsed: () => elapsed += 40, onEnd: addExemplars(stats) };
    spanOf({ name, kind: SPAN_KINDS.server }, { epochMs: 500, startedAt: 1_000 }, origin).end();
    const seen = [...stats.timers()].flatMap(([timer, { buckets }]) =>
      Array.from(buckets, (_, bucket) => stats.timer(timer).exemplar(bucket))
        .flatMap((exemplar) => exemplar === undefined ? [] : [[timer, exemplar.ms, exemplar.endedAt]])
    );
    assertEquals(seen, expected === undefined ? [] : [[expected, 40, 1_540]]);
  });
}
