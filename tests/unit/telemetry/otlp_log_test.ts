import { assertEquals } from "#assert";
import { sdkLog } from "../../../src/telemetry/otlp_log.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

Deno.test("OTLP log: warnings and errors are logged, once a second, without passwords", () => {
  const logger = new RecordedLogger();
  const clock = new FakeClock();
  const otlp = new Map([
    ["ENDPOINT", " http://me:secret@collector:4318 "],
    ["TRACES_HEADERS", "authorization=token"],
    ["HEADERS", " "],
    ["TIMEOUT", "7"],
  ]);
  const log = sdkLog({ logger, clock, otlp });
  log.info("not logged");
  log.warn("cannot use http://me:secret@collector:4318 with authorization=token in 7 ms");
  log.error("cannot go on");
  clock.advance(1_000);
  log.error("cannot go on");
  assertEquals(logger.lines, [
    {
      level: "warning",
      message: "OTLP export: cannot use (value not shown) with (value not shown) in 7 ms",
      fields: {},
    },
    { level: "warning", message: "OTLP export: cannot go on", fields: { suppressed: 1 } },
  ]);
});
