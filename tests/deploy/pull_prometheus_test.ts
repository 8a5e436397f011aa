import { assertEquals } from "#assert";
import { promtool, startPrometheus } from "../harness/prometheus.ts";
import { needs } from "../harness/tools.ts";
import { PullBed } from "../harness/pull_bed.ts";

const QUERIES: readonly [query: string, metric: Readonly<Record<string, string>>, value: string][] = [
  [
    "ratelimit_service_rate_limit_over_limit > 0",
    { __name__: "ratelimit_service_rate_limit_over_limit", domain: "shop", key1: "account" },
    "4",
  ],
  [
    'ratelimit_service_rate_limit_total_hits{key2="path"}',
    {
      __name__: "ratelimit_service_rate_limit_total_hits",
      domain: "shop",
      key1: "host_a.example",
      key2: "path",
    },
    "2",
  ],
  [
    "histogram_quantile(0.5, ratelimit_service_response_time_seconds_bucket)",
    { grpc_method: "ShouldRateLimit" },
    "0.00025",
  ],
  ["ratelimit_kv_pool_cx_active", { __name__: "ratelimit_kv_pool_cx_active" }, "10"],
];

Deno.test({
  ...needs(["prometheus"], "pull metrics: Prometheus scrapes a running handler and knows the values"),
  async fn() {
    await using bed = new PullBed({ extraTags: new Map([["zone", "a"]]) });
    bed.work();
    await using prometheus = await startPrometheus({ target: bed.address });
    const place = { instance: bed.address, job: "weir", zone: "a" };
    const seen = await prometheus.answers(QUERIES.map(([query]) => query));
    assertEquals(seen, QUERIES.map(([, metric, value]) => [{ metric: { ...metric, ...place }, value }]));
  },
});

for (const native of [false, true]) {
  const name = `pull metrics: promtool reads ${native ? "native" : "mapped"} metrics`;
  Deno.test({
    ...needs(["promtool"], name),
    async fn() {
      await using bed = new PullBed({ native });
      bed.work();
      const text = await (await bed.fetch()).text();
      const { output } = await promtool(["check", "metrics"], text);
      // The names that known dashboards look for lack that end; nothing else may be found.
      const findings = output.split("\n").filter((line) => line !== "" && !line.includes('"_total" suffix'));
      assertEquals(findings, []);
      assertEquals(output.includes("ratelimit_rule_"), false);
    },
  });
}
