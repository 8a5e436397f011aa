import { until } from "../../harness/until.ts";
import { assertEquals } from "#assert";
import { WorkerExport } from "../../../src/telemetry/tracing_export_supervisor.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { ALIVE, DEAF, ExporterDouble, namesIn, spanNamed } from "../../harness/tracing_exporter_double.ts";

const EXPORTED = { protocol: "http/json", otlp: new Map(), attributes: {}, version: "1" } as const;

/** An export by these workers, one after the other. */
function exportBy(...workers: ExporterDouble[]) {
  const [clock, logger] = [new FakeClock(), new RecordedLogger()];
  let started = 0;
  const createWorker = () => {
    const worker = workers[started++];
    if (worker === undefined) throw new Error("no more workers");
    return worker;
  };
  const opened = new WorkerExport({ ...EXPORTED, clock, logger, createWorker });
  const logged = () => logger.lines.map(({ level, message, fields }) => [level, message, fields]);
  return { clock, logger, opened, logged };
}

/** The line for a worker that failed. */
function failure(error: unknown, restartMs: number, lost: number): unknown[] {
  const text = "Span export worker failed; restarting it and keeping new spans";
  return ["error", text, { error, restartMs, lost }];
}

/** The same, with a first span that is not sent yet; the first worker is ready, if ever. */
async function openWith(...workers: ExporterDouble[]) {
  const parts = exportBy(...workers);
  parts.opened.add(spanNamed("first"));
  await Promise.resolve();
  return parts;
}

Deno.test("span export: spans go to the worker, which stops when all are exported", async () => {
  const worker = new ExporterDouble();
  const { clock, opened, logged } = exportBy(worker);
  opened.add(spanNamed("a"));
  await Promise.resolve();
  clock.advance(250);
  opened.add(spanNamed("b"));
  await opened.close();
  assertEquals(worker.packs.map(namesIn), [["a"], ["b"]]);
  assertEquals(worker.received, ["start", "spans", "spans", "stop"]);
  assertEquals([worker.isTerminated, clock.waiting, logged()], [true, 0, []]);
});

Deno.test("span export: without a span no worker is started, nor after the end", async () => {
  const worker = new ExporterDouble();
  const { clock, opened, logged } = exportBy(worker);
  clock.advance(3_600_000);
  await opened.close();
  opened.add(spanNamed("late"));
  clock.advance(3_600_000);
  assertEquals([worker.received, logged(), clock.waiting], [[], [], 0]);
});

Deno.test("span export: the end waits for a worker that is starting", async () => {
  const worker = new ExporterDouble({ stop: ALIVE.stop });
  const { clock, opened, logged } = exportBy(worker);
  opened.add(spanNamed("a"));
  const closed = opened.close();
  await Promise.resolve();
  assertEquals(worker.received, ["start"]);
  worker.send(ALIVE.start);
  await closed;
  assertEquals([worker.received, worker.packs.map(namesIn)], [["start", "spans", "stop"], [["a"]]]);
  assertEquals([worker.isTerminated, clock.waiting, logged()], [true, 0, []]);
});

const UNUSABLE: Readonly<Record<string, readonly [worker: ExporterDouble, waitMs: number, error: unknown]>> =
  {
    "cannot be used": [
      new ExporterDouble({ start: { type: "failed", error: new Error("no") } }),
      0,
      new Error("no"),
    ],
    "is not ready within 30 s": [new ExporterDouble({}), 30_000, "no start for 30 s"],
  };

for (const [title, [worker, waitMs, error]] of Object.entries(UNUSABLE)) {
  Deno.test(`span export: a first worker that ${title} is replaced, and spans wait meanwhile`, async () => {
    const next = new ExporterDouble();
    const { clock, opened, logged } = await openWith(worker, next);
    clock.advance(waitMs);
    assertEquals([worker.isTerminated, next.received], [true, []]);
    clock.advance(1_000);
    await Promise.resolve();
    await opened.close();
    assertEquals([next.packs.map(namesIn), logged()], [[["first"]], [failure(error, 1_000, 0)]]);
  });
}

Deno.test("span export: a worker that fails, or acknowledges no spans for 30 s, is replaced, and spans wait meanwhile", async () => {
  const workers = [new ExporterDouble(DEAF), new ExporterDouble(DEAF), new ExporterDouble()] as const;
  const { clock, opened, logged } = await openWith(...workers);
  clock.advance(250);
  workers[0].fail("it broke");
  opened.add(spanNamed("kept"));
  clock.advance(1_000);
  await Promise.resolve();
  // Messages of a replaced worker are ignored.
  workers[0].send({ type: "failed", error: new Error("too late") });
  assertEquals(workers[1].packs.map(namesIn), [["kept"]]);
  clock.advance(30_000);
  clock.advance(2_000);
  await Promise.resolve();
  opened.add(spanNamed("next"));
  await opened.close();
  assertEquals([workers[2].packs.map(namesIn), clock.waiting], [[["next"]], 0]);
  const errors = [new Error("it broke"), "no receipt of spans for 30 s"];
  assertEquals(logged(), errors.map((error, index) => failure(error, 1_000 * (index + 1), 1)));
});

Deno.test("span export: a worker that owes no receipt is not replaced", async () => {
  const { clock, opened, logged } = await openWith(new ExporterDouble());
  clock.advance(250);
  await Promise.resolve();
  clock.advance(3_600_000);
  await opened.close();
  assertEquals(logged(), []);
});

Deno.test("span export: the end does not wait for a worker that is not running", async () => {
  const workers = [new ExporterDouble(), new ExporterDouble()] as const;
  const { clock, opened, logger } = await openWith(...workers);
  clock.advance(250);
  workers[0].fail("it broke");
  opened.add(spanNamed("kept"));
  await opened.close();
  assertEquals(logger.lines.at(-1)?.message, "Cannot export the last spans: no worker is running");
  assertEquals([workers[1].received, clock.waiting], [[], 0]);
});

Deno.test("span export: the end goes on while the collector takes spans each second, for 5 s at most", async () => {
  for (const [exports, seconds] of [[0, 1], [1, 2], [9, 5]] as const) {
    const worker = new ExporterDouble({ start: ALIVE.start });
    const { clock, opened, logger } = await openWith(worker);
    let isClosed = false;
    const closed = opened.close().then(() => void (isClosed = true));
    await until("the worker to receive it", () => worker.received.includes("stop"));
    let waited = 0;
    for (; !isClosed; waited++) {
      if (waited < exports) worker.send({ type: "exported" });
      clock.advance(1_000);
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    }
    await closed;
    assertEquals([waited, logger.lines.map(({ message }) => message)], [seconds, [
      "Cannot export the last spans: the collector did not accept them in time",
    ]]);
    assertEquals([worker.isTerminated, clock.waiting], [true, 0]);
  }
});

for (const isReported of [true, false]) {
  Deno.test(`span export: lost last spans are logged when the worker ${isReported ? "reports a failure" : "fails"}`, async () => {
    const worker = new ExporterDouble({ start: ALIVE.start });
    const { clock, opened, logger } = await openWith(worker);
    const closed = opened.close();
    if (isReported) worker.send({ type: "failed", error: new Error("it broke") });
    else worker.fail("it broke");
    await closed;
    const message = "Cannot export the last spans: it broke";
    assertEquals(logger.lines, [{ level: "warning", message, fields: {} }]);
    assertEquals([worker.isTerminated, clock.waiting], [true, 0]);
  });
}
