import { diag, type DiagLogger, DiagLogLevel } from "@opentelemetry/api";
import {
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { type Clock, systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { type Logger, type PortLine, portLogger } from "../base/log.ts";
import { captureConsole } from "../base/standard_streams.ts";
import { lowerPriority } from "../base/thread_priority.ts";
import { ThrottledLog } from "../base/throttled_log.ts";
import type { ExportOptions } from "./otlp_settings.ts";
import { guardProcess } from "./process_guard.ts";

/** The code of an export that the collector accepted, by the SDK. */
export const EXPORT_SUCCESS = 0;
/** Options whose values may contain a password. */
const SECRET = /(?:ENDPOINT|HEADERS)$/;

/** Takes the log lines of a thread. */
export interface LogPort {
  postMessage(line: PortLine): void;
}

/** Prepares the thread of an exporter, and serves its port. */
export function serveOtlpThread<Port extends LogPort>(serve: (port: Port) => void): void {
  lowerPriority();
  const port = globalThis as unknown as Port;
  const logger = exporterLogger(port);
  captureConsole(logger);
  guardProcess({ logger, clock: systemClock, onUnexpected: () => {} });
  serve(port);
}

/** What the SDK is prepared with. */
export interface SdkOptions extends Pick<ExportOptions, "otlp" | "attributes"> {
  /** The start of the log lines of the SDK. */
  readonly subject: string;
}

/** Sets the log and the options of the SDK, before an exporter is constructed. */
export function prepareSdk(
  { otlp, attributes, subject }: SdkOptions,
  port: LogPort,
): { readonly logger: Logger; readonly resource: Resource } {
  const logger = exporterLogger(port);
  const log = createSdkLog({ logger, clock: systemClock, otlp, subject });
  // The exporters log what they cannot use while they are constructed.
  diag.setLogger(log, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  provideOptions(otlp);
  const resource = detectResources({ detectors: [envDetector] }).merge(resourceFromAttributes(attributes));
  return { logger, resource };
}

/** The exporters read their options from the environment, which lacks those that come from secret files. */
function provideOptions(otlp: ReadonlyMap<string, string>): void {
  for (const [option, value] of otlp) {
    const name = `OTEL_EXPORTER_OTLP_${option}`;
    if (Deno.env.get(name) !== value) Deno.env.set(name, value);
  }
}

/** Logs each outage of a collector once, and its end. */
export class OtlpOutage {
  readonly #logger: Logger;
  readonly #texts: { readonly failed: string; readonly again: string };
  #isOut = false;

  /** With the texts of the log lines. */
  constructor(logger: Logger, texts: { readonly failed: string; readonly again: string }) {
    this.#logger = logger;
    this.#texts = texts;
  }

  /** Notes how an export ended; returns whether the collector accepted it. */
  note({ code, error }: { readonly code: number; readonly error?: Error }): boolean {
    const hasFailed = code !== EXPORT_SUCCESS;
    if (hasFailed && !this.#isOut) this.#logger.warning(this.#texts.failed, { error });
    else if (!hasFailed && this.#isOut) this.#logger.warning(this.#texts.again);
    this.#isOut = hasFailed;
    return !hasFailed;
  }
}

/** A log for the SDK: warnings and errors, at most one a second, without values that may contain a password. */
export function createSdkLog({ logger, clock, otlp, subject }: {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly otlp: ReadonlyMap<string, string>;
  /** The start of its lines. */
  readonly subject: string;
}): DiagLogger {
  const log = new ThrottledLog(logger, { clock });
  const secrets = [...otlp].flatMap(([option, value]) =>
    SECRET.test(option) && value.trim() !== "" ? [value.trim()] : []
  );
  const warn = (message: string) => {
    const text = secrets.reduce((left, secret) => left.replaceAll(secret, "(value not shown)"), message);
    log.warning(subject, `${subject}: ${text}`);
  };
  const ignore = () => {};
  return { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
}

/** A logger that sends its lines to the main thread, with fields that can be sent. */
function exporterLogger(port: LogPort): Logger {
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
export function plainError(error: unknown): Error {
  const plain = new Error(errorText(error));
  if (error instanceof Error) {
    if (error.stack !== undefined) plain.stack = error.stack;
    if (error.cause instanceof Error) plain.cause = new Error(error.cause.message);
  }
  return plain;
}
