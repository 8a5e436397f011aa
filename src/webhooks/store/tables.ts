import type { Column, Table } from "./table.ts";
import { UPKEEP_TABLES } from "./upkeep_tables.ts";
import type { Sql } from "./work.ts";

const ID: Column = { type: "text", isUnique: true };
const DELIVERY_SEQ: Column = { type: "number", references: "delivery (seq) ON DELETE CASCADE" };
const REPLAY_SEQ: Column = { type: "number", references: "replay (seq) ON DELETE CASCADE" };
const UNCLAIMED_DUE_AT = "CASE WHEN claim_id IS NULL THEN due_at END";
const ABSENT_TIMES = "WHEN claim_id IS NOT NULL THEN NULL WHEN due_at IS NULL THEN resend_at " +
  "WHEN resend_at IS NULL THEN due_at";
const NEXT_AT: Sql = {
  sqlite: `CASE ${ABSENT_TIMES} ELSE min(due_at, resend_at) END`,
  postgres: `CASE ${ABSENT_TIMES} WHEN due_at < resend_at THEN due_at ELSE resend_at END`,
};

/**
 * All tables, each after those that it references. Times are in milliseconds. What a released version has is never
 * changed; a new version only adds.
 */
export const TABLES: Readonly<Record<string, Table>> = {
  endpoint: {
    columns: {
      seq: "sequence",
      id: ID,
      url: "text",
      events: "json",
      description: "text",
      enabled: "flag",
      created_at: "number",
      updated_at: "number",
      header_names: "json",
      headers_key_id: "text?",
      headers_bytes: "bytes?",
      concurrency: "number",
      timeout_ms: "number?",
      standard_webhooks: "flag",
      disabled_at: { type: "number?", since: 4 },
      disabled_reason: { type: "text?", since: 4 },
      data_filter: { type: "text?", since: 4 },
      rotation_overlap_ms: { type: "number?", since: 5 },
      on_gone: { type: "text?", since: 5 },
      format: { type: "text?", since: 5 },
      template: { type: "text?", since: 5 },
      rate_limit: { type: "json?", since: 5 },
      // Of its bucket; with the time of its next attempt if it is empty.
      rate_state: { type: "text?", since: 5 },
      rate_next_at: { type: "number?", since: 5 },
      // Without secrets; the encrypted columns have all of it.
      authentication: { type: "json?", since: 5 },
      authentication_key_id: { type: "text?", since: 5 },
      authentication_bytes: { type: "bytes?", since: 5 },
      tls: { type: "json?", since: 5 },
      tls_key_id: { type: "text?", since: 5 },
      tls_bytes: { type: "bytes?", since: 5 },
    },
  },
  // The failures of an endpoint since its last success; no row for none. Apart from the endpoint, which claims lock.
  endpoint_health: {
    columns: {
      endpoint_id: { type: "text", references: "endpoint (id) ON DELETE CASCADE" },
      failures: "number",
      failing_since: "number?",
      last_failure_at: "number?",
      failing_ms: "number",
      is_reported: "flag",
    },
    key: ["endpoint_id"],
    sqliteKey: "clustered",
    since: 4,
  },
  // The attempts of an endpoint in ten minutes.
  endpoint_attempts: {
    columns: {
      endpoint_id: { type: "text", references: "endpoint (id) ON DELETE CASCADE" },
      at: "number",
      succeeded: "number",
      failed: "number",
      answered: "number",
      total_ms: "number",
      max_ms: "number",
    },
    key: ["endpoint_id", "at"],
    sqliteKey: "clustered",
    indexes: { endpoint_attempts_at: { on: ["at"] } },
    since: 4,
  },
  endpoint_secret: {
    columns: {
      seq: "sequence",
      id: ID,
      endpoint_id: { type: "text", references: "endpoint (id) ON DELETE CASCADE" },
      key_id: "text",
      bytes: "bytes",
      created_at: "number",
      active_at: "number",
    },
    indexes: { endpoint_secret_endpoint: { on: ["endpoint_id"] } },
  },
  workflow_trigger: {
    columns: {
      seq: "sequence",
      id: ID,
      name: ID,
      workflow: "text",
      enabled: "flag",
      require_idempotency_key: "flag",
      on_body_mismatch: "text",
      rate_limit: "text?",
      on_limit_error: "text",
      created_at: "number",
      updated_at: "number",
      // How calls are signed; NULL where they show a key.
      verify: { type: "json?", since: 4 },
      call_condition: { type: "text?", since: 5 },
      challenge: { type: "text?", since: 5 },
      // SHA-256 of the token that the provider shows, in lower-case hex.
      challenge_token_hash: { type: "text?", since: 5 },
      probe: { type: "flag?", since: 5 },
      accept: { type: "json?", since: 5 },
      answer: { type: "number?", since: 5 },
      pass_headers: { type: "json?", since: 5 },
    },
  },
  trigger_key: {
    columns: {
      seq: "sequence",
      id: ID,
      trigger_id: { type: "text", references: "workflow_trigger (id) ON DELETE CASCADE" },
      hash: ID,
      last_four: "text",
      created_at: "number",
    },
    indexes: { trigger_key_trigger: { on: ["trigger_id"] } },
  },
  trigger_secret: {
    columns: {
      seq: "sequence",
      id: ID,
      trigger_id: { type: "text", references: "workflow_trigger (id) ON DELETE CASCADE" },
      key_id: "text",
      bytes: "bytes",
      created_at: "number",
    },
    indexes: { trigger_secret_trigger: { on: ["trigger_id"] } },
    since: 4,
  },
  event_key: {
    columns: {
      seq: "sequence",
      id: ID,
      name: "text",
      kinds: "json",
      hash: ID,
      last_four: "text",
      created_at: "number",
    },
  },
  idempotency: {
    columns: {
      scope: "text",
      key: "text",
      accepted_at: "number",
      body_hash: "text",
      result_id: "text",
      deliveries: "number?",
    },
    key: ["scope", "key"],
    sqliteKey: "clustered",
    indexes: { idempotency_accepted: { on: ["accepted_at"] } },
  },
  event: {
    columns: { seq: "sequence", id: ID, kind: "text", created_at: "number", body: "bytes?" },
    indexes: {
      event_kind: { on: ["kind"], isOrdered: true },
      event_created: { on: ["created_at"], isOrdered: true },
    },
  },
  delivery: {
    columns: {
      seq: "sequence",
      id: ID,
      endpoint_id: "text",
      event_id: { type: "text", references: "event (id)" },
      event: "text",
      state: "text",
      created_at: "number",
      first_failure_at: "number?",
      slot: "number",
      due_at: "number?",
      resend_at: "number?",
      finished_at: "number?",
      reason: "text?",
      claim_id: "text?",
      lease_until: "number?",
      // The `resend_at` that the claim serves.
      claim_resend_at: "number?",
      attempts: "number",
      waited_ms: { type: "number?", since: 5 },
      // Of its row in `delivery_body`; '' before it could be rendered. NULL if it is sent with the body of its event.
      form: { type: "text?", since: 5 },
      // The replay that created it, or retried it last.
      replay_id: { type: "text?", since: 5 },
      // When it may be claimed; NULL while it is claimed or ended, so that the index has open deliveries only.
      next_at: { type: "number?", generated: NEXT_AT },
    },
    indexes: {
      delivery_next: { on: ["endpoint_id", "next_at"], isOrdered: true, where: "next_at IS NOT NULL" },
      delivery_failing: { on: ["endpoint_id", "first_failure_at"], where: "state = 'retrying'" },
      // Limits the concurrency of an endpoint over all processes.
      delivery_claimed: { on: ["endpoint_id"], where: "claim_id IS NOT NULL", only: "postgres" },
      delivery_lease: { on: ["lease_until"], where: "claim_id IS NOT NULL" },
      delivery_claim: { on: ["claim_id"], where: "claim_id IS NOT NULL", isUnique: true },
      delivery_event_id: { on: ["event_id"], isOrdered: true },
      delivery_endpoint: { on: ["endpoint_id"], isOrdered: true },
      delivery_endpoint_state: { on: ["endpoint_id", "state"], isOrdered: true },
      delivery_state: { on: ["state"], isOrdered: true },
      delivery_event: { on: ["event"], isOrdered: true },
      delivery_created: { on: ["created_at"], isOrdered: true },
      delivery_finished: { on: ["finished_at"], where: "finished_at IS NOT NULL" },
      delivery_replay: { on: ["replay_id"], isOrdered: true, where: "replay_id IS NOT NULL", since: 5 },
    },
  },
  replay: {
    columns: {
      seq: "sequence",
      id: ID,
      source: "text",
      state: "text",
      reason: "text?",
      count: "number?",
      done: "number",
      endpoint_id: "text?",
      event_id: "text?",
      events: "json?",
      data_filter: "text?",
      delivery_state: "text?",
      since: "number?",
      until: "number",
      created_at: "number",
      finished_at: "number?",
    },
    since: 5,
  },
  // What replays have left to do: an endpoint, and the time and number of the last row that was searched.
  replay_part: {
    columns: {
      replay_seq: REPLAY_SEQ,
      endpoint_id: "text",
      at: "number",
      position: "number",
      next_at: "number",
    },
    key: ["replay_seq", "endpoint_id"],
    sqliteKey: "clustered",
    since: 5,
  },
  // Bodies in other forms than those of their events, apart since lists read whole deliveries.
  delivery_body: {
    columns: { delivery_seq: DELIVERY_SEQ, body: "bytes" },
    key: ["delivery_seq"],
    sqliteKey: "clustered",
    since: 5,
  },
  attempt: {
    columns: {
      delivery_seq: DELIVERY_SEQ,
      number: "number",
      started_at: "number",
      finished_at: "number?",
      url: "text",
      manual: "flag",
      result: "text?",
      status: "number?",
      error_kind: "text?",
      error: "text?",
      response: "text?",
      // The headers that differ from attempt to attempt and are no credentials.
      headers: { type: "json?", since: 5 },
    },
    key: ["delivery_seq", "number"],
    sqliteKey: { index: "attempt_number" },
  },
  workflow_version: { columns: { id: "text", workflow: "text", text: "text" }, key: ["id"] },
  execution: {
    columns: {
      seq: "sequence",
      id: ID,
      workflow: "text",
      version_id: { type: "text", references: "workflow_version (id)" },
      trigger_id: "text",
      status: "text",
      created_at: "number",
      started_at: "number?",
      finished_at: "number?",
      deadline_at: "number?",
      due_at: "number?",
      step_attempts: "number",
      cancel_requested: "flag",
      claim_id: "text?",
      lease_until: "number?",
      input: "text",
      output: "text?",
      error: "text?",
      next_at: { type: "number?", generated: { sqlite: UNCLAIMED_DUE_AT, postgres: UNCLAIMED_DUE_AT } },
      began: {
        type: "flag?",
        generated: {
          sqlite: "started_at IS NOT NULL",
          postgres: "CASE WHEN started_at IS NULL THEN 0 ELSE 1 END",
        },
      },
      // How often a claim expired since anything was written of the execution.
      voids: { type: "number", default: 0, since: 2 },
      // The kind of event that a signed call named.
      trigger_event: { type: "text?", since: 4 },
      // The execution that it runs again.
      rerun_of: { type: "text?", since: 5 },
      // The headers of its call that the trigger passes, a JSON object.
      headers: { type: "text?", since: 5 },
    },
    indexes: {
      // Unused since version 3, but an older release on the same file names it.
      execution_next: { on: ["began", "next_at"], isOrdered: true, where: "next_at IS NOT NULL" },
      execution_lease: { on: ["lease_until"], where: "claim_id IS NOT NULL" },
      execution_claim: { on: ["claim_id"], where: "claim_id IS NOT NULL", isUnique: true },
      execution_status: { on: ["status"], isOrdered: true },
      execution_created: { on: ["created_at"], isOrdered: true },
      execution_finished: { on: ["finished_at"], where: "finished_at IS NOT NULL" },
      execution_voided: {
        on: ["voids", "next_at"],
        isOrdered: true,
        where: "voids > 0 AND next_at IS NOT NULL",
        since: 2,
      },
      execution_version: { on: ["version_id"], since: 2 },
      execution_queue: {
        on: ["workflow", "trigger_id", "began", "next_at"],
        isOrdered: true,
        where: "next_at IS NOT NULL AND voids = 0",
        since: 3,
      },
    },
  },
  execution_step: {
    columns: {
      execution_seq: { type: "number", references: "execution (seq) ON DELETE CASCADE" },
      position: "number",
      name: "text",
      kind: "text",
      status: "text",
      attempts: "number",
      started_at: "number",
      finished_at: "number",
      result: "text?",
      error: "text?",
    },
    key: ["execution_seq", "position"],
    sqliteKey: { index: "execution_step_position" },
  },
  ...UPKEEP_TABLES,
};
