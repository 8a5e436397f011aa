import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";

/** How spans or metrics are exported, by the names of `OTEL_EXPORTER_OTLP_PROTOCOL`. */
export type OtlpProtocol = "grpc" | "http/protobuf" | "http/json";

/** The settings of the exporters; their other options they read from the environment themselves. */
export interface OtlpSettings {
  /** The value of `TRACING_EXPORTER_PROTOCOL`; absent when unset. */
  readonly protocol: "http" | "grpc" | undefined;
  /** The values of `OTEL_EXPORTER_OTLP_<OPTION>` by option. */
  readonly otlp: ReadonlyMap<string, string>;
}

/** Where spans or metrics go, and what all of them have in common. */
export interface ExportOptions {
  readonly protocol: OtlpProtocol;
  /** The values of `OTEL_EXPORTER_OTLP_<OPTION>` by option. */
  readonly otlp: ReadonlyMap<string, string>;
  /** Attributes of the resource; they take precedence over `OTEL_RESOURCE_ATTRIBUTES`. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly version: string;
}

/** What is exported: the start of the options that take precedence over those for all signals. */
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
  signal: OtlpSignal = "TRACES",
): OtlpProtocol {
  const protocol = chooseProtocol(settings, logger, signal);
  for (const [name, check] of Object.entries(CHECKS)) {
    for (const option of [name, `${signal}_${name}`]) {
      const text = valueOf(settings, option);
      if (text !== "") check(option, text, protocol);
    }
  }
  warnOfCompression(settings, { protocol, logger, signal });
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

function warnOfCompression(
  settings: OtlpSettings,
  { protocol, logger, signal }: { protocol: OtlpProtocol; logger: Logger; signal: OtlpSignal },
): void {
  const option = [`${signal}_COMPRESSION`, "COMPRESSION"].find((name) => valueOf(settings, name) !== "");
  if (protocol !== "grpc" || option === undefined || valueOf(settings, option) === "none") return;
  logger.warning(`OTEL_EXPORTER_OTLP_${option} has no effect: only exports over HTTP are compressed`);
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

/** How many spans may wait: the limit of the SDK, which holds for the deciding thread as well. */
export function maxWaitingSpans(): number {
  return positiveVariable("OTEL_BSP_MAX_QUEUE_SIZE") ?? 2_048;
}

/** The number in a standard variable of the SDK; absent unless above 0, as for the SDK. */
export function positiveVariable(name: string): number | undefined {
  const value = Number(Deno.env.get(name)?.trim() || Number.NaN);
  return value > 0 ? value : undefined;
}
