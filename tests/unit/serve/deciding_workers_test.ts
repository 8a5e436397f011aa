import { assertEquals } from "#assert";
import { Health } from "../../../src/base/health.ts";
import type { WorkerNotice } from "../../../src/threads/supervised_worker.ts";
import { makeParts } from "../../../src/serve/parts.ts";
import { DecidingWorkers } from "../../../src/serve/workers/deciding_workers.ts";
import type {
  DecidingWorkerHandle,
  FromDecidingWorker,
  ToDecidingWorker,
  WorkerReport,
} from "../../../src/serve/workers/message.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { StatsDeltas } from "../../../src/stats/stats_delta.ts";
import { StatsStore, statsText } from "../../../src/stats/store.ts";
import type { OtlpBatch, SpanExport } from "../../../src/telemetry/otlp_exporter.ts";
import { SpanPacker } from "../../../src/telemetry/tracing_span_pack.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { ServiceFixture } from "../../harness/service_fixture.ts";
import { settledTurns, until } from "../../harness/until.ts";

type Sent = ToDecidingWorker["type"];

class Handle implements DecidingWorkerHandle {
  readonly sent: ToDecidingWorker[] = [];
  readonly stats = new StatsStore(100);
  readonly deltas = new StatsDeltas(this.stats);
  isTerminated = false;
  onmessage: DecidingWorkerHandle["onmessage"] = null;
  onmessageerror: DecidingWorkerHandle["onmessageerror"] = null;
  onerror: DecidingWorkerHandle["onerror"] = null;

  postMessage(message: ToDecidingWorker): void {
    this.sent.push(message);
  }
  terminate(): void {
    this.isTerminated = true;
  }
  say(message: FromDecidingWorker | WorkerNotice): void {
    this.onmessage?.(new MessageEvent("message", { data: message }));
  }
  /** Sends its statistics and its health. */
  report(health: Partial<Pick<WorkerReport, "failing" | "degraded">> = {}): void {
    const report = {
      stats: this.deltas.take(),
      tally: { total: 0, overLimit: 0, keys: [] },
      sums: [],
      limits: [],
      suppressed: 0,
      failing: [],
      degraded: [],
      ...health,
    };
    this.say({ type: "report", report: structuredClone(report) });
  }
  /** The kinds of all messages to it. */
  get types(): Sent[] {
    return this.sent.map(({ type }) => type);
  }
  /** Waits for a message of this kind, and answers it. */
  async does(type: Sent): Promise<void> {
    await until(`"${type}"`, () => this.types.includes(type));
    const index = this.types.lastIndexOf(type);
    const message = this.sent[index];
    if (message !== undefined && message.type !== "stop") this.say({ type: "done", id: message.id });
    await settledTurns();
  }
}

/** A main thread and two workers whose threads are the test's. */
class Bed implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly log = new RecordedLogger();
  readonly health = new Health();
  readonly stats = new StatsStore(100);
  readonly handles: Handle[] = [];
  readonly exported: OtlpBatch[] = [];
  readonly service = new ServiceFixture({ files: {} });
  readonly workers: DecidingWorkers;

  constructor() {
    const { clock, log: logger, health, stats } = this;
    const { settings } = readSettings({ BACKEND_TYPE: "mc", MC_HOST_PORT: "a:1", WORKERS: "3" });
    const parts = makeParts(settings, { clock, logger, health, stats, random: () => 1 });
    const createWorker = () => {
      const handle = new Handle();
      this.handles.push(handle);
      return handle;
    };
    const send = (batch: OtlpBatch) => {
      this.exported.push(batch);
      return Promise.resolve(true);
    };
    const spans: SpanExport = { protocol: "grpc", send };
    this.workers = new DecidingWorkers(parts, this.service.service, { spans, createWorker });
    health.set("start", true);
  }

  /** The last thread of a worker. */
  handle(index: number): Handle {
    const handle = this.handles[index];
    if (handle === undefined) throw new Error(`There is no thread ${index}`);
    return handle;
  }

  /** Opens both workers. */
  async listen(): Promise<void> {
    const listening = this.workers.listen(7);
    for (const handle of this.handles) {
      await handle.does("listen");
      await handle.does("health");
    }
    await listening;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closing = this.workers.close(0);
    for (const handle of this.handles) handle.say({ type: "stopped" });
    await closing;
    await this.service[Symbol.asyncDispose]();
  }
}

Deno.test("deciding workers: rules are in force when every running worker has them; a successor begins with them", async () => {
  await using bed = new Bed();
  await bed.listen();
  let isApplied = false;
  const applied = bed.workers.setRules(["{}", "{}"]).then(() => void (isApplied = true));
  for (let text = 0; text < 2; text++) await bed.handle(0).does("rules");
  await bed.handle(0).does("apply");
  assertEquals(isApplied, false);
  bed.handle(1).say({ type: "failed", reason: "boom" });
  await applied;
  assertEquals(bed.handle(1).isTerminated, true);
  bed.clock.advance(250);
  const successor = bed.handle(2);
  for (const type of ["rules", "rules", "apply", "listen", "health"] as const) await successor.does(type);
  assertEquals(successor.types, ["start", "rules", "rules", "apply", "listen", "health"]);
});

Deno.test("deciding workers: a worker that fails before it listens delays no start; its successor listens", async () => {
  await using bed = new Bed();
  const listening = bed.workers.listen(7);
  await bed.handle(0).does("listen");
  bed.handle(1).say({ type: "failed", reason: "no certificate" });
  await bed.handle(0).does("health");
  await listening;
  assertEquals(bed.health.degraded().map(({ reason }) => reason), ["2 of 3 are ready"]);
  bed.clock.advance(250);
  await bed.handle(2).does("listen");
  assertEquals(bed.health.degraded(), []);
});

/** Lets seconds pass in which the first threads send reports; answers which of these have failed. */
function failedAfter(bed: Bed, seconds: number): boolean[] {
  for (let second = 0; second < seconds; second++) {
    for (const handle of bed.handles.slice(0, 2)) handle.report();
    bed.clock.advance(1_000);
  }
  return bed.handles.slice(0, 2).map(({ isTerminated }) => isTerminated);
}

Deno.test("deciding workers: one that does not apply rules for 120 s is replaced, though it reports; the next rules are sent", async () => {
  await using bed = new Bed();
  await bed.listen();
  const applied = bed.workers.setRules([]);
  await bed.handle(0).does("apply");
  assertEquals([failedAfter(bed, 119), failedAfter(bed, 1)], [[false, false], [false, true]]);
  await applied;
  const next = bed.workers.setRules([]);
  await until("the next rules", () => bed.handle(0).types.filter((type) => type === "apply").length === 2);
  await bed.handle(0).does("apply");
  await next;
});

Deno.test("deciding workers: one that does not listen for 120 s is replaced, though it reports", async () => {
  await using bed = new Bed();
  void bed.workers.listen(7);
  await bed.handle(0).does("listen");
  await bed.handle(0).does("health");
  assertEquals([failedAfter(bed, 119), failedAfter(bed, 1)], [[false, false], [false, true]]);
  assertEquals(bed.log.lines.at(-1)?.fields["error"], "no answer to message 4 for 120 s");
});

Deno.test("deciding workers: a scrape waits a second for a worker that does not answer", async () => {
  await using bed = new Bed();
  await bed.listen();
  let isOver = false;
  const refreshing = bed.workers.refresh().then(() => void (isOver = true));
  await bed.handle(0).does("report");
  bed.clock.advance(999);
  await settledTurns();
  assertEquals(isOver, false);
  bed.clock.advance(1);
  await refreshing;
});

Deno.test("deciding workers: counters continue after a worker was replaced", async () => {
  await using bed = new Bed();
  await bed.listen();
  const add = (handle: Handle, calls: number) => {
    handle.stats.rule("shop.user", "shop").totalHits += calls;
    handle.stats.service.serviceError += calls;
    handle.report();
  };
  bed.stats.service.serviceError = 1;
  add(bed.handle(0), 2);
  add(bed.handle(1), 3);
  add(bed.handle(1), 4);
  bed.handle(1).say({ type: "failed", reason: "boom" });
  bed.clock.advance(250);
  add(bed.handle(2), 5);
  const lines = statsText(bed.stats).split("\n");
  assertEquals(lines.filter((line) => /service_error|total_hits/.test(line)), [
    "ratelimit.service.call.should_rate_limit.service_error: 15",
    "ratelimit.service.rate_limit.shop.user.total_hits: 14",
  ]);
});

Deno.test("deciding workers: the health of a worker is that of the process until the worker ends", async () => {
  await using bed = new Bed();
  const { health } = bed;
  await bed.listen();
  assertEquals([health.failing(), health.degraded()], [[], []]);
  bed.handle(1).report({
    failing: ["cache: no connection"],
    degraded: ["decisions: they fail", "decisions: it is slow"],
  });
  assertEquals(health.failing(), [{ name: "worker 3", healthy: false, reason: "cache: no connection" }]);
  await settledTurns();
  const told = bed.handle(0).sent.at(-1);
  assertEquals(told?.type === "health" && told.isHealthy, false);
  bed.handle(1).report({ degraded: ["decisions: they fail"] });
  assertEquals(health.degraded(), [{ name: "worker 3", healthy: true, reason: "decisions: they fail" }]);
  bed.handle(1).say({ type: "failed", reason: "boom" });
  assertEquals(health.failing(), []);
  assertEquals(health.degraded(), [{ name: "workers", healthy: true, reason: "2 of 3 are ready" }]);
});

Deno.test("deciding workers: one that listens and is silent for 15 s is replaced", async () => {
  await using bed = new Bed();
  await bed.listen();
  for (let second = 0; second < 15; second++) {
    bed.handle(0).report();
    bed.clock.advance(1_000);
  }
  assertEquals(bed.handles.map(({ isTerminated }) => isTerminated), [false, true]);
  assertEquals(bed.log.lines.map(({ fields }) => fields["error"]), ["no message for 15 s"]);
});

Deno.test("deciding workers: spans of all threads are sent by the one export of the process", async () => {
  await using bed = new Bed();
  const starts = bed.handles.map(({ sent }) => sent.find(({ type }) => type === "start"));
  assertEquals(starts.map((start) => start?.type === "start" ? start.spanProtocol : ""), ["grpc", "grpc"]);
  const batch = { signal: "TRACES", spans: new SpanPacker().take() } as const;
  for (const [id, handle] of bed.handles.entries()) handle.say({ type: "export", id, batch });
  await settledTurns();
  assertEquals(bed.exported, [batch, batch]);
  assertEquals(bed.handles.map(({ sent }) => sent.at(-1)), [
    { type: "exported", id: 0, isAccepted: true },
    { type: "exported", id: 1, isAccepted: true },
  ]);
});

Deno.test("deciding workers: the buckets of quotas are those of the workers that answer within a second", async () => {
  await using bed = new Bed();
  await bed.listen();
  const asked = bed.workers.quotas({ domain: "shop" });
  await until("the question", () => bed.handle(1).sent.some(({ type }) => type === "quotas"));
  const [message] = bed.handle(1).sent.flatMap((one) => one.type === "quotas" ? [one] : []);
  assertEquals(message?.filter, { domain: "shop" });
  const quotas = { buckets: 1, quotas: [] };
  bed.handle(1).say({ type: "done", id: message?.id ?? 0, quotas });
  bed.clock.advance(1_000);
  assertEquals(await asked, [quotas]);
});
