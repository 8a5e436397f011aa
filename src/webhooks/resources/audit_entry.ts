import { type Fields, ID, type Resource } from "./field.ts";

/** Every action of the audit log, and when it is recorded. */
export const AUDIT_ACTIONS = {
  "deliveries.paused": "`POST /deliveries/pause` paused all deliveries",
  "deliveries.resumed": "`POST /deliveries/resume` resumed all deliveries",
  "delivery.acknowledged": "A requested attempt of a failed delivery succeeded",
  "delivery.failed":
    "A delivery failed permanently; `details.reason` is the reason. For all deliveries of a deleted endpoint there is one entry; `details.count` is their number",
  "delivery.resend_asked": "`POST /deliveries/<id>/resend` requested another attempt",
  "endpoint.changed": "`PATCH /endpoints/<id>` changed fields; `details.fields` names them",
  "endpoint.checked": "`POST /endpoints/<id>/test` sent a test event; `details.ok` is the result",
  "endpoint.created": "`POST /endpoints` created an endpoint",
  "endpoint.deleted": "`DELETE /endpoints/<id>` deleted an endpoint",
  "endpoint.disabled": "The attempts of an endpoint only failed for `WEBHOOK_DISABLE_AFTER`",
  "endpoint.recovered": "`POST /endpoints/<id>/recover` reopened failed deliveries",
  "endpoint.rotated": "`POST /endpoints/<id>/rotate` added a signing secret",
  "event.body_mismatch": "`POST /events` repeated an `Idempotency-Key` with a different body",
  "event.payload_erased": "`DELETE /events/<id>/payload` erased a payload",
  "event_key.created": "`POST /event-keys` created an event key",
  "event_key.deleted": "`DELETE /event-keys/<id>` deleted an event key",
  "execution.cancel_asked": "`POST /executions/<id>/cancel` requested a cancellation",
  "execution.rerun":
    "`POST /executions/<id>/rerun` ran an execution again; `details.executionId` is the new one",
  "replay.cancelled": "`POST /replays/<id>/cancel` cancelled a replay",
  "replay.started":
    "`POST /endpoints/<id>/replay` or `POST /deliveries/retry` started a replay; `details` has its filters and the number of matches",
  "store.rekeyed": "`weir store rekey` encrypted secrets again; `details.keyId` is the key",
  "trigger.body_mismatch":
    "A trigger call repeated an `Idempotency-Key` with a different body; `details.rejected` is `true` if it was rejected",
  "trigger.called": "`POST /triggers/<id>/call` started an execution; `details.executionId` is its id",
  "trigger.changed": "`PATCH /triggers/<id>` changed fields; `details.fields` names them",
  "trigger.created": "`POST /triggers` created a trigger",
  "trigger.deleted": "`DELETE /triggers/<id>` deleted a trigger",
  "trigger.key_revoked": "`DELETE /triggers/<id>/keys/<keyId>` revoked a key",
  "trigger.rotated": "`POST /triggers/<id>/rotate` added a key or a secret",
  "trigger.secret_revoked": "`DELETE /triggers/<id>/secrets/<secretId>` revoked a secret",
} as const;

/** An action of the audit log. */
export type AuditAction = keyof typeof AUDIT_ACTIONS;

/** The fields of an entry of the audit log. */
export const AUDIT_FIELDS = {
  id: ID,
  actor: {
    type: "text",
    words: "`admin`, `system`, `trigger:<name>` or `event-key:<name>`.",
    label: "Actor",
  },
  action: {
    type: "text",
    words: "The action.",
    examples: Object.keys(AUDIT_ACTIONS),
    label: "Action",
  },
  object: { type: "text", words: "The record, such as `delivery:<id>`.", label: "Object" },
  details: { type: "object", words: "Details; never a secret.", label: "Details" },
  at: { type: "time", words: "Time of the action.", label: "When" },
} as const satisfies Fields;

/** Entries of the audit log. */
export const AUDIT: Resource = {
  list: "audit",
  noun: "entry",
  items: "entries of the audit log",
  fields: AUDIT_FIELDS,
  filters: {
    event: {
      type: "kind",
      words: "Only entries with this action, such as `delivery.failed`.",
      flag: "action",
      value: "ACTION",
      label: "Action",
      hint: "such as delivery.failed",
    },
  },
  columns: ["at", "actor", "action", "object", "details"],
};
