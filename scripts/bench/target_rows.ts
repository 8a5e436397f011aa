import { algorithmRows } from "./algorithm_rows.ts";
import type { ClientTime } from "./client_time.ts";
import type { Measurements, TargetRow } from "./measurements.ts";
import { wholeNumber } from "../../tests/harness/markdown_table.ts";
import type { Summary } from "./report.ts";
import type { TargetName } from "./scenario.ts";
import type { StartOutcome } from "./start_time.ts";
import type { WebhookOutcome } from "./webhooks.ts";
import { workerRows } from "./worker_rows.ts";

type Rate = readonly [what: string, scenario: string, target: TargetName, bound: number];

/** At least so many times the calls a second of the echo in the same load. */
const RATES: readonly Rate[] = [
  ["memory, 8 connections of 32 calls, 10,000 keys", "8x32", "memory", 15],
  ["redis-server, the same", "8x32", "redis", 7],
  ["redis-server, the same with one hot key", "8x32 hot key", "redis", 10],
  ["memory, 64 connections of 4", "64x4", "memory", 8],
  ["memory, 256 connections of 1", "256x1", "memory", 2.7],
  ["memory, 8 connections of 1", "8x1", "memory", 4],
  ["redis-server, 64 connections of 4", "64x4", "redis", 5],
  ["redis-server, 256 connections of 1", "256x1", "redis", 2.2],
  ["redis-server, 8 connections of 1", "8x1", "redis", 2.2],
];
/** The same, for later rows of the table. */
const LATER_RATES: readonly Rate[] = [
  ["cluster of three redis-servers, 8 connections of 32 calls, 10,000 keys", "8x32 caches", "cluster", 3],
  ["memcached, the same", "8x32 caches", "mc", 3],
  [
    "two redis-servers, the same; each call has a limit per year and one per second",
    "8x32 two caches",
    "two-caches",
    4,
  ],
  ["memory over TLS, 8 connections of 32 calls", "8x32 TLS", "memory-tls", 6],
  [
    "memory with every feature on, 8 connections of 32 calls, 10,000 keys",
    "8x32 every feature",
    "features",
    15,
  ],
];
/** At most so many times the CPU of the echo for a call. */
const CPU: readonly (readonly [target: TargetName, bound: number])[] = [["memory", 0.08], ["redis", 0.12]];
/** At least so many times the calls a second without statistics and spans. */
const OBSERVED: readonly (readonly [what: string, target: TargetName])[] = [
  ["memory with statistics pushed each second", "memory-push"],
  ["memory with metrics pulled each second", "memory-pull"],
  ["memory with 1 % of the calls traced", "memory-tracing"],
];
const OBSERVED_SHARE = 0.95;
const CLIENT_BOUND = 1.1;
const WEBHOOK_BOUNDS = { perSecond: 1_000, p99Ratio: 1.2 } as const;
const WATCHED = "8x32 statistics";
const BASE = "8x32";
const PACED = "5,000/s";
const BOUNDS = {
  pacedP50Ms: 0.3,
  pacedP99ToEcho: 0.5,
  residentMb: 350,
  firstOkMs: 400,
  idleMb: 100,
  featuresIdleMb: 140,
} as const;

/** Every target that the run measured, in the order of their table. */
export function targetRows(
  { summaries, algorithms = [], decisions = [], million, start, featureStart, client = [], webhooks }:
    Measurements,
): TargetRow[] {
  const find = (scenario: string, target: TargetName) =>
    summaries.find((summary) => summary.scenario === scenario && summary.target === target);
  const rateRows = (list: readonly Rate[]) =>
    list.flatMap(([what, scenario, target, bound]) => rateRow(find(scenario, target), what, bound));
  return [
    ...rateRows(RATES),
    ...CPU.flatMap(([target, bound]) => cpuRow(find(BASE, target), bound)),
    ...CPU.flatMap(([target]) => p99Row(find(BASE, target), find(BASE, "echo"))),
    ...pacedRows(find(PACED, "redis"), find(PACED, "echo"), find(PACED, "bare")),
    ...decisions.map(({ name, fewRules, manyRules, bound, plan, decision }) => ({
      what: `${wholeNumber(fewRules)} against ${wholeNumber(manyRules)} ${name}`,
      target: `at most ${bound} times the time`,
      measured:
        `${decision.ratio.toFixed(2)} times (${decision.fewNs.toFixed(0)} and ${
          decision.manyNs.toFixed(0)
        } ns; ` +
        `matching alone ${plan.ratio.toFixed(2)})`,
      isHit: decision.ratio <= bound,
    })),
    ...(million === undefined ? [] : [{
      what: `${wholeNumber(million.values)} distinct values through memory with its default bound`,
      target: `resident memory at most ${BOUNDS.residentMb} MB, nothing lost`,
      measured: `${million.residentMb.toFixed(0)} MB; ${
        wholeNumber(million.sampled)
      } checked again, none lost`,
      isHit: million.residentMb <= BOUNDS.residentMb,
    }]),
    ...startRows(start, "", BOUNDS.idleMb),
    ...rateRows(LATER_RATES),
    ...startRows(featureStart, ", every feature on", BOUNDS.featuresIdleMb),
    ...OBSERVED.flatMap(([what, target]) => observedRow(find(WATCHED, target), what)),
    ...algorithmRows(algorithms),
    ...workerRows(find),
    ...client.map(clientRow),
    ...(webhooks === undefined ? [] : webhookRows(webhooks)),
  ];
}

function startRows(start: StartOutcome | undefined, having: string, idleMb: number): TargetRow[] {
  if (start === undefined) return [];
  const first = `from deno run, warm cache, to the first OK over gRPC${having}`;
  return [
    atMost(first, start.firstOkMs, BOUNDS.firstOkMs, "ms"),
    atMost(`resident memory of an idle process${having}`, start.idleMb, idleMb, "MB"),
  ];
}

function rateRow(summary: Summary | undefined, what: string, bound: number): TargetRow[] {
  if (summary?.toEcho === undefined) return [];
  const ratio = summary.toEcho.callsPerSecond;
  return [{
    what,
    target: `at least ${bound} times the echo`,
    measured: `${ratio.toFixed(2)} times (${wholeNumber(summary.median.callsPerSecond)} calls/s)`,
    isHit: ratio >= bound,
  }];
}

function observedRow(summary: Summary | undefined, what: string): TargetRow[] {
  if (summary?.toFirst === undefined) return [];
  const ratio = summary.toFirst;
  return [{
    what,
    target: `at least ${OBSERVED_SHARE} times the calls without`,
    measured: `${ratio.toFixed(2)} times (${wholeNumber(summary.median.callsPerSecond)} calls/s)`,
    isHit: ratio >= OBSERVED_SHARE,
  }];
}

function clientRow({ parallel, fetchUs, sendUs, ratio }: ClientTime): TargetRow {
  return {
    what: `send of the HTTP client library, ${parallel} concurrent`,
    target: `at most ${CLIENT_BOUND} times a bare fetch`,
    measured: `${ratio.toFixed(2)} times (${sendUs.toFixed(0)} and ${fetchUs.toFixed(0)} µs)`,
    isHit: ratio <= CLIENT_BOUND,
  };
}

function webhookRows(outcome: WebhookOutcome): TargetRow[] {
  const { triggers, bareCommits, deliveries, barePosts } = outcome;
  const { decisionP99Ms, decisionP99WithDeliveriesMs, decisionP99Ratio } = outcome;
  const { perSecond, p99Ratio } = WEBHOOK_BOUNDS;
  return [{
    what: "triggers committed to a file, 64 callers",
    target: `at least ${wholeNumber(perSecond)} a second`,
    measured: `${wholeNumber(triggers)}; ${
      (triggers / bareCommits).toFixed(2)
    } times bare commits by node:sqlite`,
    isHit: triggers >= perSecond,
  }, {
    what: "deliveries to 50 local endpoints",
    target: `at least ${wholeNumber(perSecond)} a second`,
    measured: `${wholeNumber(deliveries)}; ${(deliveries / barePosts).toFixed(2)} times a bare client`,
    isHit: deliveries >= perSecond,
  }, {
    what: "p99 of 5,000 decisions/s in memory during 500 deliveries/s",
    target: `at most ${p99Ratio} times without`,
    measured: `${decisionP99Ratio.toFixed(2)} times (${decisionP99WithDeliveriesMs.toFixed(2)} and ${
      decisionP99Ms.toFixed(2)
    } ms)`,
    isHit: decisionP99Ratio <= p99Ratio,
  }];
}

function cpuRow(summary: Summary | undefined, bound: number): TargetRow[] {
  if (summary?.toEcho === undefined) return [];
  const ratio = summary.toEcho.cpuSecondsPer100k;
  return [{
    what: `CPU per call, ${summary.target}, 8 connections of 32`,
    target: `at most ${bound} times the echo`,
    measured: `${ratio.toFixed(3)} times (${summary.median.cpuSecondsPer100k.toFixed(2)} s per 100,000)`,
    isHit: ratio <= bound,
  }];
}

function p99Row(summary: Summary | undefined, echo: Summary | undefined): TargetRow[] {
  if (summary === undefined || echo === undefined) return [];
  const [p99, p50] = [summary.median.p99Ms, echo.median.p50Ms];
  return [{
    what: `p99, ${summary.target}, 8 connections of 32`,
    target: `below the echo's p50 (${p50.toFixed(2)} ms)`,
    measured: `${p99.toFixed(2)} ms, ${(p99 / p50).toFixed(2)} times`,
    isHit: p99 < p50,
  }];
}

function pacedRows(
  weir: Summary | undefined,
  echo: Summary | undefined,
  bare: Summary | undefined,
): TargetRow[] {
  if (weir === undefined || echo === undefined || bare === undefined) return [];
  const [more, p99, echoP99] = [weir.median.p50Ms - bare.median.p50Ms, weir.median.p99Ms, echo.median.p99Ms];
  return [{
    what: "p50, redis-server, 5,000 calls/s evenly paced",
    target: `at most ${BOUNDS.pacedP50Ms} ms above a bare ioredis round trip (${
      bare.median.p50Ms.toFixed(2)
    } ms)`,
    measured: `${weir.median.p50Ms.toFixed(2)} ms, ${more.toFixed(2)} above`,
    isHit: more <= BOUNDS.pacedP50Ms,
  }, {
    what: "p99, redis-server, 5,000 calls/s evenly paced",
    target: `at most half of the echo's (${echoP99.toFixed(2)} ms)`,
    measured: `${p99.toFixed(2)} ms, ${(p99 / echoP99).toFixed(2)} times`,
    isHit: p99 <= BOUNDS.pacedP99ToEcho * echoP99,
  }];
}

function atMost(what: string, value: number, bound: number, unit: string): TargetRow {
  return {
    what,
    target: `at most ${bound} ${unit}`,
    measured: `${value.toFixed(0)} ${unit}`,
    isHit: value <= bound,
  };
}
