import type {
  Attempt,
  AuditEntry,
  Delivery,
  Endpoint,
  EndpointSecret,
  EventKey,
  Execution,
  ExecutionStep,
  IdempotencyRow,
  Sealed,
  StoredKey,
  Trigger,
  WebhookEvent,
} from "../model/records.ts";
import type { Row } from "./work.ts";

/** A number of a row. */
export function whole(row: Row | undefined, column: string): number {
  const value = row?.[column];
  if (typeof value !== "number") throw unreadable(column, value);
  return value;
}

/** A text of a row. */
export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== "string") throw unreadable(column, value);
  return value;
}

/** A number of a row, or nothing. */
export function wholeOrNone(row: Row, column: string): number | undefined {
  return row[column] === null ? undefined : whole(row, column);
}

/** A text of a row, or nothing. */
export function textOrNone(row: Row, column: string): string | undefined {
  return row[column] === null ? undefined : text(row, column);
}

/** An event, with its body unless that was erased. */
export function eventOf(row: Row): WebhookEvent {
  return defined({
    id: text(row, "id"),
    kind: text(row, "kind"),
    body: row["body"] === null ? undefined : bytes(row, "body"),
    createdAt: whole(row, "created_at"),
  });
}

/** A delivery. */
export function deliveryOf(row: Row): Delivery {
  return defined({
    id: text(row, "id"),
    endpointId: text(row, "endpoint_id"),
    eventId: text(row, "event_id"),
    event: text(row, "event"),
    state: text(row, "state") as Delivery["state"],
    createdAt: whole(row, "created_at"),
    firstFailureAt: wholeOrNone(row, "first_failure_at"),
    slot: whole(row, "slot"),
    dueAt: wholeOrNone(row, "due_at"),
    resendAt: wholeOrNone(row, "resend_at"),
    finishedAt: wholeOrNone(row, "finished_at"),
    reason: textOrNone(row, "reason") as Delivery["reason"],
    claimId: textOrNone(row, "claim_id"),
    leaseUntil: wholeOrNone(row, "lease_until"),
  });
}

/** An attempt. */
export function attemptOf(row: Row): Attempt {
  return defined({
    number: whole(row, "number"),
    startedAt: whole(row, "started_at"),
    finishedAt: wholeOrNone(row, "finished_at"),
    url: text(row, "url"),
    manual: flag(row, "manual"),
    result: textOrNone(row, "result") as Attempt["result"],
    status: wholeOrNone(row, "status"),
    errorKind: textOrNone(row, "error_kind") as Attempt["errorKind"],
    error: textOrNone(row, "error"),
    response: textOrNone(row, "response"),
  });
}

/** An endpoint, whose secrets stand in rows of their own. */
export function endpointOf(row: Row, secrets: readonly Row[]): Endpoint {
  return defined({
    id: text(row, "id"),
    url: text(row, "url"),
    events: JSON.parse(text(row, "events")) as string[],
    description: text(row, "description"),
    enabled: flag(row, "enabled"),
    createdAt: whole(row, "created_at"),
    updatedAt: whole(row, "updated_at"),
    headerNames: JSON.parse(text(row, "header_names")) as string[],
    headers: row["headers_bytes"] === null ? undefined : sealed(row, "headers_key_id", "headers_bytes"),
    concurrency: whole(row, "concurrency"),
    timeoutMs: wholeOrNone(row, "timeout_ms"),
    standardWebhooks: flag(row, "standard_webhooks"),
    secrets: secrets.map(secretOf),
  });
}

/** A trigger, whose keys stand in rows of their own. */
export function triggerOf(row: Row, keys: readonly Row[]): Trigger {
  const limit = textOrNone(row, "rate_limit");
  return defined({
    id: text(row, "id"),
    name: text(row, "name"),
    workflow: text(row, "workflow"),
    enabled: flag(row, "enabled"),
    requireIdempotencyKey: flag(row, "require_idempotency_key"),
    onBodyMismatch: text(row, "on_body_mismatch") as Trigger["onBodyMismatch"],
    limit: limit === undefined ? undefined : JSON.parse(limit) as Trigger["limit"],
    onLimitError: text(row, "on_limit_error") as Trigger["onLimitError"],
    createdAt: whole(row, "created_at"),
    updatedAt: whole(row, "updated_at"),
    keys: keys.map(keyOf),
  });
}

/** An event key. */
export function eventKeyOf(row: Row): EventKey {
  return { ...keyOf(row), name: text(row, "name"), kinds: JSON.parse(text(row, "kinds")) as string[] };
}

/** An answer that is given again. */
export function idempotencyOf(row: Row): IdempotencyRow {
  return defined({
    scope: text(row, "scope"),
    key: text(row, "key"),
    acceptedAt: whole(row, "accepted_at"),
    bodyHash: text(row, "body_hash"),
    resultId: text(row, "result_id"),
    deliveries: wholeOrNone(row, "deliveries"),
  });
}

/** An execution. */
export function executionOf(row: Row): Execution {
  return defined({
    id: text(row, "id"),
    workflow: text(row, "workflow"),
    versionId: text(row, "version_id"),
    triggerId: text(row, "trigger_id"),
    status: text(row, "status") as Execution["status"],
    input: text(row, "input"),
    createdAt: whole(row, "created_at"),
    startedAt: wholeOrNone(row, "started_at"),
    finishedAt: wholeOrNone(row, "finished_at"),
    deadlineAt: wholeOrNone(row, "deadline_at"),
    dueAt: wholeOrNone(row, "due_at"),
    stepAttempts: whole(row, "step_attempts"),
    cancelRequested: flag(row, "cancel_requested"),
    output: textOrNone(row, "output"),
    error: textOrNone(row, "error"),
    claimId: textOrNone(row, "claim_id"),
    leaseUntil: wholeOrNone(row, "lease_until"),
  });
}

/** A step that is over. */
export function stepOf(row: Row): ExecutionStep {
  return defined({
    index: whole(row, "position"),
    name: text(row, "name"),
    kind: text(row, "kind") as ExecutionStep["kind"],
    status: text(row, "status") as ExecutionStep["status"],
    attempts: whole(row, "attempts"),
    startedAt: whole(row, "started_at"),
    finishedAt: whole(row, "finished_at"),
    result: textOrNone(row, "result"),
    error: textOrNone(row, "error"),
  });
}

/** An entry of the audit log. */
export function auditOf(row: Row): AuditEntry {
  return {
    id: text(row, "id"),
    at: whole(row, "at"),
    actor: text(row, "actor"),
    action: text(row, "action"),
    object: text(row, "object"),
    details: JSON.parse(text(row, "details")) as AuditEntry["details"],
  };
}

function keyOf(row: Row): StoredKey {
  return {
    id: text(row, "id"),
    hash: text(row, "hash"),
    lastFour: text(row, "last_four"),
    createdAt: whole(row, "created_at"),
  };
}

function secretOf(row: Row): EndpointSecret {
  return {
    id: text(row, "id"),
    sealed: sealed(row, "key_id", "bytes"),
    createdAt: whole(row, "created_at"),
    activeAt: whole(row, "active_at"),
  };
}

function sealed(row: Row, keyId: string, column: string): Sealed {
  return { keyId: text(row, keyId), bytes: bytes(row, column) };
}

function bytes(row: Row, column: string): Uint8Array {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw unreadable(column, value);
  return value;
}

function flag(row: Row, column: string): boolean {
  return whole(row, column) !== 0;
}

/** Without the fields that are absent, so that a record read is equal to the one that was written. */
function defined<T extends object>(record: T): T {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as T;
}

function unreadable(column: string, value: Row[string] | undefined): Error {
  const kind = value === null ? "nothing" : typeof value;
  return new TypeError(`Cannot read the column "${column}" of the store: it holds ${kind}`);
}
