import { assertEquals, assertThrows } from "#assert";
import { checkSummary, readTimes } from "../../../scripts/bench/h2load.ts";
import { summarize } from "../../../scripts/bench/report.ts";
import { checkCounts } from "../../../scripts/bench/round.ts";

Deno.test("h2load: only a clean summary and a whole log are taken", () => {
  const clean = "requests: 2 total, 2 started, 2 done, 2 succeeded, 0 failed, 0 errored, 0 timeout\n" +
    "status codes: 2 2xx, 0 3xx, 0 4xx, 0 5xx\n";
  checkSummary(clean, 2);
  assertThrows(() => checkSummary(clean.replace("0 failed", "1 failed"), 2));
  assertThrows(() => checkSummary(clean.replace("0 5xx", "1 5xx"), 2));
  const log = "1000000\t200\t3000\n1001000\t200\t4000\n";
  assertEquals(readTimes(log, 2), { calls: 2, seconds: 0.005, callsPerSecond: 400, p50Ms: 3, p99Ms: 4 });
  assertThrows(() => readTimes(log, 3));
  assertThrows(() => readTimes(log.replace("200", "-1"), 2));
});

Deno.test("the statistics must count and decide every call once", () => {
  const before = { totalHits: 10, decided: 10 };
  checkCounts("one on memory", 5, { before, after: { totalHits: 15, decided: 15 } });
  for (const after of [{ totalHits: 14, decided: 15 }, { totalHits: 15, decided: 14 }]) {
    assertThrows(() => checkCounts("one on memory", 5, { before, after }));
  }
});

Deno.test("summaries hold medians, and ratios to the echo of the same load or to the first target of the round", () => {
  const metrics = { calls: 100, seconds: 1, p50Ms: 4, p99Ms: 8, cpuSecondsPer100k: 6, generatorBusy: 0.5 };
  const summaries = summarize([
    { scenario: "8x32", target: "echo", ...metrics, callsPerSecond: 90 },
    { scenario: "8x32", target: "memory", ...metrics, callsPerSecond: 50, cpuSecondsPer100k: 12 },
    { scenario: "8x32", target: "echo", ...metrics, callsPerSecond: 110, generatorBusy: 0.9 },
    { scenario: "8x32 statistics", target: "memory", ...metrics, callsPerSecond: 100 },
    { scenario: "8x32 statistics", target: "memory-push", ...metrics, callsPerSecond: 90 },
    { scenario: "8x32 statistics", target: "memory-push", ...metrics, callsPerSecond: 50 },
    { scenario: "8x32 statistics", target: "memory", ...metrics, callsPerSecond: 50 },
  ]);
  const found = summaries.map(({ median, slowest, fastest, generatorBusy, toEcho, toFirst }) => [
    ...[median.callsPerSecond, slowest, fastest, generatorBusy],
    ...[toEcho?.callsPerSecond, toEcho?.cpuSecondsPer100k, toFirst],
  ]);
  assertEquals(found, [
    [100, 90, 110, 0.9, 1, 1, undefined],
    [50, 50, 50, 0.5, 0.5, 2, undefined],
    [75, 50, 100, 0.5, undefined, undefined, 1],
    // The medians' ratio would be 0.933.
    [70, 50, 90, 0.5, undefined, undefined, 0.95],
  ]);
});
