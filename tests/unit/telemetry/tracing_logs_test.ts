import { assertEquals } from "#assert";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { beginTracing, type Tracing } from "../../../src/telemetry/tracing.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";

/** The last 8 digits decide: the first id is traced at a rate of a half, and the second is not. */
const TRACED = "11111111-2222-4333-8444-555500000001";
const UNTRACED = "11111111-2222-4333-8444-5555ffffffff";
const TRACE = { trace_id: TRACED.replaceAll("-", "") };

const CASES: readonly [title: string, fields: Record<string, unknown>, added: Record<string, unknown>][] = [
  ["a traced delivery", { delivery: TRACED, attempts: 9 }, TRACE],
  ["a traced execution", { execution: TRACED }, TRACE],
  ["a delivery that is not traced", { delivery: UNTRACED }, {}],
  ["neither of them", { endpoint: TRACED }, {}],
  ["no text", { delivery: 7 }, {}],
];

const SPANS = { add: () => {}, close: () => Promise.resolve() };

function tracing(clock = new FakeClock()): Tracing {
  return beginTracing({ samplingRate: 0.5, random: () => 0, spans: SPANS, clock });
}

for (const [title, fields, added] of CASES) {
  Deno.test(`tracing: the log line about ${title}`, () => {
    const logger = new RecordedLogger();
    tracing().workLogger(logger).warning("Delivery failed", fields);
    assertEquals(logger.lines, [{
      level: "warning",
      message: "Delivery failed",
      fields: { ...fields, ...added },
    }]);
  });
}

Deno.test("tracing: an info line that LOG_LEVEL=warning shows stays one", () => {
  const [lines, clock] = [[] as string[], new FakeClock()];
  const logger = createLogger({
    level: "warning",
    format: "text",
    clock,
    write: (line) => void lines.push(line),
  });
  const traced = tracing(clock).workLogger(logger);
  traced.info("Encryption key made", {}, "warning");
  traced.info("Delivered");
  assertEquals(lines.map((line) => line.includes("Encryption key made")), [true]);
});
