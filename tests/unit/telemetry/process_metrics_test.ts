import { assertEquals } from "#assert";
import { ProcessMetrics } from "../../../src/telemetry/process_metrics.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

Deno.test("process metrics: the longest delay of the event loop is shown for some seconds", () => {
  const time = new FakeClock();
  // What it counts ahead is what the event loop was held up.
  const clock = FakeClock.ofMachine({ of: time });
  const metrics = new ProcessMetrics({ clock });
  const delay = () => metrics.gauges["event_loop_delay_ms"]?.();
  time.advance(1_000);
  assertEquals(delay(), 0);
  clock.elapsedAheadMs += 40;
  time.advance(100);
  clock.elapsedAheadMs += 7;
  time.advance(100);
  assertEquals(delay(), 40);
  time.advance(5_000);
  assertEquals(delay(), 40);
  time.advance(5_000);
  assertEquals(delay(), 0);
  assertEquals(metrics.gauges["uptime_seconds"]?.(), 11.247);
  metrics.close();
  assertEquals(time.waiting, 0);
});

Deno.test("process metrics: memory and time of the processor are those of this process", () => {
  const metrics = new ProcessMetrics({ clock: new FakeClock() });
  try {
    const { gauges, counters } = metrics;
    const kept = new Uint8Array(50_000_000).fill(1);
    const others = (gauges["external_bytes"]?.() ?? 0) - kept.length;
    assertEquals(others > 0 && others < 10_000_000_000, true, `${others}`);
    const rss = gauges["rss_bytes"]?.() ?? 0;
    const heapTotal = gauges["heap_total_bytes"]?.() ?? 0;
    const heapUsed = gauges["heap_used_bytes"]?.() ?? 0;
    assertEquals(rss > heapTotal && heapTotal >= heapUsed && heapUsed > 1_000_000, true);
    const used = Object.values(counters).map((read) => read());
    assertEquals(used.map((ms) => ms > 1 && ms < 3_600_000), [true, true], `${used}`);
  } finally {
    metrics.close();
  }
});
