import { assert, assertEquals } from "#assert";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { OtlpMetricsReceiver } from "../../harness/otlp_metrics_receiver.ts";
import { eventually, until } from "../../harness/until.ts";
import { startWeir } from "../../harness/weir_process.ts";

const RULES = {
  "shop.yaml":
    "domain: shop\ndescriptors: [{ key: account, rate_limit: { unit: day, requests_per_unit: 2 } }]\n",
};
const OVER = "ratelimit_service_rate_limit_over_limit";
const TIME = "ratelimit_service_response_time_seconds";
const INSTANCE = {
  TRACING_SERVICE_INSTANCE_ID: "one",
  OTEL_RESOURCE_ATTRIBUTES: "service.name=other,team=limits",
};
const CUMULATIVE = 2;
/** Each thread counts for itself. */
const UNREACHABLE = { BACKEND_TYPE: "mc", MC_HOST_PORT: "127.0.0.1:1", CACHE_ON_FAILURE: "local" };

for (const protocol of ["http/protobuf", "http/json", "grpc"] as const) {
  for (const WORKERS of protocol === "grpc" ? ["1", "2"] : ["1"]) {
    Deno.test(`metrics over OTLP: ${protocol}, ${WORKERS} threads: counters, gauges and histograms`, async () => {
      await using receiver = await OtlpMetricsReceiver.start(protocol === "grpc" ? "grpc" : "http");
      const env = {
        ...INSTANCE,
        ...(WORKERS === "1" ? {} : { WORKERS, ...UNREACHABLE }),
        DISABLE_STATS: "false",
        OTEL_METRICS_EXPORTER: "otlp",
        OTEL_METRIC_EXPORT_INTERVAL: "200",
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        EXTRA_TAGS: "zone:a",
      };
      const beforeNs = Date.now() * 1e6;
      await using weir = await startWeir({ env, rules: RULES });
      using client = new GrpcClient(weir.grpcAddress);
      for (let call = 0; call < 5; call++) await decide(client, "shop", "account=a");
      const attributes = { domain: "shop", key1: "account", zone: "a" };
      const over = await until("the hits", () => {
        const point = receiver.newest(OVER, { key1: "account" });
        return point?.value === 3 && point;
      });
      assertEquals([over.kind, over.attributes, over.isMonotonic, over.temporality], [
        "sum",
        attributes,
        true,
        CUMULATIVE,
      ]);
      assert(over.startedAt <= over.readAt && over.readAt >= beforeNs, "it was read after its start");
      assertEquals(over.resource, {
        "service.name": "RateLimit",
        "service.instance.id": "one",
        "service.version": over.resource["service.version"],
        team: "limits",
      });
      const time = await until("the times", () => {
        const point = receiver.newest(TIME, { grpc_method: "ShouldRateLimit" });
        return point?.histogram?.count === 5 && point;
      });
      const { counts = [], bounds = [], sum = 0 } = time.histogram ?? {};
      assertEquals([counts.length, counts.reduce((total, count) => total + count, 0)], [
        bounds.length + 1,
        5,
      ]);
      assertEquals([bounds[0], bounds.at(-1), sum > 0], [0.00005, 10, true]);
      assertEquals(receiver.newest("process_resident_memory_bytes")?.kind, "gauge");
      // What was counted since the last interval comes at the end.
      for (let call = 0; call < 4; call++) await decide(client, "shop", "account=a");
      assertEquals(await weir.stop(), 0);
      assertEquals(receiver.newest(OVER, { key1: "account" })?.value, 7);
    });
  }
}

Deno.test("metrics over OTLP: an outage of the collector is logged once, and nothing is lost", async () => {
  await using receiver = await OtlpMetricsReceiver.start("http");
  receiver.status = 400;
  await using stack = new AsyncDisposableStack();
  const headers = stack.adopt(
    await Deno.makeTempFile({ prefix: "weir_headers_" }),
    (path) => Deno.remove(path),
  );
  await Deno.writeTextFile(headers, "authorization=token\n");
  const env = {
    DISABLE_STATS: "false",
    OTEL_METRICS_EXPORTER: "otlp",
    OTEL_METRIC_EXPORT_INTERVAL: "100",
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${receiver.url}/own/path?token=secret`,
    OTEL_EXPORTER_OTLP_METRICS_HEADERS_FILE: headers,
  };
  await using weir = await startWeir({ env, rules: RULES });
  using client = new GrpcClient(weir.grpcAddress);
  for (let call = 0; call < 5; call++) await decide(client, "shop", "account=a");
  await until("several rejected exports", () => receiver.requests.length > 3);
  receiver.status = 200;
  await until("the hits", () => receiver.newest(OVER, { key1: "account" })?.value === 3);
  await eventually(["/own/path", "token"], () => {
    const [request] = receiver.requests;
    return [request?.path, request?.headers.get("authorization")];
  });
  const lines = await until("the log lines", () => {
    // Deno names packages of which it looks up the registry's record.
    const found = weir.stderrLines.filter((line) => line.includes("xport") && line.includes("msg="));
    return found.some((line) => line.includes("Exporting metrics again")) && found;
  });
  assertEquals(lines.map((line) => /msg="([^"]+)"/.exec(line)?.[1]), [
    "Cannot export metrics: trying again at the next interval",
    "Exporting metrics again",
  ]);
  assertEquals(weir.stderrLines.join().includes("secret"), false);
});
