import process from "node:process";
import { diag, DiagLogLevel } from "@opentelemetry/api";
import type { IOtlpExportDelegate } from "@opentelemetry/otlp-exporter-base";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { systemClock } from "../base/clock.ts";
import { EpisodeLog } from "../base/episode_log.ts";
import { type Logger, portLogger } from "../base/log.ts";
import { captureConsole } from "../base/standard_streams.ts";
import type { WorkerPort } from "../threads/supervised_worker.ts";
import { lowerPriority } from "../threads/thread_priority.ts";
import { openOtlpDelegate, type OtlpSerializers } from "./otlp_delegate.ts";
import type { ExportOptions, FromOtlpWorker, OtlpBatch, ToOtlpWorker } from "./otlp_exporter.ts";
import { plainError, sdkLog } from "./otlp_log.ts";
import { resourceMetricsOf } from "./otlp_metrics_points.ts";
import { guardProcess } from "./process_guard.ts";
import { readSpans } from "./tracing_pack_reader.ts";

type Port = WorkerPort<ToOtlpWorker, FromOtlpWorker>;

/** Exports a batch; returns whether the collector accepted it. */
type Export = (batch: OtlpBatch) => Promise<boolean>;

/** The code of an export that the collector accepted, by the SDK. */
const SUCCESS = 0;
const TEXTS = {
  TRACES: {
    failed: "Cannot export spans: spans are dropped until the collector responds",
    again: "Exporting spans again",
  },
  METRICS: {
    failed: "Cannot export metrics: trying again at the next interval",
    again: "Exporting metrics again",
  },
} as const;

/** Exports the batches that arrive on the port. */
function serve(port: Port, logger: Logger): void {
  let exporting: Promise<Export> | undefined;
  const fail = (error: unknown) => port.postMessage({ type: "failed", error: plainError(error) });
  port.addEventListener("message", ({ data: message }) => {
    switch (message.type) {
      case "start":
        exporting = openExport(message.options, logger);
        return void exporting.then(() => port.postMessage({ type: "ready" })).catch(fail);
      case "export": {
        const { id, batch } = message;
        const answer = (isAccepted: boolean) => port.postMessage({ type: "exported", id, isAccepted });
        return void exporting?.then((send) => send(batch)).then(answer).catch(fail);
      }
      case "ping":
        return port.postMessage({ type: "alive" });
    }
  });
}

async function openExport(options: ExportOptions, logger: Logger): Promise<Export> {
  const { otlp, attributes, version, protocols } = options;
  // The exporters log what they cannot use while they are constructed.
  const log = sdkLog({ logger, clock: systemClock, otlp });
  diag.setLogger(log, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  // The exporters read their options from the environment, which lacks those that come from secret files.
  const variables = [...otlp].map(([option, value]) => [`OTEL_EXPORTER_OTLP_${option}`, value]);
  process.env = { ...process.env, ...Object.fromEntries(variables) };
  const resource = detectResources({ detectors: [envDetector] }).merge(resourceFromAttributes(attributes));
  const scope = { name: "weir", version };
  const transformer = await import("@opentelemetry/otlp-transformer");
  const open = async <Internal>(serializers: OtlpSerializers<Internal>) => {
    const protocol = protocols[serializers.signal];
    if (protocol === undefined) return undefined;
    return await openOtlpDelegate(protocol, otlp, serializers);
  };
  const spans = await open({
    signal: "TRACES",
    json: transformer.JsonTraceSerializer,
    protobuf: transformer.ProtobufTraceSerializer,
    metricsHelper: transformer.TraceExporterMetricsHelper,
  });
  const metrics = await open({
    signal: "METRICS",
    json: transformer.JsonMetricsSerializer,
    protobuf: transformer.ProtobufMetricsSerializer,
    metricsHelper: transformer.MetricsExporterMetricsHelper,
  });
  const outages = { TRACES: new EpisodeLog(systemClock), METRICS: new EpisodeLog(systemClock) };
  return async (batch) => {
    const { error, code } = batch.signal === "TRACES"
      ? await exported(spans, readSpans(batch.spans, { resource, instrumentationScope: scope }))
      : await exported(metrics, resourceMetricsOf(batch.metrics, { resource, scope }));
    const [outage, texts] = [outages[batch.signal], TEXTS[batch.signal]];
    if (code === SUCCESS) outage.end(() => logger.warning(texts.again));
    else outage.begin(() => logger.warning(texts.failed, { error }));
    return code === SUCCESS;
  };
}

/** The end of an export. */
interface Result {
  readonly code: number;
  readonly error?: Error;
}

function exported<Items>(delegate: IOtlpExportDelegate<Items> | undefined, items: Items): Promise<Result> {
  if (delegate === undefined) return Promise.reject(new Error("the signal is not exported"));
  return new Promise((resolve) => delegate.export(items, resolve));
}

/** A logger that sends its lines to the main thread, with fields that can be sent. */
function exporterLogger(port: Port): Logger {
  return portLogger({
    postMessage({ fields, ...line }) {
      const sent = Object.entries(fields).map(([name, value]) => [name, plain(value)]);
      port.postMessage({ ...line, fields: Object.fromEntries(sent) });
    },
  });
}

function plain(value: unknown): unknown {
  if (value instanceof Error) return plainError(value);
  return typeof value === "number" ? value : String(value);
}

// A worker's module is the main module of its thread.
if (import.meta.main) {
  lowerPriority();
  const port = globalThis as unknown as Port;
  const logger = exporterLogger(port);
  captureConsole(logger);
  guardProcess({ logger, clock: systemClock, onUnexpected: () => {} });
  serve(port, logger);
}
