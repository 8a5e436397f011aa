import { assertEquals, assertMatch, assertNotEquals, assertThrows } from "#assert";
import { checkOtlp, type OtlpProtocol, resourceOf } from "../../../src/telemetry/otlp_settings.ts";
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
    assertEquals(checkOtlp({ protocol, otlp: new Map(Object.entries(otlp)) }, logger, "TRACES"), chosen);
    const lines = logger.lines.map(({ level, message }) => [level, message]);
    assertEquals(lines, warning === undefined ? [] : [["warning", `OTEL_EXPORTER_OTLP_${warning}`]]);
  });
}

const PEM = '"/nowhere/a.pem": expected a readable file in PEM format: ' +
  "No such file or directory (os error 2): readfile '/nowhere/a.pem'";
const HEADERS = "(value not shown): expected name=value,name=value in visible ASCII, " +
  "other characters percent-encoded, without line breaks";
const MILLISECONDS = "expected a number of milliseconds above 0 such as 10000";
const urlSuchAs = (url: string) => `(value not shown): expected a URL such as ${url}`;

const REFUSED: readonly [protocol: "http" | "grpc", option: string, text: string, problem: string][] = [
  ["http", "ENDPOINT", "127.0.0.1:4318", urlSuchAs("http://127.0.0.1:4318")],
  ["http", "ENDPOINT", "http://", urlSuchAs("http://127.0.0.1:4318")],
  ["http", "TRACES_ENDPOINT", "collector", urlSuchAs("http://127.0.0.1:4318")],
  ["grpc", "ENDPOINT", "ftp://collector:4317", urlSuchAs("http://127.0.0.1:4317")],
  ["grpc", "TRACES_ENDPOINT", "a collector", urlSuchAs("http://127.0.0.1:4317")],
  ["http", "TIMEOUT", "soon", `"soon": ${MILLISECONDS}`],
  ["http", "TRACES_TIMEOUT", "0", `"0": ${MILLISECONDS}`],
  ["http", "COMPRESSION", "zip", '"zip": expected gzip or none'],
  ["http", "PROTOCOL", "http", '"http": expected grpc, http/protobuf or http/json'],
  ["http", "CERTIFICATE", "/nowhere/a.pem", PEM],
  ["http", "CLIENT_KEY", "/nowhere/a.pem", PEM],
  ["http", "TRACES_CLIENT_CERTIFICATE", "/nowhere/a.pem", PEM],
  ...(["http", "grpc"] as const).flatMap((protocol) =>
    ["authorization=Bearer%20sesame%0A", "auth orization=sesame", "sesame", "a=%E0%A4%A"].map((
      headers,
    ): (typeof REFUSED)[number] => [protocol, "HEADERS", headers, HEADERS])
  ),
];

for (const [protocol, option, text, problem] of REFUSED) {
  Deno.test(`tracing over ${protocol}: ${option} "${text}" is refused`, () => {
    const otlp = new Map([[option, text]]);
    const { message } = assertThrows(() => checkOtlp({ protocol, otlp }, new RecordedLogger(), "TRACES"));
    assertEquals(message, `Invalid OTEL_EXPORTER_OTLP_${option} ${problem}`);
  });
}

for (const text of ["http://c:1", "https://c", "c:4317", "c", "unix:///tmp/c.sock"]) {
  Deno.test(`tracing over grpc: the endpoint "${text}" is valid`, () => {
    const otlp = new Map([["ENDPOINT", text]]);
    assertEquals(checkOtlp({ protocol: "grpc", otlp }, new RecordedLogger(), "TRACES"), "grpc");
  });
}

const WRONG: readonly [option: string, value: string, shown: string, expected: string][] = [
  ["TEMPORALITY_PREFERENCE", "delta", '"delta"', "cumulative, the only one that Weir exports"],
  ["PROTOCOL", "udp", '"udp"', "grpc, http/protobuf or http/json"],
  ["ENDPOINT", "me:secret@collector", "(value not shown)", "a URL such as http://127.0.0.1:4318"],
];

for (const [option, value, shown, expected] of WRONG) {
  Deno.test(`metrics over OTLP: an invalid ${option} is rejected`, () => {
    const otlp = new Map([[`METRICS_${option}`, value]]);
    const check = () => checkOtlp({ protocol: undefined, otlp }, new RecordedLogger(), "METRICS");
    const { message } = assertThrows(check);
    assertEquals(message, `Invalid OTEL_EXPORTER_OTLP_METRICS_${option} ${shown}: expected ${expected}`);
  });
}

Deno.test("metrics over OTLP: options for spans have no effect, and the general ones have", () => {
  const options = { TRACES_PROTOCOL: "udp", PROTOCOL: "grpc", METRICS_TEMPORALITY_PREFERENCE: "Cumulative" };
  const otlp = new Map(Object.entries(options));
  assertEquals(checkOtlp({ protocol: undefined, otlp }, new RecordedLogger(), "METRICS"), "grpc");
});

Deno.test("OTLP: an instance without a name gets its own random UUID", () => {
  const named = { serviceName: "RateLimit", serviceNamespace: "", version: "1" };
  const [first, second] = [resourceOf(named), resourceOf(named)];
  assertEquals(Object.keys(first).sort(), ["service.instance.id", "service.name", "service.version"]);
  const id = first["service.instance.id"] ?? "";
  assertMatch(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assertNotEquals(id, second["service.instance.id"]);
});
