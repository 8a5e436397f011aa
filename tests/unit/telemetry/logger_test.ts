import { assertEquals } from "#assert";
import type { Logger } from "../../../src/base/log.ts";
import { createLogger, type LoggerOptions } from "../../../src/telemetry/logger.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

const LINES: Readonly<Record<"text" | "json", string>> = {
  text: 'time="2023-11-14T22:13:20Z" level=warning msg="refused" cause="none" times=2',
  json:
    '{"@timestamp":"2023-11-14T22:13:20.000Z","level":"warning","@message":"refused","cause":"none","times":2}',
};

/** The lines that are written. */
function linesOf(options: Pick<LoggerOptions, "level" | "format">, use: (logger: Logger) => void): string[] {
  const lines: string[] = [];
  use(createLogger({ ...options, clock: new FakeClock(), write: (line) => void lines.push(line) }));
  return lines;
}

for (const format of ["text", "json"] as const) {
  Deno.test(`logger: a field without a value is left out of a line of ${format}`, () => {
    const fields = { cause: "none", peer: undefined, times: 2 };
    const lines = linesOf({ level: "info", format }, (logger) => logger.warning("refused", fields));
    assertEquals(lines, [LINES[format]]);
  });
}

Deno.test("logger: a field that JSON does not know costs the fields, not the line", () => {
  const lines = linesOf({ level: "info", format: "text" }, (logger) => logger.error("Failed", { count: 1n }));
  assertEquals(lines, [
    'time="2023-11-14T22:13:20Z" level=error msg="Failed" unwritable="Do not know how to serialize a BigInt"',
  ]);
});

Deno.test("a logger writes the lines of its level and of those above it", () => {
  const levels = ["trace", "debug", "info", "warning", "error", "fatal"] as const;
  const written = levels.map((level) => {
    const lines = linesOf({ level, format: "json" }, (logger) => {
      for (const name of ["debug", "info", "warning", "error"] as const) logger[name](name);
    });
    return lines.map((line) => JSON.parse(line).level).join(" ");
  });
  const all = "debug info warning error";
  assertEquals(written, [all, all, "info warning error", "warning error", "error", ""]);
});

Deno.test("a logger shows the start and the stop up to the level warning, as info", () => {
  const written = (["debug", "info", "warning", "error", "panic"] as const).map((level) => {
    const lines = linesOf({ level, format: "text" }, (logger) => {
      logger.info("Stopping", {}, "warning");
      logger.info("Rules loaded", {}, "info");
    });
    return lines.map((line) => line.slice(line.indexOf("level=")));
  });
  const stopping = 'level=info msg="Stopping"';
  const both = [stopping, 'level=info msg="Rules loaded"'];
  assertEquals(written, [both, both, [stopping], [], []]);
});
