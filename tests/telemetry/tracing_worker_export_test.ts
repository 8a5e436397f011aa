import { assertEquals, assertRejects } from "@std/assert";
import { WorkerExport } from "../../src/telemetry/tracing_worker_export.ts";
import { KeptLog } from "../http/http_fixture.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { ALIVE, DEAF, ExporterDouble, namesIn, spanNamed } from "./tracing_exporter_double.ts";

const EXPORTED = { protocol: "http", otlp: new Map(), attributes: {}, version: "1" } as const;

/** An export by these workers, one after the other. */
async function openWith(...workers: ExporterDouble[]) {
  const [clock, logger] = [new FakeClock(), new KeptLog()];
  let started = 0;
  const startWorker = () => {
    const worker = workers[started++];
    if (worker === undefined) throw new Error("no more workers");
    return worker;
  };
  const opened = await WorkerExport.open({ ...EXPORTED, clock, logger, startWorker });
  const told = () => logger.lines.map(({ level, message, fields }) => [level, message, fields["lost"]]);
  return { clock, logger, opened, told };
}

Deno.test("span export: spans go to the worker, which ends when it says that all are exported", async () => {
  const worker = new ExporterDouble();
  const { clock, opened, told } = await openWith(worker);
  opened.add(spanNamed("a"));
  clock.advance(250);
  opened.add(spanNamed("b"));
  await opened.close();
  assertEquals(worker.lists.map(namesIn), [["a"], ["b"]]);
  assertEquals(worker.told, ["start", "spans", "spans", "close"]);
  assertEquals([worker.isTerminated, clock.waiting, told()], [true, 0, []]);
});

Deno.test("span export: a worker that cannot be used at the start is the start's error", async () => {
  const error = new Error("Cannot use this");
  const worker = new ExporterDouble({ start: { type: "refused", error } });
  const { message } = await assertRejects(() => openWith(worker));
  assertEquals([message, worker.isTerminated], ["Cannot use this", true]);
});

Deno.test("span export: a worker that is never ready is the start's error", async () => {
  const [clock, logger, worker] = [new FakeClock(), new KeptLog(), new ExporterDouble({})];
  const opening = WorkerExport.open({ ...EXPORTED, clock, logger, startWorker: () => worker });
  clock.advance(30_000);
  const { message } = await assertRejects(() => opening);
  assertEquals(message, "Cannot start tracing: the thread that exports spans was not ready for 30 s");
  assertEquals([worker.isTerminated, clock.waiting], [true, 0]);
});

Deno.test("span export: a worker that fails is replaced, ever later, and spans wait meanwhile", async () => {
  const workers = [new ExporterDouble(DEAF), new ExporterDouble(DEAF), new ExporterDouble()] as const;
  const { clock, opened, told } = await openWith(...workers);
  opened.add(spanNamed("lost"));
  clock.advance(250);
  assertEquals(workers[0].fail("it broke"), false);
  opened.add(spanNamed("kept"));
  clock.advance(1_000);
  await Promise.resolve();
  // What a worker tells that was left behind is not heard.
  workers[0].tell({ type: "refused", error: new Error("too late") });
  assertEquals(workers[1].lists.map(namesIn), [["kept"]]);
  workers[1].fail("it broke again");
  clock.advance(2_000);
  await Promise.resolve();
  opened.add(spanNamed("next"));
  await opened.close();
  assertEquals(workers[2].lists.map(namesIn), [["next"]]);
  const failed = (seconds: number) =>
    `the thread that exports spans failed; its spans are lost, another one is started in ${seconds} s`;
  assertEquals(told(), [["error", failed(1), 1], ["error", failed(2), 1]]);
  assertEquals([workers.map((worker) => worker.isTerminated), clock.waiting], [[true, true, true], 0]);
});

Deno.test("span export: a worker that takes no spans for 30 s is replaced", async () => {
  const workers = [new ExporterDouble(DEAF), new ExporterDouble()] as const;
  const { clock, opened, told } = await openWith(...workers);
  opened.add(spanNamed("a"));
  clock.advance(250);
  clock.advance(30_000);
  const silence = "the thread that exports spans took no spans for 30 s";
  const next = "its spans are lost, another one is started in 1 s";
  assertEquals([told(), workers[0].isTerminated], [[["error", `${silence}; ${next}`, 1]], true]);
  clock.advance(1_000);
  await Promise.resolve();
  await opened.close();
  assertEquals([workers[1].told, clock.waiting], [["start", "close"], 0]);
});

Deno.test("span export: a worker that has nothing to take is left alone", async () => {
  const { clock, opened, told } = await openWith(new ExporterDouble());
  opened.add(spanNamed("a"));
  clock.advance(250);
  await Promise.resolve();
  clock.advance(3_600_000);
  await opened.close();
  assertEquals(told(), []);
});

for (const isStarting of [false, true]) {
  const title = isStarting ? "ready" : "there";
  Deno.test(`span export: the end waits for no worker that is not ${title}`, async () => {
    const workers = [new ExporterDouble(), new ExporterDouble({})] as const;
    const { clock, opened, logger } = await openWith(...workers);
    workers[0].fail("it broke");
    if (isStarting) clock.advance(1_000);
    await opened.close();
    assertEquals(logger.lines.at(-1)?.message, "Cannot export the last spans: no thread exports");
    assertEquals([workers[1].isTerminated, clock.waiting], [isStarting, 0]);
  });
}

const ENDS = [
  ["says that it could not", (worker: ExporterDouble) => {
    worker.tell({ type: "closed", error: new Error("it broke") });
  }],
  ["fails", (worker: ExporterDouble) => void worker.fail("it broke")],
] as const;

for (const [title, end] of ENDS) {
  Deno.test(`span export: the last spans are told lost when the worker ${title}`, async () => {
    const worker = new ExporterDouble({ start: ALIVE.start });
    const { clock, opened, logger } = await openWith(worker);
    const closed = opened.close();
    end(worker);
    await closed;
    assertEquals(logger.lines, [{
      level: "warning",
      message: "Cannot export the last spans",
      fields: { error: new Error("it broke") },
    }]);
    assertEquals([worker.isTerminated, clock.waiting], [true, 0]);
  });
}
