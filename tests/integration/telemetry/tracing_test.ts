import { assertEquals, assertMatch, assertThrows } from "#assert";
import { systemClock } from "../../../src/base/clock.ts";
import { settledWithin } from "../../../src/base/wait.ts";
import type { CallContext, GrpcService } from "../../../src/grpc/grpc_service.ts";
import { beginTracing, type Tracing, type TracingOptions } from "../../../src/telemetry/tracing.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { FakeClock, patientClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { OtlpReceiver } from "../../harness/otlp_receiver.ts";
import { eventually, until } from "../../harness/until.ts";
import { unaryOf } from "../../harness/tracing_bed.ts";
import { EnvironmentOf, startExporter } from "./tracing_environment.ts";

const CALL: CallContext = { header: () => undefined, cancelled: false };
const SERVICE: GrpcService = {
  name: "s",
  methods: [{ kind: "unary", name: "Ask", handle: (request) => request }],
};
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const LOST = "Cannot export spans: spans are dropped until the collector responds";

function open(logger: RecordedLogger, options: Partial<TracingOptions> = {}): Tracing {
  return beginTracing({
    protocol: "http",
    serviceName: "RateLimit",
    serviceNamespace: "",
    samplingRate: 1,
    otlp: new Map(),
    version: "1.2.3",
    logger,
    clock: patientClock,
    random: () => 0,
    createWorker: startExporter,
    ...options,
  });
}

async function call(tracing: Tracing): Promise<void> {
  await unaryOf(tracing.grpcService(SERVICE)).handle(new Uint8Array(0), CALL);
}

for (const protocol of ["http", "grpc"] as const) {
  Deno.test(`tracing over ${protocol}: what waits is exported when it is closed`, async () => {
    await using receiver = await OtlpReceiver.start({ protocol });
    using _ = new EnvironmentOf({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_RESOURCE_ATTRIBUTES: "service.name=other,region=north",
    });
    const logger = new RecordedLogger();
    const named = { serviceName: "limits", serviceNamespace: "shop", serviceInstanceId: "one" };
    const tracing = open(logger, { protocol, ...named });
    await call(tracing);
    await tracing.close();
    const spans = receiver.spans.map(({ traceId, spanId, ...span }) => ({
      ...span,
      ids: [traceId.length, spanId.length],
    }));
    assertEquals(spans, [{
      name: "s/Ask",
      kind: 2,
      parentSpanId: "",
      traceState: "",
      attributes: { "rpc.system.name": "grpc", "rpc.method": "s/Ask", "rpc.response.status_code": "OK" },
      status: { code: 0, message: "" },
      resource: {
        region: "north",
        "service.name": "limits",
        "service.namespace": "shop",
        "service.instance.id": "one",
        "service.version": "1.2.3",
      },
      ids: [32, 16],
    }]);
    assertEquals(logger.lines, []);
  });

  Deno.test(`tracing over ${protocol}: an outage is logged once, and its end`, async () => {
    const port = freePort();
    using _ = new EnvironmentOf({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      // Shorter than the pause before an export is repeated.
      OTEL_EXPORTER_OTLP_TIMEOUT: "700",
      OTEL_BSP_SCHEDULE_DELAY: "10",
    });
    const logger = new RecordedLogger();
    const tracing = open(logger, { protocol });
    const lost = () => logger.lines.filter(({ message }) => message === LOST).length;
    await call(tracing);
    await until("the outage to be logged", () => lost() === 1);
    await eventually(true, () => logger.lines[0]?.fields["error"] instanceof Error);
    await call(tracing);
    await using receiver = await OtlpReceiver.start({ protocol, port });
    await until("spans to be exported again", async () => {
      await call(tracing);
      return receiver.spans.length > 0;
    });
    await tracing.close();
    const messages = logger.lines.map(({ message }) => message);
    assertEquals(messages.length > 1, true, `${messages}`);
    // On a slow machine an export may come too late again: that is another outage.
    assertEquals(messages, messages.map((_, index) => index % 2 === 0 ? LOST : "Exporting spans again"));
  });
}

Deno.test("tracing over grpc: the log line about an outage states what is wrong with a certificate", async () => {
  await using certificates = await makeCertificates();
  const { certFile, keyFile } = certificates.server;
  const pair = { cert: await Deno.readTextFile(certFile), key: await Deno.readTextFile(keyFile) };
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {}, ...pair };
  await using server = Deno.serve(options, () => new Response());
  using _ = new EnvironmentOf({
    OTEL_EXPORTER_OTLP_ENDPOINT: `https://127.0.0.1:${server.addr.port}`,
    OTEL_EXPORTER_OTLP_CERTIFICATE: certificates.otherAuthority.certFile,
    OTEL_EXPORTER_OTLP_TIMEOUT: "5000",
    OTEL_BSP_SCHEDULE_DELAY: "10",
  });
  const logger = new RecordedLogger();
  const tracing = open(logger, { protocol: "grpc" });
  await call(tracing);
  await until("the outage to be logged", () => logger.lines.length > 0);
  await tracing.close();
  const [line] = logger.lines;
  assertEquals(line?.message, LOST);
  assertMatch(String(line?.fields["error"]), /UNAVAILABLE: .*not issued by a trusted authority$/);
});

const ENCODINGS = [
  [{}, "application/x-protobuf"],
  [{ PROTOCOL: "http/json" }, "application/json"],
] as const;

for (const [protocol, type] of ENCODINGS) {
  Deno.test(`tracing: the standard variables decide how spans are exported, as ${type}`, async () => {
    await using receiver = await OtlpReceiver.start({ protocol: "http" });
    using _ = new EnvironmentOf({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/elsewhere`,
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=token,x-more=1",
      OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
    });
    const tracing = open(new RecordedLogger(), { otlp: new Map(Object.entries(protocol)) });
    await call(tracing);
    await tracing.close();
    const seen = receiver.requests.map(({ path, headers }) => [
      path,
      ...["authorization", "x-more", "content-type", "content-encoding"].map((name) => headers.get(name)),
    ]);
    assertEquals(seen, [["/elsewhere", "token", "1", type, "gzip"]]);
    assertEquals(receiver.spans.length, 1);
  });
}

Deno.test("tracing: an instance without a name gets its own random UUID", async () => {
  await using receiver = await OtlpReceiver.start({ protocol: "http" });
  using _ = new EnvironmentOf({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
  for (let time = 0; time < 2; time++) {
    const tracing = open(new RecordedLogger());
    await call(tracing);
    await tracing.close();
  }
  const ids = receiver.spans.map(({ resource }) => String(resource["service.instance.id"]));
  for (const id of ids) assertMatch(id, UUID);
  assertEquals(new Set(ids).size, 2);
  const [first] = receiver.spans;
  assertEquals(Object.keys(first?.resource ?? {}).sort(), [
    "service.instance.id",
    "service.name",
    "service.version",
  ]);
});

Deno.test("tracing: a collector that never answers does not hold up the end", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  using _ = new EnvironmentOf({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${listener.addr.port}`,
    // An export without this limit would go on.
    OTEL_EXPORTER_OTLP_TIMEOUT: "120000",
  });
  const logger = new RecordedLogger();
  const clock = new FakeClock();
  const tracing = open(logger, { clock });
  await call(tracing);
  const closed = tracing.close();
  const connection = await listener.accept();
  clock.advance(999);
  assertEquals([clock.waiting, logger.lines], [1, []]);
  clock.advance(1);
  await closed;
  assertEquals(logger.lines.map(({ message }) => message), [
    "Cannot export the last spans: the collector did not accept them in time",
  ]);
  // Nothing of it goes on in the background.
  const sent = new Response(connection.readable).arrayBuffer().then(() => {});
  assertEquals(await settledWithin(sent, 30_000, systemClock), true);
  listener.close();
});

Deno.test("tracing: what the exporters cannot use is logged", async () => {
  // There is no collector to wait for.
  using _ = new EnvironmentOf({ OTEL_EXPORTER_OTLP_COMPRESSION: "zip", OTEL_EXPORTER_OTLP_TIMEOUT: "100" });
  const logger = new RecordedLogger();
  const tracing = open(logger);
  await call(tracing);
  await until("the log line", () => logger.lines.length > 0);
  await tracing.close();
  const expected =
    "Tracing: Configuration: OTEL_EXPORTER_OTLP_COMPRESSION is invalid, expected 'none' or 'gzip' (actual: 'zip')";
  assertEquals(logger.lines[0]?.message, expected);
});

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
    const { message } = assertThrows(() => open(new RecordedLogger(), { protocol, otlp }));
    assertEquals(message, `Invalid OTEL_EXPORTER_OTLP_${option} ${problem}`);
  });
}

for (const text of ["http://c:1", "https://c", "c:4317", "c", "unix:///tmp/c.sock"]) {
  Deno.test(`tracing over grpc: the endpoint "${text}" is taken`, async () => {
    const tracing = open(new RecordedLogger(), { protocol: "grpc", otlp: new Map([["ENDPOINT", text]]) });
    await tracing.close();
  });
}
