import { assertEquals } from "#assert";
import { checkOtlp, type OtlpProtocol } from "../../../src/telemetry/otlp_settings.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";

const NO_EFFECT = "has no effect: TRACING_EXPORTER_PROTOCOL is";

const AGAINST = { TRACES_PROTOCOL: "http/json", PROTOCOL: "grpc" };

const CASES: readonly [
  title: string,
  protocol: "http" | "grpc" | undefined,
  otlp: Readonly<Record<string, string>>,
  chosen: OtlpProtocol,
  warning?: string,
][] = [
  ["nothing", undefined, {}, "http/protobuf"],
  ["http", "http", {}, "http/protobuf"],
  ["grpc", "grpc", {}, "grpc"],
  ["a standard variable alone", undefined, { PROTOCOL: "grpc" }, "grpc"],
  ["an empty standard variable", undefined, { PROTOCOL: " " }, "http/protobuf"],
  ["that for traces first", undefined, { PROTOCOL: "grpc", TRACES_PROTOCOL: " http/json " }, "http/json"],
  ["http, and the encoding of the standard variable", "http", { PROTOCOL: "http/json" }, "http/json"],
  ["grpc in both", "grpc", { PROTOCOL: "grpc" }, "grpc"],
  ["http against grpc", "http", { PROTOCOL: "grpc" }, "http/protobuf", `PROTOCOL ${NO_EFFECT} http`],
  ["http with compression", "http", { COMPRESSION: "gzip" }, "http/protobuf"],
  ["grpc against http/json", "grpc", AGAINST, "grpc", `TRACES_PROTOCOL ${NO_EFFECT} grpc`],
];

for (const [title, protocol, otlp, chosen, warning] of CASES) {
  Deno.test(`tracing protocol: ${title}`, () => {
    const logger = new RecordedLogger();
    assertEquals(checkOtlp({ protocol, otlp: new Map(Object.entries(otlp)) }, logger), chosen);
    const lines = logger.lines.map(({ level, message }) => [level, message]);
    assertEquals(lines, warning === undefined ? [] : [["warning", `OTEL_EXPORTER_OTLP_${warning}`]]);
  });
}
