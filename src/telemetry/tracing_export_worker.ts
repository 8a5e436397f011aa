import {
  BatchSpanProcessor,
  type BatchSpanProcessorOptions,
  type ReadableSpan,
  type SpanExporter,
} from "@opentelemetry/sdk-trace";
import type { Logger } from "../base/log.ts";
import type { WorkerPort } from "../base/supervised_worker.ts";
import { EXPORT_SUCCESS, OtlpOutage, plainError, prepareSdk, serveOtlpThread } from "./otlp_thread.ts";
import { openOtlpDelegate } from "./otlp_delegate.ts";
import { type ExportOptions, maxWaitingSpans, type OtlpProtocol, positiveVariable } from "./otlp_settings.ts";
import { readSpans } from "./tracing_pack_reader.ts";
import type { SpanPack } from "./tracing_span_pack.ts";
import type { FromExporter, ToExporter } from "./tracing_export_supervisor.ts";

/** The worker's side of the connection to the main thread. */
export type ExporterPort = WorkerPort<ToExporter, FromExporter>;

const HTTP_BATCH = 1_024;
const GRPC_BATCH = 512;
const SCHEDULE_DELAY_MS = 5_000;
const EXPORT_TIMEOUT_MS = 30_000;

interface Opened {
  readonly spans: BatchSpanProcessor;
  readonly read: (pack: SpanPack) => ReadableSpan[];
}

/** Exports the spans that arrive on the port, and sends the log of the SDK back. */
export function serveSpanExport(port: ExporterPort): void {
  let opened: Opened | undefined;
  port.addEventListener("message", ({ data: message }) => {
    switch (message.type) {
      case "start":
        void open(message.options, port).then((done) => {
          opened = done;
          port.postMessage({ type: "ready" });
        }).catch((error: unknown) => port.postMessage({ type: "failed", error: plainError(error) }));
        break;
      case "spans":
        port.postMessage({ type: "taken" });
        for (const span of opened?.read(message.pack) ?? []) opened?.spans.onEnd(span);
        break;
      case "stop":
        void (opened?.spans.shutdown() ?? Promise.resolve()).then(
          () => port.postMessage({ type: "stopped" }),
          (error: unknown) => port.postMessage({ type: "failed", error: plainError(error) }),
        );
    }
  });
}

async function open(
  { protocol, otlp, attributes, version }: ExportOptions,
  port: ExporterPort,
): Promise<Opened> {
  const { logger, resource } = prepareSdk({ otlp, attributes, subject: "Tracing" }, port);
  const transformer = await import("@opentelemetry/otlp-transformer");
  const delegate = await openOtlpDelegate(protocol, {
    signal: "TRACES",
    json: transformer.JsonTraceSerializer,
    protobuf: transformer.ProtobufTraceSerializer,
    metricsHelper: transformer.TraceExporterMetricsHelper,
  });
  const onExported = () => port.postMessage({ type: "exported" });
  const exporter = logOutages(delegate, { logger, onExported });
  const source = { resource, instrumentationScope: { name: "weir", version } };
  return {
    spans: new BatchSpanProcessor({ exporter, ...batchOf(protocol) }),
    read: (pack) => readSpans(pack, source),
  };
}

/** HTTP takes larger batches than the SDK's default, because a request costs more than its spans. */
function batchOf(protocol: OtlpProtocol): Omit<BatchSpanProcessorOptions, "exporter"> {
  const maxQueueSize = maxWaitingSpans();
  // Collectors accept at most 4 MB over gRPC.
  const batch = protocol === "grpc" ? GRPC_BATCH : HTTP_BATCH;
  return {
    maxQueueSize,
    maxExportBatchSize: positiveVariable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") ?? Math.min(batch, maxQueueSize),
    scheduledDelayMillis: positiveVariable("OTEL_BSP_SCHEDULE_DELAY") ?? SCHEDULE_DELAY_MS,
    exportTimeoutMillis: positiveVariable("OTEL_BSP_EXPORT_TIMEOUT") ?? EXPORT_TIMEOUT_MS,
  };
}

/** The exporter, with each outage of the collector logged once, and its end. */
function logOutages(
  exporter: SpanExporter,
  { logger, onExported }: { readonly logger: Logger; readonly onExported: () => void },
): SpanExporter {
  const outage = new OtlpOutage(logger, {
    failed: "Cannot export spans: spans are dropped until the collector responds",
    again: "Exporting spans again",
  });
  return {
    export(spans, onResult) {
      exporter.export(spans, (result) => {
        if (outage.note(result)) onExported();
        // The SDK would log every lost batch.
        onResult({ code: EXPORT_SUCCESS });
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}

// A worker's module is the main module of its thread.
if (import.meta.main) serveOtlpThread(serveSpanExport);
