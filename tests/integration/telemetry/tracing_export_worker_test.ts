import { assertEquals } from "#assert";
import type { OtlpProtocol } from "../../../src/telemetry/otlp_settings.ts";
import { type ExporterHandle, WorkerExport } from "../../../src/telemetry/tracing_export_supervisor.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { FakeClock, patientClock } from "../../harness/fake_clock.ts";
import { OtlpReceiver } from "../../harness/otlp_receiver.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { until } from "../../harness/until.ts";
import { EnvironmentOf, startExporter } from "./tracing_environment.ts";
import { spanNamed } from "../../harness/tracing_exporter_double.ts";

/** An export with real workers, whose limits are far away. */
function open(
  logger: RecordedLogger,
  { protocol, createWorker = startExporter }: { protocol: OtlpProtocol; createWorker?: () => ExporterHandle },
): WorkerExport {
  const exported = { protocol, otlp: new Map(), attributes: {}, version: "1" };
  return new WorkerExport({ ...exported, logger, clock: patientClock, createWorker });
}

/** A worker that runs this script. */
function workerOf(script: string): ExporterHandle {
  return new Worker(`data:application/javascript,${encodeURIComponent(script)}`, { type: "module" });
}

for (const protocol of ["http/protobuf", "http/json", "grpc"] as const) {
  const transport = protocol === "grpc" ? "grpc" : "http";

  Deno.test(`span export over ${protocol}: all that waits is exported at the end, half of a character as well`, async () => {
    await using receiver = await OtlpReceiver.start({ protocol: transport });
    using _ = new EnvironmentOf({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
    const logger = new RecordedLogger();
    const opened = open(logger, { protocol });
    const names = Array.from({ length: 1_200 }, (_, index) => `${index}`);
    const half = spanNamed("half");
    half.set("text", "\ud83d!");
    for (const span of [...names.map(spanNamed), half]) opened.add(span);
    await opened.close();
    assertEquals(String(receiver.one("half").attributes["text"]).toWellFormed().at(-1), "!");
    assertEquals([receiver.spans.map(({ name }) => name).sort(), logger.lines], [
      [...names, "half"].sort(),
      [],
    ]);
  });

  Deno.test(`span export over ${protocol}: the end waits for a slow collector`, async () => {
    await using receiver = await OtlpReceiver.start({ protocol: transport });
    await using relay = await startTcpRelay(Number(new URL(receiver.url).port));
    relay.setMode("stall");
    using _ = new EnvironmentOf({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://${relay.url}` });
    const logger = new RecordedLogger();
    const opened = open(logger, { protocol });
    opened.add(spanNamed("a"));
    const closing = opened.close().then(() => logger.info("closed"));
    await until("the exporter to connect", () => relay.accepted > 0);
    logger.info("the collector wakes up");
    relay.setMode("relay");
    await closing;
    assertEquals(receiver.spans.map(({ name }) => name), ["a"]);
    assertEquals(logger.lines.map(({ message }) => message), ["the collector wakes up", "closed"]);
  });
}

Deno.test("span export: beyond the limit spans are dropped, and logged", async () => {
  await using receiver = await OtlpReceiver.start({ protocol: "http" });
  using _ = new EnvironmentOf({
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_BSP_MAX_QUEUE_SIZE: "5",
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "5",
  });
  const logger = new RecordedLogger();
  const opened = open(logger, { protocol: "http/json" });
  for (const name of "abcdefg") opened.add(spanNamed(name));
  await opened.close();
  assertEquals(receiver.spans.map(({ name }) => name), [..."abcde"]);
  const message = "Spans dropped: too many wait to be exported";
  assertEquals(logger.lines, [{ level: "warning", message, fields: { dropped: 2, maxWaiting: 5 } }]);
});

const DEATHS = [
  ["throws", "throw new Error('it broke');"],
  ["has an unhandled rejection", "Promise.reject(new Error('it broke'));"],
] as const;

for (const [title, death] of DEATHS) {
  // An error immediately after "ready" may overtake it.
  const onSpans = `onmessage = ({ data: { type } }) => { if (type === 'spans') { ${death} } };`;
  const script = `${onSpans} postMessage({ type: 'ready' });`;
  Deno.test(`span export: a worker that ${title} is logged, and the process goes on`, async () => {
    const logger = new RecordedLogger();
    const opened = open(logger, { protocol: "http/json", createWorker: () => workerOf(script) });
    opened.add(spanNamed("a"));
    await until("the log line", () => logger.lines.length > 0);
    const lines = logger.lines.map(({ level, message }) => [level, message]);
    const text = "Span export worker failed; restarting it and keeping new spans";
    assertEquals(lines, [["error", text]]);
    await opened.close();
  });
}

Deno.test("span export: a worker whose thread never ends does not hold up the end", async () => {
  const [clock, logger] = [new FakeClock(), new RecordedLogger()];
  const script = "onmessage = () => { while (true) {} }; postMessage({ type: 'ready' });";
  const opened = new WorkerExport({
    ...{ protocol: "http/json", otlp: new Map(), attributes: {}, version: "1", clock, logger },
    createWorker: () => workerOf(script),
  });
  opened.add(spanNamed("a"));
  const closed = opened.close();
  clock.advance(5_000);
  await closed;
  assertEquals(logger.lines.map(({ message }) => message), [
    "Cannot export the last spans: the worker was not ready within 5000 ms",
  ]);
});
