import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-base";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import type { SpanMaker } from "./tracing_read_spans.ts";
import type { SpanList } from "./tracing_span_list.ts";

/** Which exporter is wanted. */
export interface SpanExporterOptions {
  readonly protocol: "http" | "grpc";
  readonly logger: Logger;
  /** What all spans are exported with. */
  readonly maker: SpanMaker;
  /** Called whenever the collector took spans. */
  readonly onExported: () => void;
}

/** What the exporters are told. */
export interface OtlpOptions {
  readonly protocol: "http" | "grpc";
  /** The values of `OTEL_EXPORTER_OTLP_<OPTION>` by option; the exporters read the same from the environment. */
  readonly otlp: ReadonlyMap<string, string>;
}

/** An exporter, and what makes spans for it of a list. */
export interface ReadingExporter {
  readonly exporter: SpanExporter;
  readonly read: (list: SpanList) => ReadableSpan[];
}

type ExportResult = Parameters<Parameters<SpanExporter["export"]>[1]>[0];

const SUCCESS = 0;
const CHECKS: Readonly<Record<string, (option: string, text: string, protocol: "http" | "grpc") => void>> = {
  ENDPOINT: checkEndpoint,
  HEADERS: checkHeaders,
  TIMEOUT: checkTimeout,
  COMPRESSION: checkCompression,
  CERTIFICATE: checkFile,
  CLIENT_CERTIFICATE: checkFile,
  CLIENT_KEY: checkFile,
};
/** What the name and the value of a header may hold, once percent escapes are decoded. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\x20-\x7e]*$/;
/** How an endpoint begins: gRPC takes a host and a port as well. */
const SCHEMES = {
  http: { pattern: /^https?:\/\//, wanted: "a URL such as http://127.0.0.1:4318" },
  grpc: {
    pattern: /^(?:https?:\/\/|unix:\/\/|(?!\w+:\/\/))/,
    wanted: "a URL such as http://127.0.0.1:4317",
  },
} as const;

/** Throws for a value that is none, and for files that cannot be read: the exporters would go on without. */
export function checkOtlp({ protocol, otlp }: OtlpOptions): void {
  for (const [name, check] of Object.entries(CHECKS)) {
    for (const option of [name, `TRACES_${name}`]) {
      const text = otlp.get(option)?.trim() ?? "";
      if (text !== "") check(option, text, protocol);
    }
  }
}

/** The exporter for a protocol, which tells of each outage of the collector once, and how spans get to it. */
export async function createSpanExporter(
  { protocol, logger, maker, onExported }: SpanExporterOptions,
): Promise<ReadingExporter> {
  // A package is loaded only by who uses it.
  if (protocol === "http") {
    const { carrySpans, TextExporter } = await import("./tracing_text_exporter.ts");
    return { exporter: new OutageTeller(new TextExporter(maker), { logger, onExported }), read: carrySpans };
  }
  const [{ OTLPTraceExporter }, { readSpans }] = await Promise.all([
    import("@opentelemetry/exporter-trace-otlp-grpc"),
    import("./tracing_read_spans.ts"),
  ]);
  const exporter = new OutageTeller(new OTLPTraceExporter(), { logger, onExported });
  return { exporter, read: (list) => readSpans(list, maker) };
}

/** An endpoint may hold a password, so its text is not shown. */
function checkEndpoint(option: string, endpoint: string, protocol: "http" | "grpc"): void {
  const { pattern, wanted } = SCHEMES[protocol];
  const hasScheme = /^\w+:\/\//.test(endpoint);
  if (pattern.test(endpoint) && URL.canParse(hasScheme ? endpoint : `https://${endpoint}`)) return;
  throw new Error(
    `Cannot use OTEL_EXPORTER_OTLP_${option} (value not shown): ${wanted} would be right`,
  );
}

/** Headers hold tokens. The exporters would write a wrong one out in full. */
function checkHeaders(option: string, text: string): void {
  if (text.split(",").every(isHeader)) return;
  throw new Error(
    `Cannot use OTEL_EXPORTER_OTLP_${option} (value not shown): name=value,name=value in visible ASCII ` +
      "characters, others percent-encoded and no line break among them, would be right",
  );
}

function checkTimeout(option: string, text: string): void {
  if (Number.isFinite(Number(text)) && Number(text) > 0) return;
  const wanted = "a number of milliseconds above 0 such as 10000 would be right";
  throw new Error(`Cannot use OTEL_EXPORTER_OTLP_${option} "${text}": ${wanted}`);
}

function checkCompression(option: string, text: string): void {
  if (text === "gzip" || text === "none") return;
  throw new Error(`Cannot use OTEL_EXPORTER_OTLP_${option} "${text}": gzip or none would be right`);
}

function checkFile(option: string, path: string): void {
  try {
    Deno.readFileSync(path);
  } catch (error) {
    const wanted = "a file in PEM format that can be read would be right";
    throw new Error(`Cannot use OTEL_EXPORTER_OTLP_${option} "${path}": ${errorText(error)}; ${wanted}`);
  }
}

function isHeader(item: string): boolean {
  if (item.trim() === "") return true;
  const equals = item.indexOf("=");
  if (equals < 1) return false;
  try {
    const name = decodeURIComponent(item.slice(0, equals).trim());
    return HEADER_NAME.test(name) && HEADER_VALUE.test(decodeURIComponent(item.slice(equals + 1).trim()));
  } catch {
    return false;
  }
}

/** Says once that spans cannot be exported, and once that they can again. */
class OutageTeller implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #logger: Logger;
  readonly #onExported: () => void;
  #isOut = false;

  constructor(
    exporter: SpanExporter,
    { logger, onExported }: Pick<SpanExporterOptions, "logger" | "onExported">,
  ) {
    this.#exporter = exporter;
    this.#logger = logger;
    this.#onExported = onExported;
  }

  export(spans: ReadableSpan[], onResult: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      this.#tell(result);
      // What has been told is handled: the SDK would write every lost batch to its own log.
      onResult({ code: SUCCESS });
    });
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush?.() ?? Promise.resolve();
  }

  #tell({ code, error }: ExportResult): void {
    const isOut = code !== SUCCESS;
    if (!isOut) this.#onExported();
    if (isOut === this.#isOut) return;
    this.#isOut = isOut;
    if (!isOut) this.#logger.warning("Exporting spans again");
    else this.#logger.warning("Cannot export spans: they are dropped until the collector answers", { error });
  }
}
