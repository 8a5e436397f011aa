import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";

/** Protocols of exports, by the names of `OTEL_EXPORTER_OTLP_PROTOCOL`. */
export type OtlpProtocol = "grpc" | "http/protobuf" | "http/json";

/** The settings of the exporters; their other options they read from the environment themselves. */
interface OtlpSettings {
  /** The value of `TRACING_EXPORTER_PROTOCOL`; absent when unset. */
  readonly protocol: "http" | "grpc" | undefined;
  /** The values of `OTEL_EXPORTER_OTLP_<OPTION>` by option. */
  readonly otlp: ReadonlyMap<string, string>;
}

/** The exported signal: the start of the options that take precedence over those for all signals. */
export type OtlpSignal = "TRACES" | "METRICS";

type Check = (option: string, text: string, protocol: OtlpProtocol) => void;

const PROTOCOLS: readonly OtlpProtocol[] = ["grpc", "http/protobuf", "http/json"];
const CHECKS: Readonly<Record<string, Check>> = {
  ENDPOINT: checkEndpoint,
  HEADERS: checkHeaders,
  TIMEOUT: checkTimeout,
  COMPRESSION: checkCompression,
  CERTIFICATE: checkFile,
  CLIENT_CERTIFICATE: checkFile,
  CLIENT_KEY: checkFile,
};
const TEMPORALITY = "METRICS_TEMPORALITY_PREFERENCE";
/** A header's name and value, percent-decoded. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\x20-\x7e]*$/;
const HTTP_ENDPOINT = /^https?:\/\//;
/** gRPC takes a host and a port as well. */
const GRPC_ENDPOINT = /^(?:https?:\/\/|unix:\/\/|(?!\w+:\/\/))/;

/**
 * The protocol of the exporter. Throws for a value of any option that cannot be used, and for files that cannot
 * be read: the exporters would go on with their defaults.
 */
export function checkOtlp(
  settings: OtlpSettings,
  logger: Logger,
  signal: OtlpSignal,
): OtlpProtocol {
  const protocol = chooseProtocol(settings, logger, signal);
  for (const [name, check] of Object.entries(CHECKS)) {
    for (const option of [name, `${signal}_${name}`]) {
      const text = valueOf(settings, option);
      if (text !== "") check(option, text, protocol);
    }
  }
  const temporality = signal === "METRICS" ? valueOf(settings, TEMPORALITY).toLowerCase() : "";
  if (temporality !== "" && temporality !== "cumulative") {
    throw invalid(TEMPORALITY, `"${temporality}"`, "cumulative, the only one that Weir exports");
  }
  return protocol;
}

/** `TRACING_EXPORTER_PROTOCOL` decides between gRPC and HTTP, the standard variables the rest. */
function chooseProtocol(settings: OtlpSettings, logger: Logger, signal: OtlpSignal): OtlpProtocol {
  const { protocol } = settings;
  const options = [`${signal}_PROTOCOL`, "PROTOCOL"].filter((option) => valueOf(settings, option) !== "");
  const [standard] = options.map((option) => protocolOf(option, valueOf(settings, option)));
  const chosen = protocol === "grpc" ? "grpc" : "http/protobuf";
  if (standard === undefined) return chosen;
  if (protocol === undefined || standard.startsWith(protocol)) return standard;
  const text = `OTEL_EXPORTER_OTLP_${options[0]} has no effect: TRACING_EXPORTER_PROTOCOL is ${protocol}`;
  logger.warning(text, { [`OTEL_EXPORTER_OTLP_${options[0]}`]: standard });
  return chosen;
}

function valueOf({ otlp }: OtlpSettings, option: string): string {
  return otlp.get(option)?.trim() ?? "";
}

function protocolOf(option: string, text: string): OtlpProtocol {
  const protocol = PROTOCOLS.find((one) => one === text);
  if (protocol !== undefined) return protocol;
  throw invalid(option, `"${text}"`, "grpc, http/protobuf or http/json");
}

/** An endpoint may contain a password, so its text is not shown. */
function checkEndpoint(option: string, endpoint: string, protocol: OtlpProtocol): void {
  const isGrpc = protocol === "grpc";
  const hasScheme = /^\w+:\/\//.test(endpoint);
  const isUrl = URL.canParse(hasScheme ? endpoint : `https://${endpoint}`);
  if ((isGrpc ? GRPC_ENDPOINT : HTTP_ENDPOINT).test(endpoint) && isUrl) return;
  throw invalid(option, "(value not shown)", `a URL such as http://127.0.0.1:${isGrpc ? 4317 : 4318}`);
}

/** Headers contain tokens, and the exporters would log an invalid one in full. */
function checkHeaders(option: string, text: string): void {
  if (text.split(",").every(isHeader)) return;
  const expected =
    "name=value,name=value in visible ASCII, other characters percent-encoded, without line breaks";
  throw invalid(option, "(value not shown)", expected);
}

function checkTimeout(option: string, text: string): void {
  if (Number.isFinite(Number(text)) && Number(text) > 0) return;
  throw invalid(option, `"${text}"`, "a number of milliseconds above 0 such as 10000");
}

function checkCompression(option: string, text: string): void {
  if (text !== "gzip" && text !== "none") throw invalid(option, `"${text}"`, "gzip or none");
}

function checkFile(option: string, path: string): void {
  try {
    Deno.readFileSync(path);
  } catch (error) {
    throw invalid(option, `"${path}"`, `a readable file in PEM format: ${errorText(error)}`);
  }
}

function invalid(option: string, text: string, expected: string): Error {
  return new Error(`Invalid OTEL_EXPORTER_OTLP_${option} ${text}: expected ${expected}`);
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

const MAX_WAITING = 2_048;
const SCHEDULE_DELAY_MS = 5_000;
/** HTTP takes more than the SDK's default, because a request costs more than its spans; gRPC takes at most 4 MB. */
const MAX_BATCH = { "grpc": 512, "http/protobuf": 1_024, "http/json": 1_024 } as const;

/** Bounds of the export of spans by the variables of the SDK: spans that wait, those of one batch, and the delay. */
export function spanLimits(
  protocol: OtlpProtocol,
): { readonly maxWaiting: number; readonly maxBatch: number; readonly delayMs: number } {
  const maxWaiting = positiveVariable("OTEL_BSP_MAX_QUEUE_SIZE") ?? MAX_WAITING;
  const maxBatch = positiveVariable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") ?? MAX_BATCH[protocol];
  const delayMs = positiveVariable("OTEL_BSP_SCHEDULE_DELAY") ?? SCHEDULE_DELAY_MS;
  return { maxWaiting, maxBatch: Math.min(maxBatch, maxWaiting), delayMs };
}

function positiveVariable(name: string): number | undefined {
  const value = Number(Deno.env.get(name)?.trim() || Number.NaN);
  return value > 0 ? value : undefined;
}

/** The names of a service in what it exports. */
interface ServiceNames {
  readonly serviceName: string;
  /** Empty for none. */
  readonly serviceNamespace: string;
  /** A random UUID when absent. */
  readonly serviceInstanceId?: string | undefined;
  readonly version: string;
}

/** The attributes of the resource of spans and metrics. */
export function resourceOf(names: ServiceNames): Record<string, string> {
  const { serviceName, serviceNamespace, serviceInstanceId, version } = names;
  return {
    "service.name": serviceName,
    ...(serviceNamespace === "" ? {} : { "service.namespace": serviceNamespace }),
    "service.instance.id": serviceInstanceId ?? crypto.randomUUID(),
    "service.version": version,
  };
}
