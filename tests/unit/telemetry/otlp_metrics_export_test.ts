import { assertEquals, assertThrows } from "#assert";
import type { MetricBatch } from "../../../src/base/metric_batch.ts";
import type { WorkerNotice } from "../../../src/base/supervised_worker.ts";
import {
  type FromMetricsExporter,
  MetricsExport,
  type MetricsExporterHandle,
  type MetricsExportOptions,
  type ToMetricsExporter,
} from "../../../src/telemetry/otlp_metrics_export.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { settledTurns } from "../../harness/until.ts";

const NAMES = { serviceName: "RateLimit", serviceNamespace: "", serviceInstanceId: "one", version: "1" };

/** A worker that exports nothing: a test answers in its place. */
class WorkerDouble implements MetricsExporterHandle {
  readonly received: ToMetricsExporter[] = [];
  isTerminated = false;
  onmessage: MetricsExporterHandle["onmessage"] = null;
  onmessageerror: MetricsExporterHandle["onmessageerror"] = null;
  onerror: MetricsExporterHandle["onerror"] = null;
  readonly #answers: FromMetricsExporter[];

  /** With the answers to batches; one without an answer waits. */
  constructor(...answers: readonly (boolean | Error)[]) {
    this.#answers = answers.map((answer) =>
      answer instanceof Error ? { type: "failed", error: answer } : { type: "exported", isAccepted: answer }
    );
  }

  postMessage(message: ToMetricsExporter): void {
    this.received.push(message);
    const answer = message.type === "start" ? { type: "ready" } as const : this.#answers.shift();
    if (message.type !== "ping" && answer !== undefined) queueMicrotask(() => this.send(answer));
  }

  terminate(): void {
    this.isTerminated = true;
  }

  send(message: FromMetricsExporter | WorkerNotice): void {
    this.onmessage?.(new MessageEvent("message", { data: message }));
  }

  /** The times of the batches that it received. */
  get batches(): number[] {
    return this.received.flatMap((message) => message.type === "metrics" ? [message.batch.readAt] : []);
  }
}

/** An export by these workers, one after the other; each read has two batches. */
function exportBy(workers: readonly WorkerDouble[], options: Partial<MetricsExportOptions> = {}) {
  const [clock, logger] = [new FakeClock(), new RecordedLogger()];
  let [started, readAt] = [0, 0];
  const batch = (): MetricBatch => ({ startedAt: 0, readAt: ++readAt, metrics: [] });
  const opened = new MetricsExport({
    ...NAMES,
    read: () => Promise.resolve([batch(), batch()]),
    otlp: new Map(),
    clock,
    logger,
    createWorker: () => workers[started++] ?? new WorkerDouble(),
    ...options,
  });
  return { clock, logger, opened };
}

Deno.test("metrics export: the worker starts with the first export, and takes one batch after the other", async () => {
  const worker = new WorkerDouble(true);
  const { opened } = exportBy([worker]);
  await settledTurns();
  assertEquals(worker.received, []);
  opened.start();
  opened.start();
  await settledTurns();
  assertEquals(worker.batches, [1, 2]);
  worker.send({ type: "exported", isAccepted: true });
  await settledTurns();
  opened.start();
  await settledTurns();
  assertEquals(worker.batches, [1, 2, 3]);
  await opened.close();
  await settledTurns();
  assertEquals([worker.isTerminated, worker.batches], [true, [1, 2, 3]]);
});

Deno.test("metrics export: a rejected batch ends the export; the next one has all values", async () => {
  const worker = new WorkerDouble(false, true, true);
  const { opened } = exportBy([worker]);
  for (let round = 0; round < 2; round++) {
    opened.start();
    await settledTurns();
  }
  assertEquals(worker.batches, [1, 3, 4]);
  await opened.close();
});

for (const isSilent of [false, true]) {
  const what = isSilent ? "answers no ping" : "fails";
  Deno.test(`metrics export: a worker that ${what} is replaced, and the next interval exports again`, async () => {
    const first = isSilent ? new WorkerDouble() : new WorkerDouble(new Error("it broke"));
    const second = new WorkerDouble(true, true);
    const { clock, logger, opened } = exportBy([first, second]);
    opened.start();
    await settledTurns();
    if (isSilent) { for (let beat = 0; beat < 8; beat++) clock.advance(10_000); }
    // Without a worker that runs nothing is read.
    else opened.start();
    await settledTurns();
    assertEquals(first.isTerminated, true);
    clock.advance(1_000);
    opened.start();
    await settledTurns();
    assertEquals([first.batches, second.batches], [[1], [3, 4]]);
    const message = "Metrics export worker failed; restarting it and exporting again at the next interval";
    assertEquals(logger.lines.map((line) => line.message), [message]);
    await opened.close();
  });
}

Deno.test("metrics export: the end exports once more, and an end without an answer is not awaited", async () => {
  const worker = new WorkerDouble(true, true);
  const { clock, opened } = exportBy([worker]);
  await opened.finish();
  assertEquals(worker.batches, [1, 2]);
  const finishing = opened.finish();
  await settledTurns();
  await opened.close();
  await finishing;
  assertEquals([worker.isTerminated, clock.waiting], [true, 0]);
});

Deno.test("metrics export: metrics that cannot be read are logged", async () => {
  const { logger, opened } = exportBy([], { read: () => Promise.reject(new Error("no rules")) });
  await opened.finish();
  assertEquals(logger.lines.map(({ message }) => message), ["Cannot read the metrics to export"]);
  await opened.close();
});

const WRONG: readonly [option: string, value: string, shown: string, expected: string][] = [
  ["TEMPORALITY_PREFERENCE", "delta", '"delta"', "cumulative, the only one that Weir exports"],
  ["PROTOCOL", "udp", '"udp"', "grpc, http/protobuf or http/json"],
  ["ENDPOINT", "me:secret@collector", "(value not shown)", "a URL such as http://127.0.0.1:4318"],
];

for (const [option, value, shown, expected] of WRONG) {
  Deno.test(`metrics export: an invalid ${option} is rejected`, () => {
    const { message } = assertThrows(() => exportBy([], { otlp: new Map([[`METRICS_${option}`, value]]) }));
    assertEquals(message, `Invalid OTEL_EXPORTER_OTLP_METRICS_${option} ${shown}: expected ${expected}`);
  });
}

Deno.test("metrics export: options for spans have no effect on it, and the general ones have", async () => {
  const worker = new WorkerDouble(true, true);
  const options = { TRACES_PROTOCOL: "udp", PROTOCOL: "grpc", METRICS_TEMPORALITY_PREFERENCE: "Cumulative" };
  const { opened } = exportBy([worker], { otlp: new Map(Object.entries(options)) });
  await opened.finish();
  const [start] = worker.received;
  assertEquals(start?.type === "start" && start.options.protocol, "grpc");
  await opened.close();
});
