import type { IOtlpExportDelegate } from "@opentelemetry/otlp-exporter-base";
import type { ResourceMetrics } from "@opentelemetry/sdk-metrics";
import type { WorkerPort } from "../base/supervised_worker.ts";
import { openOtlpDelegate } from "./otlp_delegate.ts";
import type { FromMetricsExporter, ToMetricsExporter } from "./otlp_metrics_export.ts";
import { type MetricSource, resourceMetricsOf } from "./otlp_metrics_points.ts";
import { OtlpOutage, plainError, prepareSdk, serveOtlpThread } from "./otlp_thread.ts";
import type { ExportOptions, OtlpProtocol } from "./otlp_settings.ts";

/** The worker's side of the connection to the main thread. */
export type MetricsExporterPort = WorkerPort<ToMetricsExporter, FromMetricsExporter>;

type Delegate = IOtlpExportDelegate<ResourceMetrics>;

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
    delegate: await openDelegate(protocol),
    source: { resource, scope: { name: "weir", version } },
    outage: new OtlpOutage(logger, {
      failed: "Cannot export metrics: trying again at the next interval",
      again: "Exporting metrics again",
    }),
  };
}

/** Opens the delegate with the serializers of metrics. */
async function openDelegate(protocol: OtlpProtocol): Promise<Delegate> {
  const transformer = await import("@opentelemetry/otlp-transformer");
  return await openOtlpDelegate(protocol, {
    signal: "METRICS",
    json: transformer.JsonMetricsSerializer,
    protobuf: transformer.ProtobufMetricsSerializer,
    metricsHelper: transformer.MetricsExporterMetricsHelper,
  });
}

// A worker's module is the main module of its thread.
if (import.meta.main) serveOtlpThread(serveMetricsExport);
