import { assertEquals, assertThrows } from "#assert";
import { DECISION_CASES } from "../../../scripts/bench/decision_cases.ts";
import { decisionTime } from "../../../scripts/bench/decision_time.ts";
import type { Measurements } from "../../../scripts/bench/measurements.ts";
import { PARTS, readBenchOptions } from "../../../scripts/bench/options.ts";
import { STORES } from "../../../scripts/bench/postgres.ts";
import type { ReloadOutcome } from "../../../scripts/bench/reload.ts";
import type { Metrics, Summary } from "../../../scripts/bench/report.ts";
import { SCENARIOS, type TargetName } from "../../../scripts/bench/scenario.ts";
import { targetRows } from "../../../scripts/bench/target_rows.ts";
import { throughputSvg } from "../../../scripts/bench/throughput_svg.ts";

const ECHO: Metrics = { callsPerSecond: 10_000, p50Ms: 10, p99Ms: 20, cpuSecondsPer100k: 5 };
const WEIR: Metrics = { callsPerSecond: 300_000, p50Ms: 1, p99Ms: 2, cpuSecondsPer100k: 0.1 };
const TIME = { fewNs: 100, manyNs: 110, ratio: 1.1 };

/** Every target is hit. */
const GOOD: Measurements = {
  summaries: SCENARIOS.flatMap(({ name, targets }) => targets.map((target) => summaryOf(name, target))),
  decisions: [{ name: "rules", fewRules: 10, manyRules: 100_000, bound: 1.15, plan: TIME, decision: TIME }],
  million: { values: 1_000_000, residentMb: 349.4, sampled: 100_000, callsPerSecond: 150_000 },
  reload: reloadOf(19.5, 22),
  start: { firstOkMs: 399, idleMb: 99, rounds: [] },
  featureStart: { firstOkMs: 398, idleMb: 139, rounds: [] },
  client: [{ parallel: 1, fetchUs: 100, sendUs: 108, ratio: 1.08 }],
  webhooks: {
    bareCommits: 4_000,
    triggers: 2_600,
    barePosts: 5_000,
    deliveries: 2_000,
    decisionP99Ms: 2,
    decisionP99WithDeliveriesMs: 2.2,
    decisionP99Ratio: 1.1,
  },
  postgres: {
    bareTransactions: 2_000.4,
    connections: 10,
    stores: STORES.map((store, index) => ({
      store,
      triggers: 1_000 + index,
      triggersToBare: 0.5,
      deliveries: 1_500 + index,
      deliveriesToBare: 0.75,
    })),
  },
};

Deno.test("targetRows: every target of the run, with what was measured", () => {
  const rows = targetRows(GOOD);
  assertEquals(rows.every(({ isHit }) => isHit), true);
  assertEquals(rows.length, 38);
  const told = rows.map(({ what, target, measured }) => `${what}: ${target}: ${measured}`);
  const samples = [
    "memory, 8 connections of 32 calls, 10,000 keys: at least 22 times the echo: 30.00 times (300,000 calls/s)",
    "CPU per call, redis, 8 connections of 32: at most 0.06 times the echo: 0.020 times (0.10 s per 100,000)",
    "p99, memory, 8 connections of 32: below the echo's p50 (10.00 ms): 2.00 ms, 0.20 times",
    "reload of 100,000 rules at 20,000 calls/s: longest slice of the deciding thread at most 20 ms: " +
    "19.5 ms, in the worst round 22.0 ms; 3.0 ms without a reload",
    "from deno run, warm cache, to the first OK over gRPC: at most 400 ms: 399 ms",
    "resident memory of an idle process: at most 100 MB: 99 MB",
    "triggers, PostgreSQL, one instance: at least 0.35 times bare transactions: 0.50 times (1,001 a second)",
  ];
  assertEquals(samples.filter((sample) => !told.includes(sample)), []);
});

Deno.test("targetRows: what is not reached is missed, what was not run is left out", () => {
  const slow: Measurements = {
    summaries: GOOD.summaries.map((summary) => {
      const isObserved = summary.target.startsWith("memory-");
      const slowed = {
        callsPerSecond: ECHO.callsPerSecond * 0.94,
        cpuSecondsPer100k: ECHO.cpuSecondsPer100k * 0.9,
      };
      const median = isObserved ? { ...ECHO, ...slowed } : ECHO;
      return { ...summary, median, toEcho: ratios(ECHO), toFirst: 0.94 };
    }),
    decisions: [{ name: "rules", fewRules: 10, manyRules: 20, bound: 1, plan: TIME, decision: TIME }],
    million: { values: 1_000_000, residentMb: 351, sampled: 100_000, callsPerSecond: 1 },
    reload: reloadOf(20.1, 20.1),
    start: { firstOkMs: 401, idleMb: 101, rounds: [] },
    featureStart: { firstOkMs: 401, idleMb: 141, rounds: [] },
    client: [{ parallel: 100, fetchUs: 100, sendUs: 111, ratio: 1.11 }],
    webhooks: {
      bareCommits: 4_000,
      triggers: 999,
      barePosts: 5_000,
      deliveries: 999,
      decisionP99Ms: 2,
      decisionP99WithDeliveriesMs: 2.5,
      decisionP99Ratio: 1.25,
    },
    postgres: {
      bareTransactions: 2_000,
      connections: 10,
      stores: STORES.map((store) => ({
        store,
        triggers: 680,
        triggersToBare: 0.34,
        deliveries: 660,
        deliveriesToBare: 0.33,
      })),
    },
  };
  const hits = targetRows(slow).filter(({ isHit }) => isHit).map(({ what }) => what);
  assertEquals(hits, ["p50, redis-server, 5,000 calls/s evenly paced"]);
  const missedBy = (what: string) => targetRows(slow).find((row) => row.what === what)?.missedBy?.toFixed(3);
  assertEquals(missedBy("memory, 64 connections of 4"), "0.923");
  assertEquals(missedBy("reload of 100,000 rules at 20,000 calls/s"), "0.005");
  assertEquals(targetRows(GOOD).filter((row) => "missedBy" in row), []);
  assertEquals(targetRows({ summaries: [] }), []);
});

Deno.test("the picture has both panels, or there is none", () => {
  const picture = throughputSvg(GOOD.summaries) ?? "";
  const texts = [...picture.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);
  assertEquals(texts, [
    ...["grpc-js echo", "Weir, memory", "Weir, redis-server"],
    ...["calls/s", "longer is better", "10,000", "300,000", "300,000"],
    ...["p99", "shorter is better", "20.00 ms", "2.00 ms", "2.00 ms"],
    "8 connections of 32 calls in flight, 10,000 keys in turn, one process",
  ]);
  assertEquals(throughputSvg(GOOD.summaries.filter(({ target }) => target !== "redis")), undefined);
});

Deno.test("readBenchOptions: only a whole run writes results by itself", () => {
  const results = new URL("../../../scripts/bench/results/", import.meta.url).pathname;
  assertEquals(readBenchOptions([]), {
    engine: "native",
    parts: [...PARTS],
    peers: undefined,
    rounds: 3,
    seconds: 1,
    warmUpSeconds: 0.3,
    isQuick: false,
    results,
  });
  assertEquals(readBenchOptions(["--quick", "--engine", "grpc-js", "--only", "tls,keys", "--rounds", "2"]), {
    engine: "grpc-js",
    parts: ["keys", "tls"],
    peers: undefined,
    rounds: 2,
    seconds: 0.5,
    warmUpSeconds: 0.3,
    isQuick: true,
    results: undefined,
  });
  const bad = [["--only", "none"], ["--rounds", "1.5"], ["--engine", "go"]];
  assertEquals(bad.map((args) => assertThrows(() => readBenchOptions(args)).message), [
    `Cannot read --only "none": it must be one of ${PARTS.join(", ")}`,
    'Cannot read --rounds "1.5": it must be a whole number',
    'Cannot read --engine "go": it must be one of native, grpc-js',
  ]);
});

Deno.test("decisionTime: the requests of every case find what they are to find", () => {
  const times = DECISION_CASES.map((decisionCase) => decisionTime({ ...decisionCase, manyRules: 20 }, 1));
  assertEquals(
    times.map(({ plan, decision }) => plan.ratio > 0 && decision.ratio > 0),
    times.map(() => true),
  );
});

function reloadOf(longestMs: number, worstMs: number): ReloadOutcome {
  const round = { longestBeforeMs: 3, longestMs, loadSeconds: 2 };
  const rounds = [round, { ...round, longestMs: worstMs }];
  return { rules: 100_000, callsPerSecond: 20_000, ...round, rounds };
}

function summaryOf(scenario: string, target: TargetName): Summary {
  const median = target.startsWith("echo") ? ECHO : target === "bare" ? { ...WEIR, p50Ms: 0.8 } : WEIR;
  const same = { scenario, target, median, slowest: 1, fastest: 2, generatorBusy: 0.5 };
  return { ...same, toEcho: ratios(median), toFirst: 1 };
}

function ratios(median: Metrics): Metrics {
  return {
    callsPerSecond: median.callsPerSecond / ECHO.callsPerSecond,
    p50Ms: median.p50Ms / ECHO.p50Ms,
    p99Ms: median.p99Ms / ECHO.p99Ms,
    cpuSecondsPer100k: median.cpuSecondsPer100k / ECHO.cpuSecondsPer100k,
  };
}
