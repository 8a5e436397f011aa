import { assertEquals } from "@std/assert";
import { FlushLoop } from "../../../src/stats/flush_loop.ts";
import type { Carrier } from "../../../src/stats/flush_ports.ts";
import { FlushSink } from "../../../src/stats/flush_sink.ts";
import { pushLines } from "../../../src/stats/push_lines.ts";
import { StatsStore } from "../../../src/stats/store.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import { warningLog } from "../../harness/push_receivers.ts";

interface LoopBed {
  readonly clock: FakeClock;
  readonly store: StatsStore;
  readonly lines: string[];
  readonly loop: FlushLoop;
}

const NAME = "ratelimit.service.config_load_success";

function bed(send?: () => Promise<void>): LoopBed {
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
  const sink = new FlushSink({ name: "x", source: store, format: pushLines(new Map()), carrier, logger });
  return { clock, store, lines, loop: new FlushLoop([sink], { intervalMs: 10_000, clock }) };
}

Deno.test("flush loop: flushes in the interval and once more at the end, and lets go of the clock", async () => {
  const { clock, store, lines, loop } = bed();
  store.service.configLoadSuccess = 1;
  clock.advance(9_999);
  await new Promise((resolve) => setTimeout(resolve, 0));
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
  const { clock, store, loop } = bed(() => new Promise(() => {}));
  store.service.configLoadSuccess = 1;
  let isClosed = false;
  const closed = loop.close().then(() => isClosed = true);
  clock.advance(1_999);
  await new Promise((resolve) => setTimeout(resolve, 5));
  const before = isClosed;
  clock.advance(1);
  await closed;
  assertEquals([before, isClosed, clock.waiting], [false, true, 0]);
});

Deno.test("flush loop: without sinks nothing waits", async () => {
  const clock = new FakeClock();
  const loop = new FlushLoop([], { intervalMs: 1, clock });
  const { waiting } = clock;
  await loop.close();
  assertEquals(waiting, 0);
});
