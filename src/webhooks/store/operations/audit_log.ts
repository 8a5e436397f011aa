import type { AuditAction } from "../../resources/audit_entry.ts";
import type { AuditEntry, DeliveryState, FailureReason } from "../../model/records.ts";
import { listPage } from "./lists.ts";
import { integer, RECORDS, text } from "../rows.ts";
import { tallyMove } from "./tally.ts";
import { postgresOnly, type Row, run, sql, sqliteOnly, type Work } from "../work.ts";
import type { ListOptions, Page } from "../store.ts";

const ADD_ONE_OF_MANY = sqliteOnly(
  "INSERT INTO audit (id, at, actor, action, object, details) VALUES (?, ?, ?, ?, ?, ?)",
);
const ADD_MANY = postgresOnly(`
  INSERT INTO audit (id, at, actor, action, object, details)
  SELECT id, at, actor, action, object, details
  FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]),
    CAST(? AS TEXT[])) WITH ORDINALITY AS entry (id, at, actor, action, object, details, place)
  ORDER BY place`);

const INTERRUPT = sql((d) => `
  UPDATE attempt SET finished_at = ?, result = 'interrupted', error_kind = 'interrupted'
  WHERE result IS NULL AND ${d.among("delivery_seq")}`);

const FAIL = sql((d) => `
  UPDATE delivery SET state = 'failed', reason = ?, finished_at = ?, due_at = NULL, resend_at = NULL,
    claim_id = NULL, lease_until = NULL, claim_resend_at = NULL
  WHERE ${d.among("seq")}`);

const DROP_MANUAL = sql((d) => `
  UPDATE delivery SET resend_at = NULL, claim_id = NULL, lease_until = NULL, claim_resend_at = NULL
  WHERE ${d.among("seq")}`);

/** Entries of the audit log, newest first. */
export function listAudit(options: ListOptions): Work<Page<AuditEntry>> {
  return listPage("audit", options, RECORDS.audit);
}

/** Adds an entry to the audit log. */
export function* addAudit(entry: AuditEntry): Work<void> {
  yield* RECORDS.audit.insert(entry);
}

/** Closes the open attempts of deliveries. */
export function* interruptAttempts(deliverySeqs: readonly number[], now: number): Work<void> {
  if (deliverySeqs.length > 0) yield* run(INTERRUPT, now, deliverySeqs);
}

/** Fails open deliveries and revokes their claims, without an audit entry. The caller has locked their rows. */
export function* failUnaudited(
  deliveries: readonly Row[],
  reason: FailureReason,
  now: number,
): Work<void> {
  if (deliveries.length === 0) return;
  const seqs = deliveries.map((row) => integer(row, "seq"));
  yield* interruptAttempts(seqs, now);
  for (const [state, { length }] of Map.groupBy(deliveries, (row) => text(row, "state") as DeliveryState)) {
    yield* tallyMove(`delivery.${state}`, "delivery.failed", length);
  }
  yield* run(FAIL, reason, now, seqs);
}

/** Fails open deliveries, each with an audit entry, and revokes their claims. The caller has locked their rows. */
export function* failDeliveries(
  deliveries: readonly Row[],
  reason: FailureReason,
  { now, newId }: { readonly now: number; readonly newId: () => string },
): Work<void> {
  if (deliveries.length === 0) return;
  yield* failUnaudited(deliveries, reason, now);
  yield* addAudits(deliveries.map((row) => ({
    id: newId(),
    at: now,
    actor: "system",
    action: "delivery.failed" satisfies AuditAction,
    object: `delivery:${text(row, "id")}`,
    details: {
      endpointId: text(row, "endpoint_id"),
      eventId: text(row, "event_id"),
      event: text(row, "event"),
      reason,
    },
  })));
}

/** Cancels the resending of ended deliveries. */
export function* dropManualAttempts(deliveries: readonly Row[], now: number): Work<void> {
  if (deliveries.length === 0) return;
  const seqs = deliveries.map((row) => integer(row, "seq"));
  yield* interruptAttempts(seqs, now);
  yield* run(DROP_MANUAL, seqs);
}

function* addAudits(entries: readonly AuditEntry[]): Work<void> {
  yield* run(
    ADD_MANY,
    entries.map(({ id }) => id),
    entries.map(({ at }) => at),
    entries.map(({ actor }) => actor),
    entries.map(({ action }) => action),
    entries.map(({ object }) => object),
    entries.map(({ details }) => JSON.stringify(details)),
  );
  for (const entry of entries) yield* run(ADD_ONE_OF_MANY, ...valuesOf(entry));
}

function valuesOf({ id, at, actor, action, object, details }: AuditEntry) {
  return [id, at, actor, action, object, JSON.stringify(details)];
}
