import { assertEquals, assertRejects } from "#assert";
import { Health } from "../../../src/base/health.ts";
import type { WorkerNotice } from "../../../src/base/supervised_worker.ts";
import { SharedMemoryCache } from "../../../src/cache/shared_memory_cache.ts";
import { makeParts } from "../../../src/serve/parts.ts";
import { DecidingWorkers } from "../../../src/serve/workers/deciding_workers.ts";
import type {
  DecidingWorkerHandle,
  FromDecidingWorker,
  ToDecidingWorker,
} from "../../../src/serve/workers/message.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { StatsStore, statsText } from "../../../src/stats/store.ts";
import { StatsDeltas } from "../../../src/stats/stats_delta.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { settledTurns, until } from "../../harness/until.ts";
import { ServiceFixture } from "../../harness/service_fixture.ts";

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
  /** Sends its statistics. */
  report(id?: number): void {
    const report = { stats: this.deltas.take(), tally: { total: 0, overLimit: 0, keys: [] }, sums: [] };
    this.say({ type: "report", id, report: structuredClone(report) });
  }
  /** Settles when it was sent a message of this kind. */
  async got(type: ToDecidingWorker["type"]): Promise<void> {
    await until(`"${type}"`, () => this.sent.some((message) => message.type === type));
  }
  /** The kinds of the messages since the last call. */
  take(): string[] {
    return this.sent.splice(0).map(({ type }) => type);
  }
}

/** Two workers whose threads are the test's. */
class Bed implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly log = new RecordedLogger();
  readonly health = new Health();
  readonly stats = new StatsStore(100);
  readonly handles: Handle[] = [];
  readonly memory = new SharedMemoryCache({ maxKeys: 100, clock: this.clock });
  readonly service = new ServiceFixture({ files: {} });
  readonly givenUp: string[] = [];
  readonly workers: DecidingWorkers;

  constructor() {
    const { clock, log: logger, health, stats, memory } = this;
    const { settings } = readSettings({ BACKEND_TYPE: "memory", WORKERS: "2", GRPC_PORT: "0" });
    const parts = makeParts(settings, { clock, logger, health, stats, random: () => 1 });
    this.workers = new DecidingWorkers(parts, {
      version: "1",
      memory,
      service: this.service.service,
      onGivenUp: (reason) => void this.givenUp.push(reason),
      createWorker: () => {
        const handle = new Handle();
        this.handles.push(handle);
        return handle;
      },
    });
    health.set("start", true);
  }

  /** The last thread of a worker. */
  handle(index: number): Handle {
    const handle = this.handles[index];
    if (handle === undefined) throw new Error(`There is no thread ${index}`);
    return handle;
  }

  /** Opens both workers. */
  async listen(): Promise<string> {
    for (const handle of this.handles) handle.say({ type: "opened" });
    const listening = this.workers.listen();
    for (const handle of this.handles) {
      await handle.got("listen");
      handle.say({ type: "listening", address: "127.0.0.1:7", port: 7 });
    }
    return await listening;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closing = this.workers.close(0);
    for (const handle of this.handles) handle.say({ type: "stopped" });
    await closing;
    await this.memory.close();
    await this.service[Symbol.asyncDispose]();
  }
}

const turn = () => settledTurns();

Deno.test("deciding workers: the first chooses the port, which the others and their successors share", async () => {
  await using bed = new Bed();
  assertEquals(await bed.listen(), "127.0.0.1:7");
  bed.handle(0).say({ type: "failed", reason: "boom" });
  bed.clock.advance(250);
  bed.handle(2).say({ type: "opened" });
  await bed.handle(2).got("listen");
  const ports = bed.handles.map(({ sent }) => sent.flatMap((one) => one.type === "listen" ? one.port : []));
  assertEquals(ports, [[0], [7], [7]]);
  assertEquals(bed.handle(0).isTerminated, true);
});

Deno.test("deciding workers: one that cannot open ends the start with its reason", async () => {
  await using bed = new Bed();
  const listening = assertRejects(() => bed.workers.listen());
  bed.handle(1).say({ type: "failed", reason: "no certificate" });
  bed.handle(0).say({ type: "opened" });
  assertEquals((await listening).message, "no certificate");
});

Deno.test("deciding workers: rules are in force when every running worker has them; a successor begins with them", async () => {
  await using bed = new Bed();
  await bed.listen();
  let isApplied = false;
  const applied = bed.workers.setRules(['{"kind":"domain","domain":"a"}']).then(() =>
    void (isApplied = true)
  );
  await bed.handle(0).got("apply");
  bed.handle(0).say({ type: "applied", rules: 1 });
  await turn();
  assertEquals(isApplied, false);
  bed.handle(1).say({ type: "failed", reason: "boom" });
  await applied;
  bed.clock.advance(250);
  bed.handle(2).say({ type: "opened" });
  await bed.handle(2).got("listen");
  assertEquals(bed.handle(2).take(), ["start", "rules", "apply", "listen"]);
});

Deno.test("deciding workers: the port is opened after the rules, however many texts they have", async () => {
  await using bed = new Bed();
  const texts = Array.from({ length: 50 }, (_, index) => `{"kind":"domain","domain":"d${index}"}`);
  void bed.workers.setRules(texts);
  await turn();
  for (const handle of bed.handles) handle.say({ type: "opened" });
  const listening = bed.workers.listen();
  for (const handle of bed.handles) {
    await handle.got("listen");
    handle.say({ type: "listening", address: "127.0.0.1:7", port: 7 });
    const kinds = handle.take().filter((type) => type !== "rules");
    assertEquals(kinds, ["start", "apply", "listen"]);
  }
  await listening;
});

/** Lets seconds pass in which the first threads send reports; answers which of these have failed. */
function failedAfter(bed: Bed, seconds: number): boolean[] {
  for (let second = 0; second < seconds; second++) {
    for (const handle of bed.handles.slice(0, 2)) handle.report();
    bed.clock.advance(1_000);
  }
  return bed.handles.slice(0, 2).map(({ isTerminated }) => isTerminated);
}

Deno.test("deciding workers: one that does not open for 120 s is replaced, though it reports", async () => {
  await using bed = new Bed();
  bed.handle(0).say({ type: "opened" });
  assertEquals([failedAfter(bed, 119), failedAfter(bed, 1)], [[false, false], [false, true]]);
});

Deno.test("deciding workers: one that does not apply rules for 120 s is replaced, though it reports; the next rules are sent", async () => {
  await using bed = new Bed();
  await bed.listen();
  const applied = bed.workers.setRules(["{}"]);
  const next = bed.workers.setRules(["{}"]);
  for (const handle of bed.handles) await handle.got("apply");
  bed.handle(0).say({ type: "applied", rules: 1 });
  assertEquals([failedAfter(bed, 119), failedAfter(bed, 1)], [[false, false], [false, true]]);
  await applied;
  await until("the next rules", () => bed.handle(0).sent.filter(({ type }) => type === "apply").length === 2);
  bed.handle(0).say({ type: "applied", rules: 2 });
  await next;
});

Deno.test("deciding workers: one that does not listen for 120 s ends the start, though it reports", async () => {
  await using bed = new Bed();
  for (const handle of bed.handles) handle.say({ type: "opened" });
  const listening = assertRejects(() => bed.workers.listen());
  await bed.handle(0).got("listen");
  assertEquals([failedAfter(bed, 119), failedAfter(bed, 1)], [[false, false], [true, false]]);
  assertEquals((await listening).message, "no open port for 120 s");
});

Deno.test("deciding workers: one that ends before it is to listen does not end the start, but its successor opens", async () => {
  await using bed = new Bed();
  for (const handle of bed.handles) handle.say({ type: "opened" });
  bed.handle(0).say({ type: "failed", reason: "boom" });
  bed.clock.advance(250);
  bed.handle(2).say({ type: "failed", reason: "boom again" });
  bed.clock.advance(500);
  const listening = bed.workers.listen();
  bed.handle(3).say({ type: "opened" });
  for (const handle of [bed.handle(3), bed.handle(1)]) {
    await handle.got("listen");
    handle.say({ type: "listening", address: "127.0.0.1:7", port: 7 });
  }
  assertEquals(await listening, "127.0.0.1:7");
});

Deno.test("deciding workers: one that cannot be sent rules is replaced, and later rules are applied", async () => {
  await using bed = new Bed();
  await bed.listen();
  bed.handle(0).postMessage = () => {
    throw new Error("cannot be sent");
  };
  const first = bed.workers.setRules(["{}"]);
  await bed.handle(1).got("apply");
  bed.handle(1).say({ type: "applied", rules: 1 });
  await first;
  bed.clock.advance(250);
  bed.handle(2).say({ type: "opened" });
  await bed.handle(2).got("apply");
  bed.handle(2).say({ type: "applied", rules: 1 });
  const second = bed.workers.setRules(["{}"]);
  for (const handle of [bed.handle(1), bed.handle(2)]) {
    await until("the second rules", () => handle.sent.filter(({ type }) => type === "apply").length === 2);
    handle.say({ type: "applied", rules: 2 });
  }
  await second;
});

Deno.test("deciding workers: a scrape waits a second for a worker that does not answer", async () => {
  await using bed = new Bed();
  await bed.listen();
  let isOver = false;
  const refreshing = bed.workers.refresh().then(() => void (isOver = true));
  bed.handle(0).report(1);
  bed.clock.advance(999);
  await turn();
  assertEquals(isOver, false);
  bed.clock.advance(1);
  await refreshing;
});

Deno.test("deciding workers: counters continue after a worker was replaced, gauges are those of the running ones", async () => {
  await using bed = new Bed();
  await bed.listen();
  const add = (handle: Handle, calls: number) => {
    handle.stats.rule("shop.user", "shop").totalHits += calls;
    handle.stats.service.serviceError += calls;
    handle.stats.timer("t").record(calls);
    handle.report();
  };
  bed.stats.service.serviceError = 1;
  add(bed.handle(0), 2);
  add(bed.handle(1), 3);
  add(bed.handle(1), 4);
  bed.handle(1).say({ type: "failed", reason: "boom" });
  bed.clock.advance(250);
  bed.handle(2).say({ type: "opened" });
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
  assertEquals(health.failing().map(({ name }) => name), ["workers"]);
  await bed.listen();
  assertEquals(health.failing(), []);
  bed.handle(0).take();
  bed.handle(1).say({
    type: "health",
    failing: [{ name: "cache", reason: "no connection" }],
    degraded: [{ name: "decisions", reason: "they fail" }, { name: "decisions", reason: "it is slow" }],
  });
  assertEquals(health.degraded().map(({ name, reason }) => `${name}: ${reason}`), [
    "worker 2 decisions: they fail",
    "worker 2 decisions: it is slow",
  ]);
  assertEquals(health.failing(), [{ name: "worker 2 cache", healthy: false, reason: "no connection" }]);
  assertEquals(bed.handle(0).sent, [{ type: "health", isHealthy: false }]);
  bed.handle(1).say({ type: "failed", reason: "boom" });
  assertEquals(health.failing(), []);
  assertEquals(health.degraded(), [{ name: "workers", healthy: true, reason: "1 of 2 are ready" }]);
  bed.handle(0).say({ type: "failed", reason: "boom" });
  assertEquals(health.failing().map(({ reason }) => reason), ["no worker is ready to decide gRPC calls"]);
});

Deno.test("deciding workers: one that listens and is silent for 15 s is replaced; the end of its attempts to connect ends the process", async () => {
  await using bed = new Bed();
  await bed.listen();
  for (let second = 0; second < 15; second++) {
    bed.handle(0).report();
    bed.clock.advance(1_000);
  }
  assertEquals(bed.handles.map(({ isTerminated }) => isTerminated), [false, true]);
  assertEquals(bed.log.lines.map(({ fields }) => fields["error"]), ["no message for 15 s"]);
  bed.handle(0).say({ type: "given_up", reason: "no cache" });
  assertEquals(bed.givenUp, ["no cache"]);
});
