import type { Execution, IdempotencyRow } from "./records.ts";
import { matchesKind } from "./event.ts";
import { isLive } from "./idempotency.ts";
import type { SqliteConnection } from "./sqlite_store_connection.ts";
import { executionOf, idempotencyOf, text } from "./sqlite_store_rows.ts";
import { tally } from "./sqlite_store_tally.ts";
import type { Acceptance, NewEvent, NewExecution, NewIdempotency } from "./store.ts";

/** When something is accepted, and under which key. */
export interface AcceptOptions {
  readonly now: number;
  readonly idempotency?: NewIdempotency | undefined;
}

/** The row of a key, if it is younger than 24 hours. */
export function findIdempotency(
  connection: SqliteConnection,
  scope: string,
  key: string,
  now: number,
): IdempotencyRow | undefined {
  const row = connection.get("SELECT * FROM idempotency WHERE scope = ? AND key = ?", scope, key);
  const found = row === undefined ? undefined : idempotencyOf(row);
  return found !== undefined && isLive(found.acceptedAt, now) ? found : undefined;
}

/** Creates an execution, once for each key. */
export function acceptExecution(
  connection: SqliteConnection,
  execution: NewExecution,
  options: AcceptOptions,
): Acceptance<Execution> {
  return acceptOnce(connection, options, execution.id, () => {
    const rows = connection.all(
      `INSERT INTO execution
         (id, workflow, version_id, trigger_id, status, input, created_at, due_at, step_attempts, cancel_requested)
       VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, 0, 0) RETURNING *`,
      execution.id,
      execution.workflow,
      execution.versionId,
      execution.triggerId,
      execution.input,
      options.now,
      options.now,
    );
    tally(connection, "execution.queued", 1);
    return { value: rows.map(executionOf)[0] as Execution };
  });
}

/** Creates an event and its deliveries, once for each key. */
export function acceptEvent(
  connection: SqliteConnection,
  event: NewEvent,
  options: AcceptOptions & { readonly newId: () => string },
): Acceptance<{ readonly endpointIds: readonly string[] }> {
  return acceptOnce(connection, options, event.id, () => {
    const endpointIds = addEvent(connection, event, options);
    return { value: { endpointIds }, deliveries: endpointIds.length };
  });
}

/** Writes an event, and a delivery for every endpoint that names its kind; answers which. */
export function addEvent(
  connection: SqliteConnection,
  event: NewEvent,
  { now, newId }: { readonly now: number; readonly newId: () => string },
): readonly string[] {
  connection.run(
    "INSERT INTO event (id, kind, body, created_at) VALUES (?, ?, ?, ?)",
    event.id,
    event.kind,
    event.body,
    now,
  );
  const endpointIds = connection.all("SELECT id, events FROM endpoint ORDER BY seq")
    .filter((row) => matchesKind(patternsOf(text(row, "events")), event.kind))
    .map((row) => text(row, "id"));
  for (const endpointId of endpointIds) {
    connection.run(
      `INSERT INTO delivery (id, endpoint_id, event_id, event, state, created_at, slot, due_at, attempts)
       VALUES (?, ?, ?, ?, 'attempting', ?, 0, ?, 0)`,
      newId(),
      endpointId,
      event.id,
      event.kind,
      now,
      now,
    );
  }
  tally(connection, "delivery.attempting", endpointIds.length);
  return endpointIds;
}

function acceptOnce<T>(
  connection: SqliteConnection,
  { now, idempotency }: AcceptOptions,
  resultId: string,
  create: () => { readonly value: T; readonly deliveries?: number },
): Acceptance<T> {
  if (idempotency === undefined) return { kind: "new", value: create().value };
  const { scope, key, bodyHash } = idempotency;
  const row = findIdempotency(connection, scope, key, now);
  if (row !== undefined) return { kind: "replayed", row };
  const { value, deliveries } = create();
  // In the place of one that is 24 hours old, if there is one.
  connection.run(
    `INSERT OR REPLACE INTO idempotency (scope, key, accepted_at, body_hash, result_id, deliveries)
     VALUES (?, ?, ?, ?, ?, ?)`,
    scope,
    key,
    now,
    bodyHash,
    resultId,
    deliveries,
  );
  return { kind: "new", value };
}

/** Lists of patterns, by their JSON; they are few, and asked for with each event. */
const PATTERNS = new Map<string, readonly string[]>();
const MAX_PATTERNS = 1_000;

function patternsOf(json: string): readonly string[] {
  let patterns = PATTERNS.get(json);
  if (patterns === undefined) {
    patterns = JSON.parse(json) as string[];
    if (PATTERNS.size >= MAX_PATTERNS) PATTERNS.clear();
    PATTERNS.set(json, patterns);
  }
  return patterns;
}
