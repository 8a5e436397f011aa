import { diag, type DiagLogger, DiagLogLevel } from "@opentelemetry/api";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from "@opentelemetry/sdk-trace-base";
import { type Clock, systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import { portLogger } from "../base/log.ts";
import { captureConsole } from "../base/standard_streams.ts";
import type { WorkerPort } from "../base/supervised_worker.ts";
import { giveWay } from "../base/thread_priority.ts";
import { guardProcess } from "./process_guard.ts";
import { ThrottledLog } from "../base/throttled_log.ts";
import { maxWaitingSpans, type OtlpProtocol, positiveVariable } from "./tracing_otlp.ts";
import { readSpans } from "./tracing_pack_reader.ts";
import type { SpanPack } from "./tracing_span_pack.ts";
import type { ExportOptions, FromExporter, ToExporter } from "./tracing_export_supervisor.ts";

/** The worker's side of the connection to the main thread. */
export type ExporterPort = WorkerPort<ToExporter, FromExporter>;

/** Only the package in use is loaded. */
const EXPORTERS = {
  "grpc": () => import("@opentelemetry/exporter-trace-otlp-grpc"),
  "http/protobuf": () => import("@opentelemetry/exporter-trace-otlp-proto"),
  "http/json": () => import("@opentelemetry/exporter-trace-otlp-http"),
} as const;
const SUCCESS = 0;
const HTTP_BATCH = 1_024;
/** Options whose values may contain a password. */
const SECRET = /(?:ENDPOINT|HEADERS)$/;

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
  const logger = exporterLogger(port);
  const log = createSdkLog({ logger, clock: systemClock, otlp });
  // The exporters log what they cannot use while they are constructed.
  diag.setLogger(log, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  provideOptions(otlp);
  const { OTLPTraceExporter } = await EXPORTERS[protocol]();
  const onExported = () => port.postMessage({ type: "exported" });
  const exporter = logOutages(new OTLPTraceExporter(), { logger, onExported });
  const source = {
    resource: detectResources({ detectors: [envDetector] }).merge(resourceFromAttributes(attributes)),
    instrumentationScope: { name: "weir", version },
  };
  return {
    spans: new BatchSpanProcessor(exporter, batchOf(protocol)),
    read: (pack) => readSpans(pack, source),
  };
}

/** The exporters read their options from the environment, which lacks those that come from secret files. */
function provideOptions(otlp: ReadonlyMap<string, string>): void {
  for (const [option, value] of otlp) {
    const name = `OTEL_EXPORTER_OTLP_${option}`;
    if (Deno.env.get(name) !== value) Deno.env.set(name, value);
  }
}

/** HTTP takes larger batches than the SDK's default, because a request costs more than its spans. */
function batchOf(protocol: OtlpProtocol): { readonly maxExportBatchSize?: number } {
  // Collectors accept at most 4 MB over gRPC.
  if (protocol === "grpc" || positiveVariable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") !== undefined) return {};
  return { maxExportBatchSize: Math.min(HTTP_BATCH, maxWaitingSpans()) };
}

/** The exporter, with each outage of the collector logged once, and its end. */
function logOutages(
  exporter: SpanExporter,
  { logger, onExported }: { readonly logger: Logger; readonly onExported: () => void },
): SpanExporter {
  let isOut = false;
  return {
    export(spans, onResult) {
      exporter.export(spans, ({ code, error }) => {
        const hasFailed = code !== SUCCESS;
        if (!hasFailed) onExported();
        if (hasFailed && !isOut) {
          logger.warning("Cannot export spans: spans are dropped until the collector responds", { error });
        } else if (!hasFailed && isOut) logger.warning("Exporting spans again");
        isOut = hasFailed;
        // The SDK would log every lost batch.
        onResult({ code: SUCCESS });
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}

/** A log for the SDK: warnings and errors, at most one a second, without values that may contain a password. */
export function createSdkLog({ logger, clock, otlp }: {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly otlp: ReadonlyMap<string, string>;
}): DiagLogger {
  const log = new ThrottledLog(logger, { clock });
  const secrets = [...otlp].flatMap(([option, value]) =>
    SECRET.test(option) && value.trim() !== "" ? [value.trim()] : []
  );
  const warn = (message: string) => {
    const text = secrets.reduce((left, secret) => left.replaceAll(secret, "(value not shown)"), message);
    log.warning("tracing", `Tracing: ${text}`);
  };
  const ignore = () => {};
  return { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
}

/** A logger that sends its lines to the main thread, with fields that can be sent. */
function exporterLogger(port: ExporterPort): Logger {
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

/** Errors of the SDK refer to responses and sockets, which cannot be sent to another thread. */
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
  const logger = exporterLogger(port);
  captureConsole(logger);
  guardProcess({ logger, clock: systemClock, onUnexpected: () => {} });
  serveSpanExport(port);
}
