import { assertEquals, assertThrows } from "@std/assert";
import { checkSummary, readTimes } from "../../../scripts/bench/h2load.ts";
import { median, percentile } from "../../harness/percentile.ts";
import { encodeRequest, isLasting, RULES, RULES_OF } from "../../harness/bench_rules.ts";
import { readResponse } from "../../../src/load/rate_limit_message.ts";
import { summarize } from "../../../scripts/bench/report.ts";
import { checkCounts } from "../../../scripts/bench/round.ts";

Deno.test("percentile and median", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  assertEquals(
    {
      none: percentile([], 50),
      one: percentile([7], 99),
      p50: percentile(hundred, 50),
      p99: percentile(hundred, 99),
      p100: percentile(hundred, 100),
      between: percentile([1, 2, 3], 50),
      medianOfNone: median([]),
      medianOdd: median([9, 1, 10]),
      medianEven: median([4, 1, 3, 10]),
    },
    {
      none: 0,
      one: 7,
      p50: 50,
      p99: 99,
      p100: 100,
      between: 2,
      medianOfNone: 0,
      medianOdd: 9,
      medianEven: 3.5,
    },
  );
});

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
    { scenario: "batch 4", target: "memory", ...metrics, callsPerSecond: 70 },
    { scenario: "8x32 statistics", target: "memory", ...metrics, callsPerSecond: 100 },
    { scenario: "8x32 statistics", target: "memory-push", ...metrics, callsPerSecond: 90 },
    { scenario: "8x32 statistics", target: "memory-push", ...metrics, callsPerSecond: 50 },
    { scenario: "8x32 statistics", target: "memory", ...metrics, callsPerSecond: 50 },
  ]);
  const same = { p50Ms: 4, p99Ms: 8, cpuSecondsPer100k: 6 };
  assertEquals(summaries, [
    {
      scenario: "8x32",
      target: "echo",
      median: { callsPerSecond: 100, ...same },
      slowest: 90,
      fastest: 110,
      generatorBusy: 0.9,
      toEcho: { callsPerSecond: 1, p50Ms: 1, p99Ms: 1, cpuSecondsPer100k: 1 },
    },
    {
      scenario: "8x32",
      target: "memory",
      median: { callsPerSecond: 50, ...same, cpuSecondsPer100k: 12 },
      slowest: 50,
      fastest: 50,
      generatorBusy: 0.5,
      toEcho: { callsPerSecond: 0.5, p50Ms: 1, p99Ms: 1, cpuSecondsPer100k: 2 },
    },
    {
      scenario: "batch 4",
      target: "memory",
      median: { callsPerSecond: 70, ...same },
      slowest: 70,
      fastest: 70,
      generatorBusy: 0.5,
      toFirst: 1,
    },
    {
      scenario: "8x32 statistics",
      target: "memory",
      median: { callsPerSecond: 75, ...same },
      slowest: 50,
      fastest: 100,
      generatorBusy: 0.5,
      toFirst: 1,
    },
    {
      scenario: "8x32 statistics",
      target: "memory-push",
      median: { callsPerSecond: 70, ...same },
      slowest: 50,
      fastest: 90,
      generatorBusy: 0.5,
      // The medians' ratio would be 0.933.
      toFirst: 0.95,
    },
  ]);
});

Deno.test("the request and the answer are those of the protocol", () => {
  assertEquals(
    encodeRequest("one", ["k0"]).toHex(),
    "0a0562656e6368" + "1218" + "0a0b" + "0a046c6f6164" + "12036f6e65" + "0a09" + "0a036b6579" + "12026b30",
  );
  assertEquals(
    encodeRequest("both", ["k0", "k1"]).toHex(),
    "0a0562656e6368" +
      ["k0", "k1"].map((key) => descriptorHex("keys", key) + descriptorHex("second", key)).join(""),
  );
  assertEquals(readResponse(Uint8Array.fromHex("0801121108011207080a10021a016e180922020828")), {
    overallCode: "OK",
    statuses: [{ code: "OK", hasLimit: true, limitRemaining: 9 }],
  });
  assertEquals(
    readResponse(Uint8Array.fromHex("0802120e080212040801100722040880f524120208011208080118ffffffff0f")),
    {
      overallCode: "OVER_LIMIT",
      statuses: [
        { code: "OVER_LIMIT", hasLimit: true, limitRemaining: 0 },
        { code: "OK", hasLimit: false, limitRemaining: 0 },
        { code: "OK", hasLimit: false, limitRemaining: 4_294_967_295 },
      ],
    },
  );
});

Deno.test("every load meets rules that are there, and those that last are counted for a year", () => {
  const windows = Object.fromEntries(
    [...RULES.matchAll(/value: (\w+), .*?unit: (\w+),/g)].map(([, rule, unit]) => [rule, unit]),
  );
  assertEquals(windows, { one: "year", keys: "year", second: "second", events: "year" });
  assertEquals(RULES_OF, { one: ["one"], keys: ["keys"], both: ["keys", "second"], events: ["events"] });
  assertEquals(RULES_OF.both.map(isLasting), [true, false]);
});

function descriptorHex(load: string, key: string): string {
  const field = (number: string, hex: string) =>
    number + (hex.length / 2).toString(16).padStart(2, "0") + hex;
  const text = (number: string, value: string) => field(number, new TextEncoder().encode(value).toHex());
  const entry = (name: string, value: string) => field("0a", text("0a", name) + text("12", value));
  return field("12", entry("load", load) + entry("key", key));
}
