import type { BenchResults } from "./measurements.ts";
import { postgresText } from "./postgres_table.ts";
import { markdownTable, wholeNumber } from "../../tests/harness/markdown_table.ts";
import { type Summary, summaryTable } from "./report.ts";

const BATCHES = [1, 4, 16];

/** The table of all targets, as Markdown. */
export function targetTable({ targets }: Pick<BenchResults, "targets">): string {
  return markdownTable(
    ["what", "target", "measured", ""],
    targets.map(({ what, target, measured, isHit }) => [what, target, measured, isHit ? "hit" : "missed"]),
  );
}

/** The table of batch sizes, as Markdown; nothing when none was measured. */
export function batchTable(summaries: readonly Summary[]): string {
  const rows = BATCHES.flatMap((batch) => {
    const summary = summaries.find(({ scenario }) => scenario === `batch ${batch}`);
    if (summary === undefined) return [];
    const { callsPerSecond, p50Ms, p99Ms } = summary.median;
    const rates = [wholeNumber(callsPerSecond), wholeNumber(callsPerSecond * batch)];
    return [[`${batch}`, ...rates, p50Ms.toFixed(2), p99Ms.toFixed(2)]];
  });
  if (rows.length === 0) return "";
  return markdownTable(["descriptors a call", "calls/s", "descriptors/s", "p50 ms", "p99 ms"], rows);
}

/** What the bench prints. */
export function reportText(results: BenchResults): string {
  const missed = results.targets.filter(({ isHit }) => !isHit).length;
  return [
    summaryTable(results.summaries),
    batchTable(results.summaries),
    targetTable(results),
    results.postgres === undefined ? "" : postgresText(results.postgres),
    `${results.targets.length - missed} targets hit, ${missed} missed`,
    results.checks.map((check) => `- ${check}`).join("\n"),
  ].filter((part) => part !== "").join("\n\n");
}

/** The README with the section between the markers of the bench replaced. */
export function withSpeedSection(readme: string, results: BenchResults): string {
  const [open, close] = ["<!-- bench -->", "<!-- /bench -->"];
  const start = readme.indexOf(open);
  const end = readme.indexOf(close);
  if (start < 0 || end < start) throw new Error(`Cannot write README: it must have "${open}" and "${close}"`);
  return `${readme.slice(0, start + open.length)}\n\n${speedSection(results)}\n\n${readme.slice(end)}`;
}

function speedSection(results: BenchResults): string {
  const { machine, versions, setup } = results;
  return `The yardstick is a bare echo server by grpc-js, which answers every call with its own bytes and decides
nothing. It runs beside Weir and is measured in turn with it; one process each, medians of ${setup.rounds} rounds of
${setup.seconds} s, every answer checked, and as many hits in the counters at the end as were answered.

![Calls a second and p99 of the echo server, of Weir in memory and of Weir with redis-server](scripts/bench/results/throughput.svg)

${targetTable(results)}

Several descriptors in one call, in memory:

${batchTable(results.summaries)}
${results.postgres === undefined ? "" : `\n${postgresText(results.postgres)}\n`}
Measured on ${
    results.date.slice(0, 10)
  } by \`${results.commandLine}\` with the engine \`${setup.engine}\`: ${machine.cpu},
${machine.cores} cores shared by server, redis-server and load; Linux ${machine.kernel}, Deno ${versions.deno}, grpc-js
${versions.grpcJs}, redis-server ${versions.redis}, memcached ${versions.memcached},
PostgreSQL ${versions.postgres}, pg ${versions.pg}. All metrics are in
[scripts/bench/results/latest.json](scripts/bench/results/latest.json), and
[scripts/bench/README.md](scripts/bench/README.md) says how each is taken.`;
}
