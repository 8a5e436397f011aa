import { assertEquals, assertMatch } from "#assert";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { settledWithin } from "../../../src/base/wait.ts";
import { OtlpExporter } from "../../../src/telemetry/otlp_exporter.ts";
import { type OtlpProtocol, resourceOf } from "../../../src/telemetry/otlp_settings.ts";
import { SpanOutbox } from "../../../src/telemetry/tracing_span_outbox.ts";
import { SpanPacker } from "../../../src/telemetry/tracing_span_pack.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { FakeClock, patientClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { OtlpReceiver } from "../../harness/otlp_receiver.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { spanNamed } from "../../harness/span_samples.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { eventually, until } from "../../harness/until.ts";

const LOST = "Cannot export spans: spans are dropped until the collector responds";
const NAMES = { serviceName: "limits", serviceNamespace: "shop", serviceInstanceId: "one", version: "1.2.3" };

/** An export of spans by a worker, with these options of OTLP; whatever is not sent yet waits for 10 ms. */
class ExportedSpans implements AsyncDisposable {
  readonly logger = new RecordedLogger();
  readonly outbox: SpanOutbox;
  readonly exporter: OtlpExporter;

  constructor(protocol: OtlpProtocol, otlp: Readonly<Record<string, string>>, clock: Clock = patientClock) {
    const { logger } = this;
    const options = { protocols: { TRACES: protocol }, attributes: resourceOf(NAMES), version: "1.2.3" };
    const exporter = new OtlpExporter({ ...options, otlp: new Map(Object.entries(otlp)) }, { clock, logger });
    const limits = { maxWaiting: 2_048, maxBatch: 512, delayMs: 10 };
    this.exporter = exporter;
    if (exporter.spans === undefined) throw new Error("no spans are exported");
    this.outbox = new SpanOutbox({ ...limits, ...exporter.spans, clock, logger });
  }

  add(...names: readonly string[]): void {
    for (const name of names) this.outbox.add(spanNamed(name));
  }

  get messages(): string[] {
    return this.logger.lines.map(({ message }) => message);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.outbox.close();
    await this.exporter.close();
  }
}

for (const protocol of ["http/protobuf", "http/json", "grpc"] as const) {
  const transport = protocol === "grpc" ? "grpc" : "http";

  Deno.test(`tracing over ${protocol}: what waits is exported at the end, half of a character as well`, async () => {
    await using receiver = await OtlpReceiver.start({ protocol: transport });
    const names = Array.from({ length: 1_200 }, (_, index) => `${index}`);
    const opened = new ExportedSpans(protocol, { ENDPOINT: receiver.url });
    {
      await using _ = opened;
      const half = spanNamed("half");
      half.set("text", "\ud83d!");
      opened.add(...names);
      opened.outbox.add(half);
    }
    const { traceId, spanId, attributes, ...span } = receiver.one("half");
    assertEquals(String(attributes["text"]).toWellFormed().at(-1), "!");
    assertEquals([span, traceId.length, spanId.length], [
      {
        name: "half",
        kind: 2,
        parentSpanId: "",
        traceState: "",
        status: { code: 0, message: "" },
        resource: {
          "service.name": "limits",
          "service.namespace": "shop",
          "service.instance.id": "one",
          "service.version": "1.2.3",
        },
      },
      32,
      16,
    ]);
    assertEquals([receiver.spans.map(({ name }) => name).sort(), opened.messages], [
      [...names, "half"].sort(),
      [],
    ]);
  });

  Deno.test(`tracing over ${protocol}: the end waits for a slow collector`, async () => {
    await using receiver = await OtlpReceiver.start({ protocol: transport });
    await using relay = await startTcpRelay(Number(new URL(receiver.url).port));
    relay.setMode("stall");
    const opened = new ExportedSpans(protocol, { ENDPOINT: `http://${relay.url}` });
    opened.add("a");
    const closing = opened[Symbol.asyncDispose]().then(() => opened.logger.info("closed"));
    await until("the exporter to connect", () => relay.accepted > 0);
    opened.logger.info("the collector wakes up");
    relay.setMode("relay");
    await closing;
    assertEquals(receiver.spans.map(({ name }) => name), ["a"]);
    assertEquals(opened.messages, ["the collector wakes up", "closed"]);
  });
}

for (const protocol of ["http/protobuf", "grpc"] as const) {
  Deno.test(`tracing over ${protocol}: an outage is logged once, and its end`, async () => {
    const port = freePort();
    // Shorter than the pause before an export is repeated.
    const options = { ENDPOINT: `http://127.0.0.1:${port}`, TIMEOUT: "700" };
    await using opened = new ExportedSpans(protocol, options);
    opened.add("a");
    await until("the outage to be logged", () => opened.messages.includes(LOST));
    await eventually(true, () => opened.logger.lines[0]?.fields["error"] instanceof Error);
    opened.add("b");
    await using receiver = await OtlpReceiver.start({
      protocol: protocol === "grpc" ? "grpc" : "http",
      port,
    });
    await until("spans to be exported again", () => {
      opened.add("c");
      return opened.messages.includes("Exporting spans again");
    });
    assertEquals(opened.messages, [LOST, "Exporting spans again"]);
    assertEquals(receiver.spans.every(({ name }) => name !== "a"), true);
  });
}

Deno.test("tracing over grpc: the log line about an outage states what is wrong with a certificate", async () => {
  await using certificates = await makeCertificates();
  const { certFile, keyFile } = certificates.server;
  const pair = { cert: await Deno.readTextFile(certFile), key: await Deno.readTextFile(keyFile) };
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {}, ...pair };
  await using server = Deno.serve(options, () => new Response());
  await using opened = new ExportedSpans("grpc", {
    ENDPOINT: `https://127.0.0.1:${server.addr.port}`,
    CERTIFICATE: certificates.otherAuthority.certFile,
    TIMEOUT: "5000",
  });
  opened.add("a");
  const line = await until("the log line about the outage", () => opened.logger.lines[0]);
  assertEquals(line.message, LOST);
  assertMatch(String(line.fields["error"]), /UNAVAILABLE: .*not issued by a trusted authority$/);
});

const ENCODINGS = [["http/protobuf", "application/x-protobuf"], ["http/json", "application/json"]] as const;

for (const [protocol, type] of ENCODINGS) {
  Deno.test(`tracing: the standard variables decide how spans are exported, as ${type}`, async () => {
    await using receiver = await OtlpReceiver.start({ protocol: "http" });
    {
      await using opened = new ExportedSpans(protocol, {
        ENDPOINT: "http://127.0.0.1:9",
        TRACES_ENDPOINT: `${receiver.url}/elsewhere`,
        HEADERS: "authorization=token,x-more=1",
        COMPRESSION: "gzip",
      });
      opened.add("a");
    }
    const seen = receiver.requests.map(({ path, headers }) => [
      path,
      ...["authorization", "x-more", "content-type", "content-encoding"].map((name) => headers.get(name)),
    ]);
    assertEquals(seen, [["/elsewhere", "token", "1", type, "gzip"]]);
    assertEquals(receiver.spans.length, 1);
  });
}

Deno.test("tracing: the end waits 5 s for a collector that never answers", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const clock = new FakeClock();
  // An export without this limit would go on.
  const options = { ENDPOINT: `http://127.0.0.1:${listener.addr.port}`, TIMEOUT: "120000" };
  const opened = new ExportedSpans("http/protobuf", options, clock);
  opened.add("a");
  const closed = opened[Symbol.asyncDispose]();
  // The wait for the worker is over.
  const connection = await listener.accept();
  clock.advance(4_999);
  assertEquals(opened.messages, []);
  clock.advance(1);
  await closed;
  assertEquals(opened.messages, [
    "Cannot export the last spans: the collector did not accept them in time",
  ]);
  // Nothing of it goes on in the background.
  const sent = new Response(connection.readable).arrayBuffer().then(() => {});
  assertEquals(await settledWithin(sent, 30_000, systemClock), true);
  listener.close();
});

Deno.test("tracing: the end waits 1 s for a collector that did not accept the spans before", async () => {
  const refusing = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => {
    return new Response(null, { status: 400, headers: { connection: "close" } });
  });
  const clock = new FakeClock();
  const options = { TRACES_ENDPOINT: `http://127.0.0.1:${refusing.addr.port}`, TIMEOUT: "120000" };
  const opened = new ExportedSpans("http/protobuf", options, clock);
  const pack = new SpanPacker();
  pack.add(spanNamed("a"));
  assertEquals(await opened.exporter.send({ signal: "TRACES", spans: pack.take() }), false);
  await refusing.shutdown();
  // The exporter tries again until its own timeout.
  opened.add("b");
  const closed = opened[Symbol.asyncDispose]();
  await until("the wait", () => clock.waits.at(-1) === 1_000);
  clock.advance(1_000);
  await closed;
  assertEquals(opened.messages, [
    LOST,
    "Cannot export the last spans: the collector did not accept them in time",
  ]);
});

Deno.test("tracing: options that the SDK cannot use are logged", async () => {
  // There is no collector to wait for.
  await using opened = new ExportedSpans("http/protobuf", { COMPRESSION: "zip", TIMEOUT: "100" });
  opened.add("a");
  await until("the log line", () => opened.messages.length > 0);
  const expected =
    "OTLP export: Configuration: OTEL_EXPORTER_OTLP_COMPRESSION is invalid, expected 'none' or 'gzip' (actual: 'zip')";
  assertEquals(opened.messages[0], expected);
});

Deno.test("tracing: a worker that cannot start is replaced, and spans wait meanwhile", async () => {
  const clock = new FakeClock();
  const options = { ENDPOINT: "https://127.0.0.1:9", CERTIFICATE: "/nowhere/a.pem" };
  const opened = new ExportedSpans("grpc", options, clock);
  opened.add("a");
  clock.advance(10);
  const text = "OTLP export worker failed; restarting it and keeping new spans";
  await eventually(
    [["error", text]],
    () => opened.logger.lines.map(({ level, message }) => [level, message]),
  );
  const closed = opened[Symbol.asyncDispose]();
  clock.advance(5_000);
  await closed;
  assertEquals(opened.messages.at(-1), "Cannot export the last spans: the worker is not ready");
});
