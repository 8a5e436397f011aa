import { assertEquals } from "@std/assert";
import { jsonLines, stdoutCarrier } from "../../src/stats/stdout_sink.ts";

const HEAD = { timestamp: "2026-01-01T12:00:00.000Z" };
const TAGS = { tags: { env: "prod" } };

Deno.test("standard output: one JSON object for each statistic, with the tags", () => {
  const format = jsonLines({ tags: new Map([["env", "prod"]]), now: () => Date.UTC(2026, 0, 1, 12) });
  const sample = { values: [4, 1, 2, 3], seen: 40, sumMs: 100.00049 };
  const lines = [format.counter('a"b', 3), format.gauge("g", -1.5), ...format.timer("t", sample)];
  assertEquals(lines.map((line) => JSON.parse(line)), [
    { ...HEAD, type: "counter", name: 'a"b', value: 3, ...TAGS },
    { ...HEAD, type: "gauge", name: "g", value: -1.5, ...TAGS },
    { ...HEAD, type: "timer", name: "t", count: 40, sum_ms: 100, p50_ms: 2, p99_ms: 4, ...TAGS },
  ]);
});

Deno.test("standard output: a slice is one write, and nothing is written after the end", async () => {
  const written: string[] = [];
  const carrier = stdoutCarrier((lines) => void written.push(lines));
  await carrier.prepare(false);
  await carrier.send(["{1}", "{2}"]);
  await carrier.close();
  assertEquals([written, carrier.usable], [["{1}\n{2}"], false]);
});
