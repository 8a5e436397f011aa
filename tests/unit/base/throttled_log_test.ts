import { assertEquals } from "#assert";
import { ThrottledLog } from "../../../src/base/throttled_log.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";

function throttled(intervalMs?: number) {
  const [clock, logger] = [new FakeClock(), new RecordedLogger()];
  const options = intervalMs === undefined ? { clock } : { clock, intervalMs };
  return { clock, log: new ThrottledLog(logger, options), lines: logger.lines };
}

Deno.test("one line of a kind in a second, the next tells how many were left out", () => {
  const { clock, log, lines } = throttled();
  log.warning("a", "first", { n: 1 });
  log.warning("a", "second", { n: 2 });
  clock.advance(999);
  log.warning("a", "third", { n: 3 });
  clock.advance(1);
  log.warning("a", "fourth", { n: 4 });
  clock.advance(1_000);
  log.warning("a", "fifth");
  assertEquals(lines, [
    { level: "warning", message: "first", fields: { n: 1 } },
    { level: "warning", message: "fourth", fields: { n: 4, suppressed: 2 } },
    { level: "warning", message: "fifth", fields: {} },
  ]);
});

Deno.test("kinds are counted apart, levels of one kind together, by the caller's interval", () => {
  const { clock, log, lines } = throttled(10);
  log.warning("a", "a1");
  log.error("b", "b1");
  log.error("a", "a2");
  clock.advance(10);
  log.error("a", "a3");
  assertEquals(lines.map(({ level, message }) => `${level} ${message}`), [
    "warning a1",
    "error b1",
    "error a3",
  ]);
});
