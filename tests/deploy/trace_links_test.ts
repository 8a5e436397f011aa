import { assertEquals } from "#assert";
import { encodeRateLimitRequest } from "../../src/wire/rls.ts";
import { freePort } from "../harness/free_port.ts";
import { GrpcClient, SHOULD_RATE_LIMIT } from "../harness/grpc_client.ts";
import { OtlpReceiver } from "../harness/otlp_receiver.ts";
import { startPrometheus } from "../harness/prometheus.ts";
import { needs } from "../harness/tools.ts";
import { eventually, until } from "../harness/until.ts";
import { startWeir, type WeirProcess } from "../harness/weir_process.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const REFUSED = "5bf92f3577b34da6a3ce929d0e0e4736";
const FAILED = "6bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const RULES = {
  "shop.yaml": "domain: shop\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 9 } }]\n",
};
const RESPONSE_TIME = "ratelimit_service_response_time_seconds_bucket";
/** A duration may be in the next bucket of its timer; so many calls are in more than one. */
const CALLS = 40;
/** Each thread counts for itself. */
const UNREACHABLE = { BACKEND_TYPE: "mc", MC_HOST_PORT: "127.0.0.1:1", CACHE_ON_FAILURE: "local" };
/** No protobuf message. */
const MALFORMED = new Uint8Array([255]);

for (const WORKERS of ["1", "2"]) {
  Deno.test({
    ...needs(
      ["prometheus"],
      `traces: log lines and exemplars name the spans of the collector, ${WORKERS} threads`,
    ),
    async fn(test) {
      await using receiver = await OtlpReceiver.start({ protocol: "http" });
      const metrics = `127.0.0.1:${freePort()}`;
      const env = {
        ...(WORKERS === "1" ? {} : { WORKERS, ...UNREACHABLE }),
        DISABLE_STATS: "false",
        USE_PULL_METRICS: "true",
        PULL_METRICS_ADDR: metrics,
        LOG_FORMAT: "json",
        TRACING_ENABLED: "true",
        TRACING_SAMPLING_RATE: "0",
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        OTEL_BSP_SCHEDULE_DELAY: "100",
      };
      await using weir = await startWeir({ env, rules: RULES });
      for (let asked = 0; asked < CALLS; asked++) assertEquals(await ask(weir, "shop", TRACE), 0);
      assertEquals([await ask(weir, "", REFUSED), await call(weir, MALFORMED)], [3, 13]);
      const response = await fetch(`http://${weir.httpAddress}/json`, {
        method: "POST",
        body: "{",
        headers: { traceparent: `00-${FAILED}-${PARENT}-01` },
      });
      await response.body?.cancel();
      const spanOf = (traceId: string) =>
        receiver.spans.find((span) => span.traceId === traceId && span.kind === 2);
      await until(
        "the spans",
        () => [TRACE, REFUSED, FAILED].every((traceId) => spanOf(traceId) !== undefined),
      );

      await test.step("a log line about a traced call has its trace and span", async () => {
        const text = (message: unknown, trace: unknown = "", span: unknown = "") =>
          `${message} ${trace} ${span}`;
        // The lines of another thread come by the main one, after those that it wrote in the meantime.
        await eventually(
          [
            text("HTTP request refused", FAILED, spanOf(FAILED)?.spanId),
            text("gRPC call refused", REFUSED, spanOf(REFUSED)?.spanId),
            text("gRPC call refused"),
          ].sort(),
          () => {
            const lines = weir.stderrLines.map(parsed).map((line) => {
              return text(line["@message"], line["trace_id"], line["span_id"]);
            });
            return lines.filter((line) => line.includes(" refused ")).sort();
          },
        );
      });

      await test.step("Prometheus stores exemplars that are spans", async () => {
        await using prometheus = await startPrometheus({
          target: metrics,
          flags: ["--enable-feature=exemplar-storage"],
        });
        const exemplars = await until("exemplars", async () => {
          const found = await prometheus.exemplars(RESPONSE_TIME);
          return found.length > 0 && found;
        });
        // Each span is exported some time after its call.
        await eventually([], () => {
          const spans = receiver.spans.filter(({ kind }) => kind === 2);
          const ours = new Set(spans.map(({ traceId, spanId }) => `${traceId} ${spanId}`));
          return exemplars.filter(({ labels }) => !ours.has(`${labels["trace_id"]} ${labels["span_id"]}`));
        });
      });
    },
  });
}

/** A traced call; answers its code. */
function ask(weir: WeirProcess, domain: string, traceId: string): Promise<number> {
  const descriptors = [{ entries: [{ key: "k", value: "v" }] }];
  const request = encodeRateLimitRequest({ domain, hitsAddend: 0, descriptors });
  return call(weir, request, { traceparent: `00-${traceId}-${PARENT}-01` });
}

async function call(
  weir: WeirProcess,
  request: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  using client = new GrpcClient(weir.grpcAddress);
  return (await client.unary(SHOULD_RATE_LIMIT, request, headers)).code;
}

function parsed(line: string): Record<string, unknown> {
  return line.startsWith("{") ? JSON.parse(line) : {};
}
