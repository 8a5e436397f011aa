import { assertEquals } from "#assert";
import { clearImmediate, setImmediate } from "node:timers";
import type { Carrier, StatsSource } from "../../../src/stats/flush_ports.ts";
import { FlushCounts, FlushLoop, FlushSink } from "../../../src/stats/flush_sink.ts";
import { statsdLines } from "../../../src/stats/statsd_lines.ts";
import { StatsStore } from "../../../src/stats/store.ts";
import { warningLog } from "../../harness/push_receivers.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { settledTurns, until } from "../../harness/until.ts";

/** Keeps the units that it is given. */
class CarrierDouble implements Carrier {
  readonly slices: (readonly string[])[] = [];
  usable = true;
  prepared: boolean[] = [];
  onSend = (): Promise<void> => Promise.resolve();

  /** The lines since the last look. */
  take(): string[] {
    return this.slices.splice(0).flat();
  }

  prepare(isLast: boolean): Promise<void> {
    this.prepared.push(isLast);
    return Promise.resolve();
  }

  send(units: readonly string[]): Promise<void> {
    this.slices.push(units);
    return this.onSend();
  }

  close(): Promise<void> {
    this.usable = false;
    return Promise.resolve();
  }
}

function bed() {
  const store = new StatsStore(100);
  const { logger, warnings } = warningLog();
  const sink = () => {
    const carrier = new CarrierDouble();
    const format = statsdLines(new Map());
    return { sink: new FlushSink({ name: "nowhere", source: store, format, carrier, logger }), carrier };
  };
  return { store, sink, warnings };
}

Deno.test("flush: counters by what they grew and not without, gauges always, timers by their durations", async () => {
  const { store, sink: open } = bed();
  const timer = store.timer("time");
  const { sink, carrier } = open();
  const seen: string[][] = [];
  store.addGauge("gauge", () => 7);
  store.rule("d.k").totalHits += 2;
  timer.record(1.5);
  timer.record(3);
  await sink.finish();
  seen.push(carrier.take());
  await sink.finish();
  seen.push(carrier.take());
  store.rule("d.k").totalHits++;
  timer.record(4);
  await sink.finish();
  seen.push(carrier.take());
  assertEquals(seen, [
    ["ratelimit.service.rate_limit.d.k.total_hits:2|c", "gauge:7|g", "time:1.5|ms", "time:3|ms"],
    ["gauge:7|g"],
    ["ratelimit.service.rate_limit.d.k.total_hits:1|c", "gauge:7|g", "time:4|ms"],
  ]);
});

Deno.test("flush: two sinks have separate deltas and durations", async () => {
  const { store, sink: open } = bed();
  const [first, second] = [open(), open()];
  const record = (ms: number) => {
    store.service.serviceError++;
    store.timer("time").record(ms);
  };
  const name = "ratelimit.service.call.should_rate_limit.service_error";
  store.timer("time");
  record(1);
  await first.sink.finish();
  record(2);
  await first.sink.finish();
  await second.sink.finish();
  assertEquals([first.carrier.take(), second.carrier.take()], [
    [`${name}:1|c`, "time:1|ms", `${name}:1|c`, "time:2|ms"],
    [`${name}:2|c`, "time:1.5|ms|@0.5"], // of what came before it knew the timer it has the mean alone
  ]);
});

Deno.test("flush: nothing is taken while the carrier cannot be used, and all of it later", async () => {
  const { store, sink: open } = bed();
  const timer = store.timer("time");
  const { sink, carrier } = open();
  carrier.usable = false;
  for (let flush = 0; flush < 3; flush++) {
    store.service.kvError++;
    timer.record(flush);
    await sink.finish();
  }
  const before = carrier.take();
  carrier.usable = true;
  await sink.finish();
  assertEquals([before, carrier.take()], [[], [
    "ratelimit.service.call.should_rate_limit.kv_error:3|c",
    "time:0|ms",
    "time:1|ms",
    "time:2|ms",
  ]]);
});

Deno.test("flush: names go in slices, with turns between; an outage between two loses neither", async () => {
  const { store, sink: open } = bed();
  const { sink, carrier } = open();
  for (let name = 0; name < 2_500; name++) store.addCounter(`c${name}`, () => 1);
  let turns = 0;
  let immediate = setImmediate(function count() {
    turns++;
    immediate = setImmediate(count);
  });
  carrier.onSend = () => {
    if (carrier.slices.length === 2) carrier.usable = false;
    return Promise.resolve();
  };
  await sink.finish();
  const sizes = carrier.slices.map((slice) => slice.length);
  carrier.usable = true;
  await sink.finish();
  clearImmediate(immediate);
  const all = carrier.take();
  assertEquals([sizes.length, sizes.every((size) => size <= 500), turns >= 4], [2, true, true]);
  assertEquals([all.length, new Set(all).size], [2_500, 2_500]);
});

Deno.test("flush: a source is walked over no further than what was handed on", async () => {
  const { logger } = warningLog();
  const carrier = new CarrierDouble();
  let walked = 0;
  const source: StatsSource = {
    *counters() {
      for (; walked < 20_000; walked++) yield [`c${walked}`, 1];
    },
    gauges: () => [],
    timers: () => [],
  };
  const sink = new FlushSink({ name: "x", source, format: statsdLines(new Map()), carrier, logger });
  const gate = Promise.withResolvers<void>();
  carrier.onSend = () => gate.promise;
  const finished = sink.finish();
  await settledTurns();
  const whileWaiting = walked;
  gate.resolve();
  await finished;
  assertEquals([whileWaiting <= 500, walked, new Set(carrier.take()).size], [true, 20_000, 20_000]);
});

Deno.test("flush: one at a time, and the last one follows the one under way", async () => {
  const { store, sink: open } = bed();
  const { sink, carrier } = open();
  const gate = Promise.withResolvers<void>();
  store.service.mcError = 1;
  carrier.onSend = () => gate.promise;
  sink.start();
  sink.start();
  const finished = sink.finish();
  await settledTurns();
  assertEquals([carrier.prepared, carrier.slices.length], [[false], 1]);
  store.service.mcError = 3;
  gate.resolve();
  await finished;
  const name = "ratelimit.service.call.should_rate_limit.mc_error";
  assertEquals([carrier.prepared, carrier.take()], [[false, true], [`${name}:1|c`, `${name}:2|c`]]);
});

Deno.test("flush: a fault is logged once and ends nothing", async () => {
  const { store, sink: open, warnings } = bed();
  const { sink, carrier } = open();
  store.addGauge("bad", () => NaN);
  store.addGauge("good", () => 1);
  carrier.onSend = () => Promise.reject(new Error("no"));
  await sink.finish();
  await sink.finish();
  carrier.onSend = () => Promise.resolve();
  carrier.take();
  await sink.finish();
  assertEquals([warnings, carrier.take()], [["Cannot flush statistics receiver=nowhere error=Error: no"], [
    "good:1|g",
  ]]);
});

Deno.test("flush counts: the growth of a counter, or its value after a restart", () => {
  const counts = new FlushCounts();
  assertEquals([5, 5, 12, 3, 4].map((value) => counts.delta("a", value)), [5, 0, 7, 3, 1]);
});

Deno.test("flush counts: missing names are forgotten, and start over", () => {
  const counts = new FlushCounts();
  const round = (values: Readonly<Record<string, number>>) => {
    const deltas = Object.entries(values).map(([name, value]) => counts.delta(name, value));
    counts.endRound();
    return [deltas, counts.size];
  };
  assertEquals([round({ a: 1, b: 2 }), round({ b: 3 }), round({}), round({ a: 1, b: 5 })], [
    [[1, 2], 2],
    [[1], 1],
    [[], 0],
    [[1, 5], 2],
  ]);
});

Deno.test("flush counts: a round that was cut short forgets nothing", () => {
  const counts = new FlushCounts();
  counts.delta("a", 1);
  counts.delta("b", 1);
  counts.endRound();
  counts.delta("a", 2); // the round ends here without a receiver, and goes on with the next flush
  assertEquals([counts.delta("a", 3), counts.delta("b", 3), counts.size], [1, 2, 2]);
});

const NAME = "ratelimit.service.config_load_success";

function loopBed(send?: () => Promise<void>) {
  const clock = new FakeClock();
  const store = new StatsStore(10);
  const lines: string[] = [];
  const close = Promise.withResolvers<void>();
  const carrier: Carrier = {
    usable: true,
    prepare: () => Promise.resolve(),
    async send(units) {
      lines.push(...units);
      await (send === undefined ? undefined : Promise.race([send(), close.promise]));
    },
    close() {
      close.resolve();
      return Promise.resolve();
    },
  };
  const { logger } = warningLog();
  const sink = new FlushSink({ name: "x", source: store, format: statsdLines(new Map()), carrier, logger });
  return { clock, store, lines, loop: new FlushLoop([sink], { intervalMs: 10_000, clock }) };
}

Deno.test("flush loop: flushes in the interval and once more at the end, and lets go of the clock", async () => {
  const { clock, store, lines, loop } = loopBed();
  store.service.configLoadSuccess = 1;
  clock.advance(9_999);
  await settledTurns();
  const early = [...lines];
  clock.advance(1);
  await until("the first flush", () => lines.length === 1);
  store.service.configLoadSuccess = 3;
  clock.advance(10_000);
  await until("the second flush", () => lines.length === 2);
  store.service.configLoadSuccess = 4;
  await Promise.all([loop.close(), loop.close()]);
  clock.advance(100_000);
  assertEquals([early, lines, clock.waiting], [[], [`${NAME}:1|c`, `${NAME}:2|c`, `${NAME}:1|c`], 0]);
});

Deno.test("flush loop: the end waits two seconds for a receiver that takes nothing", async () => {
  const { clock, store, loop } = loopBed(() => new Promise(() => {}));
  store.service.configLoadSuccess = 1;
  let isClosed = false;
  const closed = loop.close().then(() => isClosed = true);
  clock.advance(1_999);
  await settledTurns();
  const before = isClosed;
  clock.advance(1);
  await closed;
  assertEquals([before, isClosed, clock.waiting], [false, true, 0]);
});
