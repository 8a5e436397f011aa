import { wholeNumber } from "../../tests/harness/markdown_table.ts";
import type { BenchResults } from "../bench/measurements.ts";
import type { Summary } from "../bench/report.ts";
import { targetRows } from "../bench/target_rows.ts";
import { table, wrapped } from "./generated_page.ts";
import { COUNTERS_TEXT, METHOD_TEXT, PERFORMANCE_HEAD } from "./performance_texts.ts";

const LATEST = new URL("../bench/results/latest.json", import.meta.url);
/** The loads of the table, each with the target of its rows and what it is. */
const LOADS: readonly (readonly [scenario: string, target: string, what: string])[] = [
  ["8x32", "memory", "In memory"],
  ["8x32", "redis", "redis-server"],
  ["8x32", "echo", "grpc-js echo server, for comparison"],
  ["8x32 hot key", "memory", "In memory, one key"],
  ["8x32 hot key", "redis", "redis-server, one key"],
  ["8x32 caches", "cluster", "Cluster of three redis-servers"],
  ["8x32 caches", "mc", "memcached"],
  ["8x32 two caches", "two-caches", "Two redis-servers, two limits per call"],
  ["8x32 TLS", "memory-tls", "In memory, gRPC over TLS"],
  ["8x32 every feature", "features", "In memory, every feature on"],
  ["64x4", "memory", "In memory, 64 connections with 4 calls"],
  ["256x1", "memory", "In memory, 256 connections with 1 call"],
  ["8x1", "memory", "In memory, 8 connections with 1 call"],
  ["8x1", "redis", "redis-server, 8 connections with 1 call"],
  ["5,000/s", "redis", "redis-server, 5,000 calls/s at a constant rate"],
  ["8x32 h2load", "memory", "In memory, one key, h2load as generator"],
];
const LOAD_HEAD = ["Load", "Calls/s", "p50", "p99", "CPU per 100,000 calls"];
const BATCHES = [1, 4, 16];
const SHORT = LOADS.slice(0, 3);

/** The results of the last whole run of the bench. */
export async function latestResults(): Promise<BenchResults> {
  return JSON.parse(await Deno.readTextFile(LATEST));
}

/** docs/performance.md. */
export function performancePage(results: BenchResults): string {
  const { summaries, setup, machine, versions } = results;
  return [
    PERFORMANCE_HEAD,
    wrapped(
      `The rows are medians of ${setup.rounds} rounds of ${setup.seconds} s. Unless a row names another load, 8 ` +
        "connections have 32 calls in flight each and cycle through 10,000 keys.",
    ),
    loadTable(summaries, LOADS),
    "![Calls per second and p99 of the echo server and of Weir](../scripts/bench/results/throughput.svg)",
    "### Descriptors per call",
    "A call with several descriptors costs less than several calls with one descriptor. With counters in memory:",
    batchTable(summaries),
    ...quotaParts(results),
    ...webhookParts(results),
    "## Size",
    sizeTable(results),
    COUNTERS_TEXT,
    "## Targets",
    targetText(results),
    METHOD_TEXT,
    wrapped(
      `The results are from ${
        results.date.slice(0, 10)
      }, on ${machine.cpu} with ${machine.cores} cores, Linux ` +
        `${machine.kernel}, Deno ${versions.deno}, grpc-js ${versions.grpcJs}, redis-server ${versions.redis}, ` +
        `memcached ${versions.memcached}, PostgreSQL ${versions.postgres}, pg ${versions.pg}, gRPC engine ` +
        `\`${setup.engine}\`. [latest.json](../scripts/bench/results/latest.json) contains all results.`,
    ),
  ].join("\n\n");
}

/** The part of the README: three rows and the picture. */
export function speedPart({ summaries, machine }: BenchResults): string {
  return `${loadTable(summaries, SHORT)}

![Calls per second and p99 of the echo server and of Weir](scripts/bench/results/throughput.svg)

One process, 8 connections with 32 calls in flight each, 10,000 keys; server, redis-server and load generator
share ${machine.cores} cores. See [performance](docs/performance.md) for more loads, sizes and the method.`;
}

function loadTable(summaries: readonly Summary[], loads: typeof LOADS): string {
  const rows = loads.map(([scenario, target, what]) => {
    const { callsPerSecond, p50Ms, p99Ms, cpuSecondsPer100k } = summaryOf(summaries, scenario, target).median;
    return [what, wholeNumber(callsPerSecond), ms(p50Ms), ms(p99Ms), `${cpuSecondsPer100k.toFixed(2)} s`];
  });
  return table(LOAD_HEAD, rows);
}

function batchTable(summaries: readonly Summary[]): string {
  const rows = BATCHES.map((batch) => {
    const { callsPerSecond, p50Ms, p99Ms } = summaryOf(summaries, `batch ${batch}`, "memory").median;
    return [
      `${batch}`,
      wholeNumber(callsPerSecond),
      wholeNumber(callsPerSecond * batch),
      ms(p50Ms),
      ms(p99Ms),
    ];
  });
  return table(["Descriptors per call", "Calls/s", "Descriptors/s", "p50", "p99"], rows);
}

function quotaParts({ quotas }: BenchResults): string[] {
  if (quotas === undefined) return [];
  const { clients, buckets, perSecond, calls, ratio } = quotas;
  const part = (seconds: number) => `${(seconds * 100).toFixed(1)} %`;
  return [
    "### Quotas",
    wrapped(
      `[Quotas](quotas.md) take calls off Weir. ${
        wholeNumber(perSecond)
      } requests/s with the same rule in memory, as ` +
        `calls and as reports of ${clients} clients that have ${
          wholeNumber(buckets)
        } buckets each and report all of them each second (Envoy reports every five seconds):`,
    ),
    table(["Protocol", "CPU of one core", "As a part of calls"], [
      ["Calls of the rate limit service", part(calls), ""],
      ["Reports of quotas", part(quotas.quotas), ratio.toFixed(2)],
    ]),
  ];
}

function webhookParts(results: BenchResults): string[] {
  const { triggers, deliveries } = measured(results.webhooks, "webhooks");
  const { bareTransactions, stores } = measured(results.postgres, "postgres");
  const rows = stores.map((store) => [
    ...[store.store, wholeNumber(store.triggers), wholeNumber(store.deliveries)],
    ...[store.triggersToBare.toFixed(2), store.deliveriesToBare.toFixed(2)],
  ]);
  return [
    "## Webhooks",
    wrapped(
      `With a file store, one instance accepts ${
        wholeNumber(triggers)
      } trigger calls/s from 64 callers and ` +
        `delivers ${
          wholeNumber(deliveries)
        } events/s to 50 endpoints. Each trigger call is committed before its ` +
        "response is sent.",
    ),
    wrapped(
      "A separate load compares the stores with bare PostgreSQL transactions of two rows, which reach " +
        `${
          wholeNumber(bareTransactions)
        }/s. All instances share two cores and one database: three instances show ` +
        "the cost of sharing a store, not the benefit of more machines.",
    ),
    table(
      ["Store", "Triggers/s", "Deliveries/s", "Triggers per transaction", "Deliveries per transaction"],
      rows,
    ),
  ];
}

function sizeTable(results: BenchResults): string {
  const { summaries } = results;
  const [memory, redis] = (["memory", "redis"] as const).map((target) =>
    summaryOf(summaries, "8x32", target).median
  );
  const idle = measured(results.start, "start").idleMb;
  const all = measured(results.featureStart, "features").idleMb;
  const { residentMb, values } = measured(results.million, "million");
  const perCounter = Math.round((residentMb - idle) * 1e6 / values);
  const cpu = [memory, redis].map((median) => `${median?.cpuSecondsPer100k.toFixed(1)} s`);
  return table(["Resource", "Size"], [
    [
      "CPU",
      `${cpu[0]} of one core per 100,000 decisions in memory, ${
        cpu[1]
      } with redis-server. Decisions run on one thread, or on [several](operations.md#use-several-cores).`,
    ],
    ["Memory of an idle process", `${idle.toFixed(0)} MB; ${all.toFixed(0)} MB with every feature on.`],
    [
      "Memory of counters in the process",
      `About ${perCounter} bytes per counter; a process with ${wholeNumber(values)} counters uses ${
        residentMb.toFixed(0)
      } MB. Allow 25 % more: the amount depends on the last garbage collection. \`MEMORY_MAX_KEYS\` limits the counters.`,
    ],
    [
      "Memory of counters in redis-server",
      "About 130 bytes per counter with a key of 40 characters, 180 with 80, 280 with 160.",
    ],
    [
      "Connections to the key-value cache",
      "`KV_POOL_SIZE` per process, in a cluster per process and node; the same number again for a per-second cache.",
    ],
    ["Connections to PostgreSQL", "Up to `WEBHOOK_STORE_POOL_SIZE` per instance."],
    [
      "File descriptors",
      "About 75 per idle process, 10 more with a key-value cache, and one per open connection.",
    ],
    [
      "Disk of the webhook store",
      "About 1.1 kB per delivered event of 250 bytes to one endpoint, kept for `WEBHOOK_RETENTION`.",
    ],
  ]);
}

function targetText(results: BenchResults): string {
  const rows = targetRows(results);
  const missed = rows.filter(({ isHit }) => !isHit).map(({ what }) => what);
  const state = missed.length === 0
    ? `The run meets all ${rows.length} targets.`
    : `The run misses ${missed.length} of ${rows.length} targets: ${missed.join("; ")}.`;
  return `${
    wrapped(
      `Most targets compare Weir with the echo server in the same run, so that they apply to other machines. ${state}`,
    )
  }\n\n${
    table(
      ["Load", "Target", "Measured", "Met"],
      rows.map((
        { what, target, measured, isHit, missedBy },
      ) => [what, target, measured, metText(isHit, missedBy)]),
    )
  }`;
}

function metText(isHit: boolean, missedBy: number | undefined): string {
  if (isHit) return "yes";
  return missedBy === undefined ? "no" : `no, by ${(missedBy * 100).toFixed(0)} %`;
}

function summaryOf(summaries: readonly Summary[], scenario: string, target: string): Summary {
  const found = summaries.find((summary) => summary.scenario === scenario && summary.target === target);
  return measured(found, `${scenario} on ${target}`);
}

function measured<T>(value: T | undefined, what: string): T {
  if (value !== undefined) return value;
  throw new Error(`Cannot write performance.md: ${what} is missing in ${LATEST.pathname}`);
}

function ms(value: number): string {
  return `${value.toFixed(2)} ms`;
}
