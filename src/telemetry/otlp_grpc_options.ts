import type { GrpcTarget, GrpcTls } from "../grpc/client/dial.ts";
import type { OtlpSignal } from "./otlp_settings.ts";

/** The server of a signal over gRPC, and the headers of each call. */
export interface OtlpGrpcOptions {
  readonly target: GrpcTarget;
  /** The headers of the settings, with names in lower case. */
  readonly metadata: readonly (readonly [name: string, value: string])[];
  /** Exports are compressed with gzip. */
  readonly isCompressed: boolean;
}

const DEFAULT_ENDPOINT = "http://localhost:4317";
const DEFAULT_PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

/**
 * Reads the values of `OTEL_EXPORTER_OTLP_<OPTION>` by the rules of the standard: an option of the signal takes
 * precedence over the one for all signals, and headers are merged. Throws for a file that cannot be read and for an
 * invalid endpoint.
 */
export function otlpGrpcOptions(signal: OtlpSignal, otlp: ReadonlyMap<string, string>): OtlpGrpcOptions {
  const variable = (name: string) => otlp.get(name)?.trim() || undefined;
  const option = (name: string) => variable(`${signal}_${name}`) ?? variable(name);
  const endpoint = option("ENDPOINT") ?? DEFAULT_ENDPOINT;
  const headers = ["HEADERS", `${signal}_HEADERS`].flatMap((name) => headersOf(variable(name) ?? ""));
  const isPlain = isPlainText(endpoint, option("INSECURE"));
  return {
    target: { address: addressOf(endpoint), tls: isPlain ? undefined : tlsOf(option) },
    metadata: [...new Map(headers)],
    isCompressed: option("COMPRESSION") === "gzip",
  };
}

/** Without a scheme of HTTP, the connection is secure unless `INSECURE` is true. */
function isPlainText(endpoint: string, insecure = ""): boolean {
  if (/^https?:\/\//.test(endpoint)) return endpoint.startsWith("http://");
  return insecure.toLowerCase() === "true";
}

function addressOf(endpoint: string): GrpcTarget["address"] {
  if (endpoint.startsWith("unix://")) return { path: endpoint.slice("unix://".length) };
  const { protocol, hostname, port } = new URL(/^\w+:\/\//.test(endpoint) ? endpoint : `https://${endpoint}`);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return { host, port: port === "" ? DEFAULT_PORTS[protocol] ?? 443 : Number(port) };
}

/** A certificate without its key, or the reverse, has no effect. */
function tlsOf(option: (name: string) => string | undefined): GrpcTls {
  const file = (name: string) => {
    const path = option(name);
    return path === undefined ? undefined : Deno.readTextFileSync(path);
  };
  const [ca, cert, key] = [file("CERTIFICATE"), file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")];
  return cert === undefined || key === undefined ? { ca } : { ca, cert, key };
}

/** `name=value,name=value`, percent-encoded; what follows a semicolon is a property, which is not sent. */
function headersOf(text: string): [name: string, value: string][] {
  return text.split(",").filter((item) => item.includes("=")).map((item) => {
    const [pair = ""] = item.split(";");
    const equals = pair.indexOf("=");
    const decoded = [pair.slice(0, equals), pair.slice(equals + 1)].map((part) =>
      decodeURIComponent(part.trim())
    );
    return [(decoded[0] ?? "").toLowerCase(), decoded[1] ?? ""];
  });
}
