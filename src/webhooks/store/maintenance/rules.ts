import { text, whole } from "../rows.ts";
import { all, type Work } from "../work.ts";

/** Sentences of our own, each with what selects the rows that break it. */
const RULES: Readonly<Record<string, string>> = {
  "an open delivery is due or claimed":
    "SELECT id FROM delivery WHERE state IN ('attempting', 'retrying') AND due_at IS NULL AND claim_id IS NULL",
  "a delivery that has ended is not due":
    "SELECT id FROM delivery WHERE state IN ('acknowledged', 'failed') AND (due_at IS NOT NULL OR finished_at IS NULL)",
  "a delivery that failed has a reason, and no other has":
    "SELECT id FROM delivery WHERE (state = 'failed') <> (reason IS NOT NULL)",
  "a claim of a delivery has a lease":
    "SELECT id FROM delivery WHERE (claim_id IS NULL) <> (lease_until IS NULL)",
  "an open delivery has a payload": `
    SELECT delivery.id FROM delivery JOIN event ON event.id = event_id
    WHERE body IS NULL AND due_at IS NOT NULL AND event_id NOT IN (REMOVED)`,
  "an open delivery has an endpoint": `
    SELECT id FROM delivery
    WHERE due_at IS NOT NULL AND endpoint_id NOT IN (SELECT id FROM endpoint) AND endpoint_id NOT IN (REMOVED)`,
  "an attempt that runs belongs to a claim":
    "SELECT id FROM delivery JOIN attempt ON delivery_seq = seq WHERE result IS NULL AND claim_id IS NULL",
  "an open execution is due or claimed":
    "SELECT id FROM execution WHERE status IN ('queued', 'running') AND due_at IS NULL AND claim_id IS NULL",
  "an execution that has ended is neither due nor claimed":
    "SELECT id FROM execution WHERE status NOT IN ('queued', 'running') AND (due_at IS NOT NULL OR claim_id IS NOT NULL OR finished_at IS NULL)",
  "a claim of an execution has a lease":
    "SELECT id FROM execution WHERE (claim_id IS NULL) <> (lease_until IS NULL)",
  "an endpoint has a secret":
    "SELECT id FROM endpoint WHERE id NOT IN (SELECT endpoint_id FROM endpoint_secret)",
  "the tallies are right": `
    SELECT coalesce(tallied.name, counted.name) AS id
    FROM (SELECT name, sum(count) AS count FROM tally GROUP BY name) AS tallied FULL JOIN (
      SELECT 'delivery.' || state AS name, count(*) AS count FROM delivery GROUP BY state
      UNION ALL SELECT 'execution.' || status, count(*) FROM execution GROUP BY status
    ) AS counted ON counted.name = tallied.name
    WHERE coalesce(tallied.count, 0) <> coalesce(counted.count, 0)`,
};

/** How many of the rows that break a rule are named. */
const NAMED = 5;

// What belongs to something that was removed ends in portions, since version 2.
const NOTHING_REMOVED = "SELECT id FROM event WHERE id IS NULL";
const REMOVED = "SELECT id FROM removal";

/** What our own rules say of the rows of a store, in either database. */
export function* ruleProblems(version: number): Work<readonly string[]> {
  const removed = version === 1 ? NOTHING_REMOVED : REMOVED;
  const problems: string[] = [];
  for (const [rule, sql] of Object.entries(RULES)) {
    const broken = yield* all(
      `SELECT id, count(*) OVER () AS count FROM (${
        sql.replace("REMOVED", removed)
      }) AS broken ORDER BY id LIMIT ?`,
      NAMED,
    );
    const [first] = broken;
    if (first === undefined) continue;
    const count = whole(first, "count");
    const named = broken.map((row) => text(row, "id")).join(", ");
    problems.push(`not so: ${rule} (${count}: ${named}${count > NAMED ? ", …" : ""})`);
  }
  return problems;
}
