import { text, whole } from "../rows.ts";
import { all, get, postgresOnly, run, type Work } from "../work.ts";

/** How many rows become few at once. */
const PORTION = 10_000;

/** Fewer are left as they are: each folding writes, too. */
const WORTH_IT = 500;

const COUNT = postgresOnly(
  `SELECT count(*) AS count FROM (SELECT 1 FROM tally LIMIT ${WORTH_IT}) AS first`,
);

// Others who fold have other rows. Those who sum see all of it or nothing, as it is one transaction; in one statement
// CockroachDB would not have it, which takes no two changes of one table there.
const TAKE = postgresOnly(`
  WITH portion AS MATERIALIZED (SELECT seq FROM tally ORDER BY seq LIMIT ${PORTION} FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM tally WHERE seq IN (SELECT seq FROM portion) RETURNING name, count)
  SELECT name, CAST(sum(count) AS BIGINT) AS count FROM gone GROUP BY name HAVING sum(count) <> 0 ORDER BY name`);

const ADD = postgresOnly(`
  INSERT INTO tally (name, count)
  SELECT name, count FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[])) AS sums (name, count)`);

/** Makes few rows of many. */
export function* foldTally(): Work<void> {
  const sums = yield* all(TAKE);
  if (sums.length === 0) return;
  yield* run(ADD, sums.map((row) => text(row, "name")), sums.map((row) => whole(row, "count")));
}

/** Whether the tally has so many rows that it is worth folding. */
export function* isTallyLong(): Work<boolean> {
  return whole(yield* get(COUNT), "count") === WORTH_IT;
}
