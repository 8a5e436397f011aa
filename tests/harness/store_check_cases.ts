/** How many rows a store has after `fillLikeService`. */
export const COUNTS = {
  attempt: 1,
  audit: 4,
  delivery: 2,
  endpoint: 1,
  endpoint_secret: 1,
  event: 2,
  event_key: 1,
  execution: 1,
  execution_step: 0,
  idempotency: 1,
  trigger_key: 1,
  trigger_secret: 1,
  workflow_trigger: 2,
  workflow_version: 1,
};

/** What may be wrong with such a store, by the statement that does it, and how a check names it. */
export const DAMAGES: Readonly<Record<string, string>> = {
  "UPDATE delivery SET claim_id = NULL, lease_until = NULL, due_at = NULL":
    "an open delivery is due or claimed",
  "UPDATE delivery SET state = 'acknowledged'": "an ended delivery is not due",
  "UPDATE delivery SET reason = 'exhausted'": "a delivery has a reason if and only if it failed",
  "UPDATE delivery SET lease_until = NULL": "a claim of a delivery has a lease",
  "UPDATE event SET body = NULL": "an open delivery has a payload",
  "UPDATE delivery SET endpoint_id = 'none'": "an open delivery has an endpoint",
  "UPDATE delivery SET claim_id = NULL, lease_until = NULL": "a running attempt has a claim",
  "UPDATE execution SET due_at = NULL": "an open execution is due or claimed",
  "UPDATE execution SET status = 'failed'": "an ended execution is neither due nor claimed",
  "UPDATE execution SET claim_id = 'c'": "a claim of an execution has a lease",
  "DELETE FROM endpoint_secret": "an endpoint has a secret",
  "UPDATE tally SET count = count + 1": "the tallies match the number of rows",
  "DELETE FROM tally": "the tallies match the number of rows",
};
