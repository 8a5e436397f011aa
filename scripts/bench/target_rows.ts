import { algorithmRows } from "./algorithm_rows.ts";
import type { ClientTime } from "./client_time.ts";
import type { DecisionTime } from "./decision_time.ts";
import type { Measurements, TargetRow } from "./measurements.ts";
import type { MillionOutcome } from "./million.ts";
import type { PostgresOutcome } from "./postgres.ts";
import type { ReloadOutcome } from "./reload.ts";
import { wholeNumber } from "../../tests/harness/markdown_table.ts";
import type { Summary } from "./report.ts";
import type { TargetName } from "./scenario.ts";
import type { StartOutcome } from "./start_time.ts";
import type { WebhookOutcome } from "./webhooks.ts";

type Rate = readonly [what: string, scenario: string, target: TargetName, bound: number];

/** At least so many times the calls a second of the echo in the same load. */
const RATES: readonly Rate[] = [
  ["memory, 8 connections of 32 calls, 10,000 keys", "8x32", "memory", 22],
  ["redis-server, 8 connections of 32 calls, 10,000 keys", "8x32", "redis", 15],
  ["redis-server, 8 connections of 32 calls, one hot key", "8x32 hot key", "redis", 20],
  ["memory, 64 connections of 4", "64x4", "memory", 13],
  ["memory, 256 connections of 1", "256x1", "memory", 5.8],
  ["memory, 8 connections of 1", "8x1", "memory", 6],
  ["redis-server, 64 connections of 4", "64x4", "redis", 10],
  ["redis-server, 256 connections of 1", "256x1", "redis", 5.5],
  ["redis-server, 8 connections of 1", "8x1", "redis", 3.5],
];
/** The same, for later rows of the table. */
const LATER_RATES: readonly Rate[] = [
  ["cluster of three redis-servers, 8 connections of 32 calls, 10,000 keys", "8x32 caches", "cluster", 3],
  ["memcached, 8 connections of 32 calls, 10,000 keys", "8x32 caches", "mc", 3],
  [
    "two redis-servers, 8 connections of 32 calls; each call has a limit per year and one per second",
    "8x32 two caches",
    "two-caches",
    4,
  ],
  ["memory over TLS, 8 connections of 32 calls", "8x32 TLS", "memory-tls", 18],
  [
    "memory with every feature on, 8 connections of 32 calls, 10,000 keys",
    "8x32 every feature",
    "features",
    18,
  ],
];
/** At most so many times the CPU of the echo for a call. */
const CPU: readonly (readonly [target: TargetName, bound: number])[] = [["memory", 0.028], ["redis", 0.06]];
/** At least so many times the calls a second without statistics and spans. */
const OBSERVED: readonly (readonly [what: string, target: TargetName])[] = [
  ["memory with statistics pushed each second", "memory-push"],
  ["memory with metrics pulled each second", "memory-pull"],
  ["memory with 1 % of the calls traced", "memory-tracing"],
];
const OBSERVED_SHARE = 0.95;
const EVENTS = "8x32 events";
const CLIENT_BOUND = 1.1;
/** On a file, as multiples of bare commits and of a bare client. */
const FILE_BOUNDS = { triggers: 0.6, deliveries: 0.35, p99Ratio: 1.2 } as const;
/** On PostgreSQL, as multiples of bare transactions. */
const POSTGRES_BOUNDS = { triggers: 0.35, deliveries: 0.35 } as const;
const WATCHED = "8x32 statistics";
const BASE = "8x32";
const ONCE = "8x32 seen once";
const PACED = "5,000/s";
const BOUNDS = {
  pacedP50Ms: 0.3,
  pacedP99ToEcho: 0.5,
  residentMb: 350,
  firstOkMs: 400,
  idleMb: 100,
  featuresIdleMb: 140,
  seenOnce: 0.95,
  reloadSliceMs: 20,
} as const;

/** Every target that the run measured, in the order of their table. */
export function targetRows(
  {
    summaries,
    algorithms = [],
    decisions = [],
    client = [],
    million,
    reload,
    start,
    featureStart,
    ...stores
  }: Measurements,
): TargetRow[] {
  const find = (scenario: string, target: TargetName) =>
    summaries.find((summary) => summary.scenario === scenario && summary.target === target);
  const rateRows = (list: readonly Rate[]) =>
    list.flatMap(([what, scenario, target, bound]) => rateRow(find(scenario, target), what, bound));
  return [
    ...rateRows(RATES),
    ...CPU.flatMap(([target, bound]) => cpuRow(find(BASE, target), bound)),
    ...CPU.flatMap(([target]) => p99Row(find(BASE, target), find(BASE, "echo"))),
    ...onceRow(find(ONCE, "memory"), find(ONCE, "memory-plain")),
    ...pacedRows(find(PACED, "redis"), find(PACED, "echo"), find(PACED, "bare")),
    ...decisions.map(decisionRow),
    ...(million === undefined ? [] : [millionRow(million)]),
    ...(reload === undefined ? [] : [reloadRow(reload)]),
    ...startRows(start, "", BOUNDS.idleMb),
    ...rateRows(LATER_RATES),
    ...startRows(featureStart, ", every feature on", BOUNDS.featuresIdleMb),
    ...OBSERVED.flatMap(([what, target]) => observedRow(find(WATCHED, target), what)),
    ...observedRow(find(EVENTS, "memory-events"), "memory, 1 % of the calls over a rule with events"),
    ...algorithmRows(algorithms),
    ...workerRows(find),
    ...client.map(clientRow),
    ...(stores.webhooks === undefined ? [] : webhookRows(stores.webhooks)),
    ...(stores.postgres === undefined ? [] : postgresRows(stores.postgres)),
  ];
}

function decisionRow({ name, fewRules, manyRules, bound, plan, decision }: DecisionTime): TargetRow {
  const { ratio, fewNs, manyNs } = decision;
  return atMost(ratio, bound, {
    what: `${wholeNumber(fewRules)} against ${wholeNumber(manyRules)} ${name}`,
    target: `at most ${bound} times the time`,
    measured: `${ratio.toFixed(2)} times (${fewNs.toFixed(0)} and ${manyNs.toFixed(0)} ns; ` +
      `matching alone ${plan.ratio.toFixed(2)})`,
  });
}

function millionRow({ values, residentMb, sampled }: MillionOutcome): TargetRow {
  return atMost(residentMb, BOUNDS.residentMb, {
    what: `${wholeNumber(values)} distinct values through memory with its default bound`,
    target: `resident memory at most ${BOUNDS.residentMb} MB, nothing lost`,
    measured: `${residentMb.toFixed(0)} MB; ${wholeNumber(sampled)} checked again, none lost`,
  });
}

function reloadRow({ rules, callsPerSecond, longestMs, longestBeforeMs, rounds }: ReloadOutcome): TargetRow {
  const most = Math.max(...rounds.map((round) => round.longestMs));
  return atMost(longestMs, BOUNDS.reloadSliceMs, {
    what: `reload of ${wholeNumber(rules)} rules at ${wholeNumber(callsPerSecond)} calls/s`,
    target: `longest slice of the deciding thread at most ${BOUNDS.reloadSliceMs} ms`,
    measured: `${longestMs.toFixed(1)} ms, in the worst round ${most.toFixed(1)} ms; ${
      longestBeforeMs.toFixed(1)
    } ms without a reload`,
  });
}

function startRows(start: StartOutcome | undefined, having: string, idleMb: number): TargetRow[] {
  if (start === undefined) return [];
  const rows = [
    [
      `from deno run, warm cache, to the first OK over gRPC${having}`,
      start.firstOkMs,
      BOUNDS.firstOkMs,
      "ms",
    ],
    [`resident memory of an idle process${having}`, start.idleMb, idleMb, "MB"],
  ] as const;
  return rows.map(([what, value, bound, unit]) =>
    atMost(value, bound, {
      what,
      target: `at most ${bound} ${unit}`,
      measured: `${value.toFixed(0)} ${unit}`,
    })
  );
}

function rateRow(summary: Summary | undefined, what: string, bound: number): TargetRow[] {
  if (summary?.toEcho === undefined) return [];
  const ratio = summary.toEcho.callsPerSecond;
  return [atLeast(ratio, bound, {
    what,
    target: `at least ${bound} times the echo`,
    measured: `${ratio.toFixed(2)} times (${wholeNumber(summary.median.callsPerSecond)} calls/s)`,
  })];
}

/** By CPU, because making new calls may keep the generator busier than the service. */
function onceRow(summary: Summary | undefined, plain: Summary | undefined): TargetRow[] {
  if (summary === undefined || plain === undefined) return [];
  const ratio = plain.median.cpuSecondsPer100k / summary.median.cpuSecondsPer100k;
  return [atLeast(ratio, BOUNDS.seenOnce, {
    what: "memory, every key seen once: calls per CPU second",
    target: `at least ${BOUNDS.seenOnce} times those without known requests`,
    measured: `${ratio.toFixed(2)} times; calls/s ${(summary.toFirst ?? 0).toFixed(2)} times`,
  })];
}

function observedRow(summary: Summary | undefined, what: string): TargetRow[] {
  if (summary?.toFirst === undefined) return [];
  const ratio = summary.toFirst;
  return [atLeast(ratio, OBSERVED_SHARE, {
    what,
    target: `at least ${OBSERVED_SHARE} times the calls without`,
    measured: `${ratio.toFixed(2)} times (${wholeNumber(summary.median.callsPerSecond)} calls/s)`,
  })];
}

function clientRow({ parallel, fetchUs, sendUs, ratio }: ClientTime): TargetRow {
  return atMost(ratio, CLIENT_BOUND, {
    what: `send of the HTTP client library, ${parallel} concurrent`,
    target: `at most ${CLIENT_BOUND} times a bare fetch`,
    measured: `${ratio.toFixed(2)} times (${sendUs.toFixed(0)} and ${fetchUs.toFixed(0)} µs)`,
  });
}

function webhookRows(outcome: WebhookOutcome): TargetRow[] {
  const { bareCommits, barePosts, decisionP99Ms, decisionP99WithDeliveriesMs, decisionP99Ratio } = outcome;
  const [triggers, deliveries] = [outcome.triggers / bareCommits, outcome.deliveries / barePosts];
  return [
    atLeast(triggers, FILE_BOUNDS.triggers, {
      what: "triggers committed to a file, 64 callers",
      target: `at least ${FILE_BOUNDS.triggers} times bare commits by node:sqlite`,
      measured: `${triggers.toFixed(2)} times (${wholeNumber(outcome.triggers)} a second)`,
    }),
    atLeast(deliveries, FILE_BOUNDS.deliveries, {
      what: "deliveries to 50 local endpoints, store in a file",
      target: `at least ${FILE_BOUNDS.deliveries} times a bare client`,
      measured: `${deliveries.toFixed(2)} times (${wholeNumber(outcome.deliveries)} a second)`,
    }),
    atMost(decisionP99Ratio, FILE_BOUNDS.p99Ratio, {
      what: "p99 of 5,000 decisions/s in memory during 500 deliveries/s",
      target: `at most ${FILE_BOUNDS.p99Ratio} times without`,
      measured: `${decisionP99Ratio.toFixed(2)} times (${decisionP99WithDeliveriesMs.toFixed(2)} and ${
        decisionP99Ms.toFixed(2)
      } ms)`,
    }),
  ];
}

function postgresRows({ stores }: PostgresOutcome): TargetRow[] {
  const one = stores.find(({ store }) => store === "PostgreSQL, one instance");
  if (one === undefined) return [];
  const rows = [
    ["triggers", one.triggersToBare, one.triggers],
    ["deliveries", one.deliveriesToBare, one.deliveries],
  ] as const;
  return rows.map(([name, ratio, perSecond]) =>
    atLeast(ratio, POSTGRES_BOUNDS[name], {
      what: `${name}, PostgreSQL, one instance`,
      target: `at least ${POSTGRES_BOUNDS[name]} times bare transactions`,
      measured: `${ratio.toFixed(2)} times (${wholeNumber(perSecond)} a second)`,
    })
  );
}

function cpuRow(summary: Summary | undefined, bound: number): TargetRow[] {
  if (summary?.toEcho === undefined) return [];
  const ratio = summary.toEcho.cpuSecondsPer100k;
  return [atMost(ratio, bound, {
    what: `CPU per call, ${summary.target}, 8 connections of 32`,
    target: `at most ${bound} times the echo`,
    measured: `${ratio.toFixed(3)} times (${summary.median.cpuSecondsPer100k.toFixed(2)} s per 100,000)`,
  })];
}

function p99Row(summary: Summary | undefined, echo: Summary | undefined): TargetRow[] {
  if (summary === undefined || echo === undefined) return [];
  const [p99, p50] = [summary.median.p99Ms, echo.median.p50Ms];
  return [atMost(p99, p50, {
    what: `p99, ${summary.target}, 8 connections of 32`,
    target: `below the echo's p50 (${p50.toFixed(2)} ms)`,
    measured: `${p99.toFixed(2)} ms, ${(p99 / p50).toFixed(2)} times`,
  })];
}

function pacedRows(
  weir: Summary | undefined,
  echo: Summary | undefined,
  bare: Summary | undefined,
): TargetRow[] {
  if (weir === undefined || echo === undefined || bare === undefined) return [];
  const [more, p99, echoP99] = [weir.median.p50Ms - bare.median.p50Ms, weir.median.p99Ms, echo.median.p99Ms];
  return [
    atMost(more, BOUNDS.pacedP50Ms, {
      what: "p50, redis-server, 5,000 calls/s evenly paced",
      target: `at most ${BOUNDS.pacedP50Ms} ms above a bare round trip (${bare.median.p50Ms.toFixed(2)} ms)`,
      measured: `${weir.median.p50Ms.toFixed(2)} ms, ${more.toFixed(2)} above`,
    }),
    atMost(p99, BOUNDS.pacedP99ToEcho * echoP99, {
      what: "p99, redis-server, 5,000 calls/s evenly paced",
      target: `at most half of the echo's (${echoP99.toFixed(2)} ms)`,
      measured: `${p99.toFixed(2)} ms, ${(p99 / echoP99).toFixed(2)} times`,
    }),
  ];
}

/** The texts of a row. */
type RowTexts = Pick<TargetRow, "what" | "target" | "measured">;

/** A target that is met from the bound on. */
function atLeast(value: number, bound: number, texts: RowTexts): TargetRow {
  return row(value >= bound, 1 - value / bound, texts);
}

/** A target that is met up to the bound. */
function atMost(value: number, bound: number, texts: RowTexts): TargetRow {
  return row(value <= bound, value / bound - 1, texts);
}

function row(isHit: boolean, share: number, { what, target, measured }: RowTexts): TargetRow {
  return { what, target, measured, isHit, ...(isHit ? {} : { missedBy: share }) };
}

const WORKER_SCENARIO = "256x1 workers";
const WORKER_BOUNDS = { callsPerCpu: 0.85, share: 0.4 } as const;

/** CPU per call of two threads compared with one, and how evenly they share calls. */
function workerRows(
  find: (scenario: string, target: TargetName) => Summary | undefined,
): TargetRow[] {
  const [single, workers] = [find(WORKER_SCENARIO, "redis"), find(WORKER_SCENARIO, "redis-workers")];
  if (single === undefined || workers?.workerShare === undefined) return [];
  const ratio = single.median.cpuSecondsPer100k / workers.median.cpuSecondsPer100k;
  const share = workers.workerShare;
  return [
    atLeast(ratio, WORKER_BOUNDS.callsPerCpu, {
      what: "two threads, redis, 256 connections of 1: calls per CPU second",
      target: `at least ${WORKER_BOUNDS.callsPerCpu} times one thread`,
      measured: `${ratio.toFixed(2)} times`,
    }),
    atLeast(share, WORKER_BOUNDS.share, {
      what: "two threads, redis, 256 connections of 1: CPU of the less busy one",
      target: `at least ${WORKER_BOUNDS.share} of both`,
      measured: share.toFixed(2),
    }),
  ];
}
