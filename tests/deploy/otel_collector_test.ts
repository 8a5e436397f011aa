import { assertEquals } from "#assert";
import { ChildProcess } from "../harness/child_process.ts";
import { freePort } from "../harness/free_port.ts";
import { needing, requireTool } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { startWeir } from "../harness/weir_process.ts";

const RULES = {
  "shop.yaml": "domain: shop\ndescriptors:\n- key: user\n  rate_limit: { unit: day, requests_per_unit: 1 }\n",
};
const HITS = "metric ratelimit_service_rate_limit_total_hits Sum";

for (const compression of ["none", "gzip"]) {
  needing("otel-collector").test(
    `OpenTelemetry Collector: its OTLP receiver takes spans and metrics over gRPC, compression ${compression}`,
    async () => {
      const port = freePort();
      await using collector = new ChildProcess(requireTool("otel-collector"), {
        args: [`127.0.0.1:${port}`],
      });
      const { stdoutLines } = collector;
      await until("the collector", () => stdoutLines.includes("ready"));
      await using weir = await startWeir({
        rules: RULES,
        env: {
          TRACING_ENABLED: "true",
          DISABLE_STATS: "false",
          OTEL_METRICS_EXPORTER: "otlp",
          OTEL_METRIC_EXPORT_INTERVAL: "200",
          OTEL_BSP_SCHEDULE_DELAY: "100",
          OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
          OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
          OTEL_EXPORTER_OTLP_COMPRESSION: compression,
        },
      });
      const body = JSON.stringify({
        domain: "shop",
        descriptors: [{ entries: [{ key: "user", value: "a" }] }],
      });
      const response = await fetch(`http://${weir.httpAddress}/json`, { method: "POST", body });
      await response.body?.cancel();
      assertEquals(response.status, 200);
      await until("a span of the call", () => stdoutLines.some((line) => line.startsWith("span ")));
      await until("the hits", () => stdoutLines.includes(HITS));
      assertEquals(await weir.stop(), 0);
      assertEquals(weir.stderrLines.filter((line) => /OTLP|[Ee]xport/.test(line)), []);
    },
  );
}
