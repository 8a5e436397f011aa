import type {
  AuditEntry,
  Execution,
  IdempotencyRow,
  NewEvent,
  WorkflowVersion,
} from "../../model/records.ts";
import type { ReportedEvent } from "../../model/endpoint_events.ts";
import { isLive, KEY_LIVES_MS } from "../../model/key_life.ts";
import { addAudit } from "./audit_log.ts";
import { RECORDS, text } from "../rows.ts";
import { type NewDelivery, subscribedTo, SUBSCRIPTIONS } from "./subscriptions.ts";
import { tally } from "./tally.ts";
import {
  all,
  alone,
  ConflictError,
  get,
  postgresOnly,
  run,
  sql,
  sqliteOnly,
  storedText,
  type Work,
} from "../work.ts";
import { StoreError } from "../store.ts";

/** The key under which a request is accepted once. */
export interface NewIdempotency {
  readonly scope: string;
  readonly key: string;
  readonly bodyHash: string;
}

/** Whether a request was accepted, or had been. */
export type Acceptance<T> =
  | { readonly kind: "new"; readonly value: T }
  /** The key was accepted less than 24 hours before; nothing was changed. */
  | { readonly kind: "replayed"; readonly row: IdempotencyRow };

/** An execution to start; it is due immediately unless it begins with a claim. */
export interface NewExecution {
  readonly id: string;
  readonly workflow: string;
  readonly versionId: string;
  /** The text of that version; absent where the store has it. */
  readonly text?: string | undefined;
  readonly triggerId: string;
  readonly event?: string | undefined;
  readonly input: string;
  /** Of the process that runs it immediately. */
  readonly claim?: { readonly id: string; readonly leaseUntil: number } | undefined;
}

/** Writes a new execution. */
export type WriteExecution = (execution: NewExecution) => Promise<Acceptance<Execution>>;

/** When something is accepted, and under which key. */
export interface AcceptOptions {
  readonly now: number;
  readonly idempotency?: NewIdempotency | undefined;
}

// Replaces a key that is 24 hours old; the second of two concurrent requests changes nothing.
const ADD_KEY = `
  INSERT INTO idempotency (scope, key, accepted_at, body_hash, result_id) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (scope, key) DO UPDATE SET accepted_at = excluded.accepted_at, body_hash = excluded.body_hash,
    result_id = excluded.result_id, deliveries = NULL
  WHERE idempotency.accepted_at <= ?`;

const ADD_DELIVERY = sqliteOnly(`
  INSERT INTO delivery (id, endpoint_id, event_id, event, state, created_at, slot, due_at, attempts)
  VALUES (?, ?, ?, ?, 'attempting', ?, 0, ?, 0)`);

// Waits for endpoints that are being removed, and omits them; a later removal finds the delivery.
const ADD_DELIVERIES = postgresOnly(`
  INSERT INTO delivery (id, endpoint_id, event_id, event, state, created_at, slot, due_at, attempts)
  SELECT subscribed.id, endpoint.id, CAST(? AS TEXT), CAST(? AS TEXT), 'attempting', CAST(? AS BIGINT), 0,
    CAST(? AS BIGINT), 0
  FROM unnest(CAST(? AS TEXT[]), CAST(? AS TEXT[])) AS subscribed (id, endpoint_id)
    JOIN endpoint ON endpoint.id = subscribed.endpoint_id
  ORDER BY endpoint.seq FOR KEY SHARE OF endpoint
  RETURNING endpoint_id`);

// Locks the text against removal.
const ADD_EXECUTION = sql((d) =>
  `INSERT INTO execution
     (id, workflow, version_id, trigger_id, trigger_event, status, input, created_at, due_at, started_at, claim_id,
      lease_until, step_attempts, cancel_requested)
   SELECT CAST(? AS TEXT), CAST(? AS TEXT), id, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
     CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS BIGINT), 0, 0
   FROM workflow_version WHERE id = ? ${d.share()}`
);

/** Stores the text of a workflow unless it exists. */
export function* saveWorkflowVersion({ id, workflow, text }: WorkflowVersion): Work<void> {
  yield* run(
    "INSERT INTO workflow_version (id, workflow, text) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
    ...[id, workflow, text],
  );
}

/** The row of a key that was accepted less than 24 hours before `now`. */
export function findIdempotency(scope: string, key: string, now: number): Work<IdempotencyRow | undefined> {
  return alone(liveKey(scope, key, now));
}

function* liveKey(scope: string, key: string, now: number): Work<IdempotencyRow | undefined> {
  const row = yield* get("SELECT * FROM idempotency WHERE scope = ? AND key = ?", scope, key);
  const found = row && RECORDS.idempotencyKeys.read(row);
  return found && isLive(found.acceptedAt, now) ? found : undefined;
}

/** Starts an execution, once for each key; its version must be stored unless the text is given. */
export function acceptExecution(
  execution: NewExecution,
  options: AcceptOptions,
): Work<Acceptance<Execution>> {
  return acceptOnce(options, execution.id, () => addExecution(execution, options.now));
}

/** `acceptExecution` with an entry of the audit log, unless it is a replay. */
export function* acceptAuditedExecution(
  execution: NewExecution,
  { audit, ...options }: AcceptOptions & { readonly audit: AuditEntry },
): Work<Acceptance<Execution>> {
  const acceptance = yield* acceptExecution(execution, options);
  if (acceptance.kind === "new") yield* addAudit(audit);
  return acceptance;
}

/** Creates an event and its deliveries, once for each key; returns the endpoints that it goes to. */
export function acceptEvent(
  event: NewEvent,
  options: AcceptOptions,
): Work<Acceptance<{ readonly endpointIds: readonly string[] }>> {
  return acceptOnce(options, event.id, function* () {
    const endpointIds = yield* addEvent(event, options.now);
    return { value: { endpointIds }, deliveries: endpointIds.length };
  });
}

/** Writes an event and a delivery for every endpoint that it goes to; returns these endpoints. */
export function* addEvent(event: NewEvent, now: number): Work<readonly string[]> {
  return yield* insertEvent(event, subscribedTo(event, yield* all(SUBSCRIPTIONS)), now);
}

function* insertEvent(
  { id, kind, body }: NewEvent,
  subscribed: readonly NewDelivery[],
  now: number,
): Work<readonly string[]> {
  yield* run("INSERT INTO event (id, kind, body, created_at) VALUES (?, ?, ?, ?)", id, kind, body, now);
  if (subscribed.length === 0) return [];
  const [ids, endpoints] = [subscribed.map((one) => one.id), subscribed.map((one) => one.endpointId)];
  // Each database skips the statement of the other.
  const rows = yield* all(ADD_DELIVERIES, id, kind, now, now, ids, endpoints);
  const endpointIds = rows.map((row) => text(row, "endpoint_id"));
  for (const delivery of subscribed) {
    const added = yield* run(ADD_DELIVERY, delivery.id, delivery.endpointId, id, kind, now, now);
    if (added > 0) endpointIds.push(delivery.endpointId);
  }
  yield* tally("delivery.attempting", endpointIds.length);
  return endpointIds;
}

/** Writes those operational events that an endpoint subscribes to, with their deliveries; returns these endpoints. */
export function* addOperationalEvents(
  events: readonly ReportedEvent[],
  now: number,
): Work<readonly string[]> {
  if (events.length === 0) return [];
  const endpoints = yield* all(SUBSCRIPTIONS);
  const endpointIds = new Set<string>();
  for (const event of events) {
    const subscribed = subscribedTo(event, endpoints)
      .filter(({ endpointId }) => endpointId !== event.exceptEndpointId);
    if (subscribed.length === 0) continue;
    for (const id of yield* insertEvent(event, subscribed, now)) endpointIds.add(id);
  }
  return [...endpointIds];
}

/** In one round trip when the text of the workflow is stored already, as it is most often. */
function* addExecution(execution: NewExecution, now: number): Work<{ readonly value: Execution }> {
  const { versionId, workflow, text: version } = execution;
  const value = firstExecution(execution, now);
  let added = yield* insertExecution(value);
  if (added === 0 && version !== undefined) {
    yield* saveWorkflowVersion({ id: versionId, workflow, text: version });
    added = yield* insertExecution(value);
    // It was removed in between, with its last execution.
    if (added === 0) throw new ConflictError();
  }
  if (added === 0) {
    throw new StoreError("failed", `Cannot start an execution of "${workflow}": its text is missing`);
  }
  yield* tally(`execution.${value.status}`, 1);
  return { value };
}

function insertExecution(execution: Execution): Work<number> {
  const { id, workflow, triggerId, event, status, input, versionId } = execution;
  const { createdAt, dueAt, startedAt, claimId, leaseUntil } = execution;
  return run(
    ADD_EXECUTION,
    ...[id, workflow, triggerId, event, status, input, createdAt, dueAt, startedAt, claimId, leaseUntil],
    versionId,
  );
}

/** An execution as it is stored first. */
export function firstExecution(
  { id, workflow, versionId, triggerId, event, input, claim }: NewExecution,
  now: number,
): Execution {
  const times = { createdAt: now, dueAt: now, stepAttempts: 0, cancelRequested: false };
  const named = event === undefined ? {} : { event: storedText(event) };
  const what = { id, workflow, versionId, triggerId, ...named, input: storedText(input) };
  if (claim === undefined) return { ...what, status: "queued", ...times };
  const begun = { startedAt: now, claimId: claim.id, leaseUntil: claim.leaseUntil };
  return { ...what, status: "running", ...times, ...begun };
}

const COUNT_DELIVERIES = "UPDATE idempotency SET deliveries = ? WHERE scope = ? AND key = ?";

/** Of two concurrent requests with the same key, the second waits for the first and is a replay. */
function* acceptOnce<T>(
  { now, idempotency }: AcceptOptions,
  resultId: string,
  create: () => Work<{ readonly value: T; readonly deliveries?: number }>,
): Work<Acceptance<T>> {
  if (idempotency === undefined) return { kind: "new", value: (yield* create()).value };
  const { scope, key, bodyHash } = idempotency;
  if ((yield* run(ADD_KEY, scope, key, now, bodyHash, resultId, now - KEY_LIVES_MS)) === 0) {
    const row = yield* liveKey(scope, key, now);
    // It was removed in between.
    if (row === undefined) throw new ConflictError();
    return { kind: "replayed", row };
  }
  const { value, deliveries } = yield* create();
  if (deliveries !== undefined) yield* run(COUNT_DELIVERIES, deliveries, scope, key);
  return { kind: "new", value };
}
