import type { BenchResults } from "./measurements.ts";
import { algorithmsText } from "./algorithm_rows.ts";
import { markdownTable, wholeNumber } from "../../tests/harness/markdown_table.ts";
import { type Summary, summaryTable } from "./report.ts";
import type { PostgresOutcome } from "./postgres.ts";

const BATCHES = [1, 4, 16];

/** The table of all targets, as Markdown. */
function targetTable({ targets }: Pick<BenchResults, "targets">): string {
  return markdownTable(
    ["what", "target", "measured", ""],
    targets.map((
      { what, target, measured, isHit, missedBy },
    ) => [what, target, measured, isHit ? "hit" : missedText(missedBy)]),
  );
}

function missedText(missedBy: number | undefined): string {
  return missedBy === undefined ? "missed" : `missed by ${(missedBy * 100).toFixed(0)} %`;
}

/** The table of batch sizes, as Markdown; nothing when none was measured. */
function batchTable(summaries: readonly Summary[]): string {
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

/** The report of a run, as Markdown. */
export function reportText(results: BenchResults): string {
  const missed = results.targets.filter(({ isHit }) => !isHit).length;
  return [
    summaryTable(results.summaries),
    batchTable(results.summaries),
    targetTable(results),
    results.algorithms === undefined ? "" : algorithmsText(results.algorithms),
    results.postgres === undefined ? "" : postgresText(results.postgres),
    `${results.targets.length - missed} targets hit, ${missed} missed`,
    results.checks.map((check) => `- ${check}`).join("\n"),
  ].filter((part) => part !== "").join("\n\n");
}

const HEAD = ["store", "triggers/s", "to bare", "deliveries/s", "to bare"];

/** The results of PostgreSQL, which has no targets, as Markdown. */
function postgresText({ bareTransactions, connections, stores }: PostgresOutcome): string {
  const rows = stores.map(({ store, triggers, triggersToBare, deliveries, deliveriesToBare }) => [
    ...[store, wholeNumber(triggers), triggersToBare.toFixed(2)],
    ...[wholeNumber(deliveries), deliveriesToBare.toFixed(2)],
  ]);
  return `The webhook service on PostgreSQL, next to ${
    wholeNumber(bareTransactions)
  } bare transactions/s of two rows \
each by the
same client with ${connections} connections, and next to a file:

${markdownTable(HEAD, rows)}`;
}
