import { assertEquals, assertThrows } from "@std/assert";
import { fileURLToPath } from "node:url";
import { Child, outputOf } from "../../scripts/bench/child.ts";
import { checkSummary, readTimes } from "../../scripts/bench/h2load.ts";
import type { LoadResult } from "../../scripts/bench/load_record.ts";
import { median, percentile } from "../../scripts/bench/percentile.ts";
import { encodeRequest, readOverallCode } from "../../scripts/bench/rate_limit_message.ts";
import { summarize } from "../../scripts/bench/report.ts";
import { checkCounts } from "../../scripts/bench/round.ts";

const BENCH = fileURLToPath(new URL("../../scripts/bench/", import.meta.url));

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

Deno.test("summaries hold medians, and ratios to the echo of the same load", () => {
  const figures = { calls: 100, seconds: 1, p50Ms: 4, p99Ms: 8, cpuSecondsPer100k: 6 };
  const summaries = summarize([
    { load: "one", target: "echo", ...figures, callsPerSecond: 90 },
    { load: "one", target: "memory", ...figures, callsPerSecond: 50, cpuSecondsPer100k: 12 },
    { load: "one", target: "echo", ...figures, callsPerSecond: 110 },
    { load: "keys", target: "memory", ...figures, callsPerSecond: 70 },
  ]);
  const same = { p50Ms: 4, p99Ms: 8, cpuSecondsPer100k: 6 };
  assertEquals(summaries, [
    {
      load: "one",
      target: "echo",
      median: { callsPerSecond: 100, ...same },
      slowest: 90,
      fastest: 110,
      toEcho: { callsPerSecond: 1, p50Ms: 1, p99Ms: 1, cpuSecondsPer100k: 1 },
    },
    {
      load: "one",
      target: "memory",
      median: { callsPerSecond: 50, ...same, cpuSecondsPer100k: 12 },
      slowest: 50,
      fastest: 50,
      toEcho: { callsPerSecond: 0.5, p50Ms: 1, p99Ms: 1, cpuSecondsPer100k: 2 },
    },
    { load: "keys", target: "memory", median: { callsPerSecond: 70, ...same }, slowest: 70, fastest: 70 },
  ]);
});

Deno.test("the request and the answer are those of the protocol", () => {
  assertEquals(
    encodeRequest("one", "k0").toHex(),
    "0a0562656e6368" + "1218" + "0a0b" + "0a046c6f6164" + "12036f6e65" + "0a09" + "0a036b6579" + "12026b30",
  );
  assertEquals(readOverallCode(Uint8Array.fromHex("0801121108011207080a10021a016e180922020828")), "OK");
  assertEquals(
    readOverallCode(Uint8Array.fromHex("0802120e080212040801100722040880f524120208011208080118ffffffff0f")),
    "OVER_LIMIT",
  );
});

Deno.test("load.ts: 200 calls to the echo server, every answer checked", async () => {
  await using echo = new Child("echo server", Deno.execPath(), {
    args: ["run", "-A", `${BENCH}echo_server.ts`],
  });
  const { port } = await echo.find({ port: /Listening for gRPC on '[^']*:(\d+)'/ });
  const load = async (...args: string[]) => {
    const common = [
      "--port",
      port,
      "--connections",
      "4",
      "--in-flight",
      "8",
      "--keys",
      "50",
      "--calls",
      "200",
    ];
    const output = await outputOf(Deno.execPath(), ["run", "-A", `${BENCH}load.ts`, ...common, ...args]);
    const { calls, errors, statuses }: LoadResult = JSON.parse(output);
    return { calls, errors, statuses };
  };
  assertEquals(await load("--expect", "echo"), {
    calls: 200,
    errors: {},
    statuses: { "http 200, grpc 0": 200 },
  });
  assertEquals(await load("--expect", "OK"), {
    calls: 200,
    errors: { 'Cannot read answer at byte "0": it must be a RateLimitResponse': 200 },
    statuses: { "http 200, grpc 0": 200 },
  });
  assertEquals(await load("--expect", "echo", "--path", "/none.Service/None"), {
    calls: 200,
    errors: { "http 200, grpc 12: The server does not implement the method /none.Service/None": 200 },
    statuses: { "http 200, grpc 12": 200 },
  });
});
