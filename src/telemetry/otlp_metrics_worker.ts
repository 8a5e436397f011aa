import type { IOtlpExportDelegate } from "@opentelemetry/otlp-exporter-base";
import type { ResourceMetrics } from "@opentelemetry/sdk-metrics";
import type { WorkerPort } from "../base/supervised_worker.ts";
import type { FromMetricsExporter, ToMetricsExporter } from "./otlp_metrics_export.ts";
import { type MetricSource, resourceMetricsOf } from "./otlp_metrics_points.ts";
import { OtlpOutage, plainError, prepareSdk, serveOtlpThread } from "./otlp_thread.ts";
import type { ExportOptions, OtlpProtocol } from "./otlp_settings.ts";

/** The worker's side of the connection to the main thread. */
export type MetricsExporterPort = WorkerPort<ToMetricsExporter, FromMetricsExporter>;

type Delegate = IOtlpExportDelegate<ResourceMetrics>;

const PATH = "v1/metrics";
const GRPC_METHOD = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

interface Opened {
  readonly delegate: Delegate;
  readonly source: MetricSource;
  readonly outage: OtlpOutage;
}

/** Exports the metrics that arrive on the port, and sends the log of the SDK back. */
export function serveMetricsExport(port: MetricsExporterPort): void {
  let opened: Opened | undefined;
  port.addEventListener("message", ({ data: message }) => {
    switch (message.type) {
      case "start":
        void open(message.options, port).then((done) => {
          opened = done;
          port.postMessage({ type: "ready" });
        }).catch((error: unknown) => port.postMessage({ type: "failed", error: plainError(error) }));
        break;
      case "metrics": {
        const answer = (isAccepted: boolean) => port.postMessage({ type: "exported", isAccepted });
        if (opened === undefined) return answer(false);
        const { delegate, source, outage } = opened;
        delegate.export(resourceMetricsOf(message.batch, source), (result) => answer(outage.note(result)));
        break;
      }
      case "ping":
        port.postMessage({ type: "alive" });
    }
  });
}

async function open(
  { protocol, otlp, attributes, version }: ExportOptions,
  port: MetricsExporterPort,
): Promise<Opened> {
  const { logger, resource } = prepareSdk({ otlp, attributes, subject: "Metrics export" }, port);
  return {
    delegate: protocol === "grpc" ? await grpcDelegate() : await httpDelegate(protocol),
    source: { resource, scope: { name: "weir", version } },
    outage: new OtlpOutage(logger, {
      failed: "Cannot export metrics: trying again at the next interval",
      again: "Exporting metrics again",
    }),
  };
}

/** As the exporters of metrics of the SDK do it: see docs/dependencies.md. */
async function httpDelegate(protocol: Exclude<OtlpProtocol, "grpc">): Promise<Delegate> {
  const [base, transformer] = await Promise.all([
    import("@opentelemetry/otlp-exporter-base/node-http"),
    import("@opentelemetry/otlp-transformer"),
  ]);
  const isJson = protocol === "http/json";
  const type = isJson ? "application/json" : "application/x-protobuf";
  return base.createOtlpHttpExportDelegate(
    base.convertLegacyHttpOptions({}, "METRICS", PATH, { "Content-Type": type }),
    isJson ? transformer.JsonMetricsSerializer : transformer.ProtobufMetricsSerializer,
    "otlp_http_metric_exporter",
    transformer.MetricsExporterMetricsHelper,
    undefined,
  );
}

async function grpcDelegate(): Promise<Delegate> {
  const [base, transformer] = await Promise.all([
    import("@opentelemetry/otlp-grpc-exporter-base"),
    import("@opentelemetry/otlp-transformer"),
  ]);
  return base.createOtlpGrpcExportDelegate(
    base.convertLegacyOtlpGrpcOptions({}, "METRICS"),
    transformer.ProtobufMetricsSerializer,
    "otlp_grpc_metric_exporter",
    transformer.MetricsExporterMetricsHelper,
    undefined,
    "MetricsExportService",
    GRPC_METHOD,
  );
}

// A worker's module is the main module of its thread.
if (import.meta.main) serveOtlpThread(serveMetricsExport);
