import { assertEquals } from "@std/assert";
import type { LogFields } from "../../../src/base/log.ts";
import { ThrottledLog } from "../../../src/base/throttled_log.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

interface Line {
  readonly level: "warning" | "error";
  readonly message: string;
  readonly fields: LogFields;
}

function throttled(clock: FakeClock, intervalMs?: number): { log: ThrottledLog; lines: Line[] } {
  const lines: Line[] = [];
  const keep = (level: Line["level"]) => (message: string, fields: LogFields = {}) => {
    lines.push({ level, message, fields });
  };
  const logger = { debug: () => {}, info: () => {}, warning: keep("warning"), error: keep("error") };
  const options = intervalMs === undefined ? { clock } : { clock, intervalMs };
  return { log: new ThrottledLog(logger, options), lines };
}

Deno.test("one line of a kind in a second, the next tells how many were left out", () => {
  const clock = new FakeClock();
  const { log, lines } = throttled(clock);
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

Deno.test("kinds are counted apart, levels of one kind together", () => {
  const clock = new FakeClock();
  const { log, lines } = throttled(clock);
  log.warning("a", "a1");
  log.error("b", "b1");
  log.error("a", "a2");
  assertEquals(lines.map(({ message }) => message), ["a1", "b1"]);
});

Deno.test("the interval is the caller's", () => {
  const clock = new FakeClock();
  const { log, lines } = throttled(clock, 10);
  log.error("a", "1");
  clock.advance(10);
  log.error("a", "2");
  assertEquals(lines.map(({ level, message }) => `${level} ${message}`), ["error 1", "error 2"]);
});

Deno.test("a clock that is set back does not silence the log", () => {
  const clock = new FakeClock();
  const messages: string[] = [];
  const logger = {
    debug: () => {},
    info: () => {},
    error: () => {},
    warning: (m: string) => messages.push(m),
  };
  const log = new ThrottledLog(logger, { clock });
  log.warning("a", "before");
  clock.aheadMs = -40_000;
  log.warning("a", "after");
  assertEquals(messages, ["before", "after"]);
});
