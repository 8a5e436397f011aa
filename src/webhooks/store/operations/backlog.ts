import { RESERVED_PREFIXES } from "../../model/event.ts";
import type { NewEvent } from "../../model/records.ts";
import { subscribedTo, SUBSCRIPTIONS } from "./subscriptions.ts";
import { failDeliveries } from "./audit_log.ts";
import { PORTION } from "./removals.ts";
import { integer, text } from "../rows.ts";
import type { RemovalOptions } from "../store.ts";
import { all, get, sql, type Work } from "../work.ts";

/** Numbers that bound the growth of the backlogs without counting. */
interface BacklogPosition {
  /** The number of the newest delivery of all endpoints: they are numbered as they are created. */
  readonly latest: number;
  readonly endpointIds: readonly string[];
}

/** The newest delivery and all endpoints. */
export function* backlogPosition(): Work<BacklogPosition> {
  const latest = yield* get("SELECT coalesce(max(seq), 0) AS seq FROM delivery");
  const endpoints = yield* all("SELECT id FROM endpoint ORDER BY seq");
  return { latest: integer(latest, "seq"), endpointIds: endpoints.map((row) => text(row, "id")) };
}

// This index has the open deliveries that are not claimed, and the resent ones.
const COUNT_OPEN = sql((d) =>
  `SELECT count(*) AS count FROM (
     SELECT 1 AS one FROM delivery ${d.by("delivery_next")}
     WHERE endpoint_id = ? AND next_at IS NOT NULL LIMIT ?) AS open`
);

/** The number of open deliveries of an endpoint, without those in flight; counts up to `max`. */
export function* countBacklog(endpointId: string, max: number): Work<number> {
  return integer(yield* get(COUNT_OPEN, endpointId, max), "count");
}

/** Those of the given endpoints that an event would go to. */
export function* endpointsAmong(
  event: NewEvent,
  endpointIds: ReadonlySet<string>,
): Work<readonly string[]> {
  const subscribed = subscribedTo(event, yield* all(SUBSCRIPTIONS));
  return subscribed.map(({ endpointId }) => endpointId).filter((id) => endpointIds.has(id));
}

const IS_RESERVED = RESERVED_PREFIXES
  .map((prefix) => `substr(event, 1, ${prefix.length}) = '${prefix}'`)
  .join(" OR ");
const RESERVED_SINCE = sql((d) =>
  `SELECT * FROM delivery ${d.by("delivery_endpoint_state")}
   WHERE endpoint_id = ? AND state IN ('attempting', 'retrying') AND seq > ? AND claim_id IS NULL
     AND resend_at IS NULL AND (${IS_RESERVED})
   LIMIT ? ${d.lockFree()}`
);

/** For deliveries to an endpoint with a full backlog. */
interface FullBacklogOptions extends RemovalOptions {
  readonly endpointId: string;
  /** The newest delivery when the backlog was found to be full. */
  readonly after: number;
}

/**
 * Fails open deliveries of events of the service itself, which are not refused, that were created since the backlog of
 * their endpoint is full, with or without an attempt; returns how many. Call it until there are none.
 */
export function* failOverBacklog({ endpointId, after, ...options }: FullBacklogOptions): Work<number> {
  const rows = yield* all(RESERVED_SINCE, endpointId, after, options.max ?? PORTION);
  yield* failDeliveries(rows, "backlog_full", options);
  return rows.length;
}
