import { diag, DiagLogLevel } from "@opentelemetry/api";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type ReadableSpan } from "@opentelemetry/sdk-trace-base";
import { systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { giveWay } from "../base/thread_priority.ts";
import type { LogFields, Logger } from "../base/log.ts";
import { captureConsole } from "../base/standard_streams.ts";
import { guardProcess } from "./process_guard.ts";
import type { ExportOptions, FromExporter, ToExporter } from "./tracing_export_message.ts";
import { maxWaitingSpans, positiveVariable } from "./tracing_batch_size.ts";
import { createSpanExporter } from "./tracing_exporter.ts";
import { renderSpans, type SpanList } from "./tracing_span_list.ts";
import { createSdkLog } from "./tracing_sdk_log.ts";

/** The worker's side of its line to the main thread. */
export interface ExporterPort {
  postMessage(message: FromExporter): void;
  addEventListener(type: "message", listener: (event: MessageEvent<ToExporter>) => void): void;
}

interface Opened {
  readonly spans: BatchSpanProcessor;
  readonly read: (list: SpanList) => ReadableSpan[];
}

const HTTP_BATCH = 1_024;

/** Exports the spans that come over the port; what the SDK has to say goes back over it. */
export function serveSpanExport(port: ExporterPort): void {
  let opened: Opened | undefined;
  port.addEventListener("message", ({ data: message }) => {
    switch (message.type) {
      case "start":
        void open(message.options, port).then((done) => {
          opened = done;
          port.postMessage({ type: "ready" });
        }).catch((error: unknown) => port.postMessage({ type: "refused", error: plainError(error) }));
        break;
      case "spans":
        port.postMessage({ type: "taken" });
        if (opened !== undefined) {
          for (const span of opened.read(renderSpans(message.pack))) opened.spans.onEnd(span);
        }
        break;
      case "close":
        void (opened?.spans.shutdown() ?? Promise.resolve()).then(() => undefined, plainError)
          .then((error) => port.postMessage({ type: "closed", error }));
    }
  });
}

async function open(
  { protocol, otlp, attributes, version }: ExportOptions,
  port: ExporterPort,
): Promise<Opened> {
  const logger = portLogger(port);
  const log = createSdkLog({ logger, clock: systemClock, otlp });
  // Before anything else, because the exporters tell what they cannot use while they are made.
  diag.setLogger(log, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const resource = detectResources({ detectors: [envDetector] }).merge(resourceFromAttributes(attributes));
  const maker = { resource, scope: { name: "weir", version } };
  const { exporter, read } = await createSpanExporter({
    ...{ protocol, logger, maker },
    onExported: () => port.postMessage({ type: "exported" }),
  });
  // At most 2,048 spans wait, and further ones are dropped, unless OTEL_BSP_MAX_QUEUE_SIZE says otherwise.
  return { spans: new BatchSpanProcessor(exporter, batchOf(protocol)), read };
}

/**
 * Where no size of a request is asked for, HTTP takes larger ones than the SDK's: a request costs more than the
 * spans in it. Collectors take less over gRPC, 4 MB.
 */
function batchOf(protocol: "http" | "grpc"): { readonly maxExportBatchSize?: number } {
  if (protocol === "grpc" || positiveVariable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") !== undefined) return {};
  return { maxExportBatchSize: Math.min(HTTP_BATCH, maxWaitingSpans()) };
}

/** Sends lines to the main thread; those of no weight stay here. */
function portLogger(port: ExporterPort): Logger {
  const log = (level: "warning" | "error") => (message: string, fields: LogFields = {}) => {
    const sent = Object.entries(fields).map(([name, value]) => [name, plain(value)]);
    port.postMessage({ type: "log", level, message, fields: Object.fromEntries(sent) });
  };
  return { debug: () => {}, info: () => {}, warning: log("warning"), error: log("error") };
}

function plain(value: unknown): unknown {
  if (value instanceof Error) return plainError(value);
  return typeof value === "number" ? value : String(value);
}

/** Errors of the SDK hold answers and sockets, which cannot be sent. */
function plainError(error: unknown): Error {
  const plain = new Error(errorText(error));
  if (error instanceof Error) {
    if (error.stack !== undefined) plain.stack = error.stack;
    if (error.cause instanceof Error) plain.cause = new Error(error.cause.message);
  }
  return plain;
}

// A worker's module is the main module of its thread.
if (import.meta.main) {
  giveWay();
  const port = globalThis as unknown as ExporterPort;
  // As on the main thread: what fails outside every handler is logged, and the next spans are exported.
  captureConsole(portLogger(port));
  guardProcess({ logger: portLogger(port), clock: systemClock, onUnexpected: () => {} });
  serveSpanExport(port);
}
