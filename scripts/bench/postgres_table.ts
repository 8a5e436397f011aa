import type { PostgresOutcome } from "./postgres.ts";
import { markdownTable, wholeNumber } from "../../tests/harness/markdown_table.ts";

const HEAD = ["store", "triggers/s", "to bare", "deliveries/s", "to bare"];

/** The results of PostgreSQL, which has no targets, as Markdown. */
export function postgresText({ bareTransactions, connections, stores }: PostgresOutcome): string {
  const rows = stores.map(({ store, triggers, triggersToBare, deliveries, deliveriesToBare }) => [
    ...[store, wholeNumber(triggers), triggersToBare.toFixed(2)],
    ...[wholeNumber(deliveries), deliveriesToBare.toFixed(2)],
  ]);
  return `The webhook service on PostgreSQL, beside ${
    wholeNumber(bareTransactions)
  } bare transactions/s of two rows \
each by the
same client with ${connections} connections, and beside a file:

${markdownTable(HEAD, rows)}`;
}
