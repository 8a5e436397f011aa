import { refuseHalfFilled } from "../half_filled.ts";
import { StoreError } from "../store.ts";
import type { SqliteConnection } from "./connection.ts";

/** Every table has `seq`, the order in which rows came, where lists are made of it. Times are milliseconds. */
const TABLES = `
CREATE TABLE endpoint (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  url TEXT NOT NULL,
  events TEXT NOT NULL,
  description TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  header_names TEXT NOT NULL,
  headers_key_id TEXT,
  headers_bytes BLOB,
  concurrency INTEGER NOT NULL,
  timeout_ms INTEGER,
  standard_webhooks INTEGER NOT NULL
) STRICT;
CREATE TABLE endpoint_secret (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  endpoint_id TEXT NOT NULL REFERENCES endpoint (id) ON DELETE CASCADE,
  key_id TEXT NOT NULL,
  bytes BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  active_at INTEGER NOT NULL
) STRICT;
CREATE INDEX endpoint_secret_endpoint ON endpoint_secret (endpoint_id);

CREATE TABLE workflow_trigger (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL UNIQUE,
  workflow TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  require_idempotency_key INTEGER NOT NULL,
  on_body_mismatch TEXT NOT NULL,
  rate_limit TEXT,
  on_limit_error TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE trigger_key (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  trigger_id TEXT NOT NULL REFERENCES workflow_trigger (id) ON DELETE CASCADE,
  hash TEXT NOT NULL UNIQUE,
  last_four TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX trigger_key_trigger ON trigger_key (trigger_id);
CREATE TABLE event_key (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  kinds TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  last_four TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE idempotency (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  accepted_at INTEGER NOT NULL,
  body_hash TEXT NOT NULL,
  result_id TEXT NOT NULL,
  deliveries INTEGER,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_accepted ON idempotency (accepted_at);

CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  body BLOB
) STRICT;
CREATE INDEX event_kind ON event (kind);
CREATE INDEX event_created ON event (created_at);
`;

/**
 * `next_at` is when a delivery may be claimed: absent while somebody has it and when nothing is to be done, so that
 * the index over it holds open work alone. `claim_resend_at` is the wish for an attempt by hand that the claim serves.
 */
const DELIVERIES = `
CREATE TABLE delivery (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  endpoint_id TEXT NOT NULL,
  event_id TEXT NOT NULL REFERENCES event (id),
  event TEXT NOT NULL,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  first_failure_at INTEGER,
  slot INTEGER NOT NULL,
  due_at INTEGER,
  resend_at INTEGER,
  finished_at INTEGER,
  reason TEXT,
  claim_id TEXT,
  lease_until INTEGER,
  claim_resend_at INTEGER,
  attempts INTEGER NOT NULL,
  next_at INTEGER GENERATED ALWAYS AS (
    CASE
      WHEN claim_id IS NOT NULL THEN NULL
      WHEN due_at IS NULL THEN resend_at
      WHEN resend_at IS NULL THEN due_at
      ELSE min(due_at, resend_at)
    END
  ) VIRTUAL
) STRICT;
CREATE INDEX delivery_next ON delivery (endpoint_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX delivery_failing ON delivery (endpoint_id, first_failure_at) WHERE state = 'retrying';
CREATE INDEX delivery_lease ON delivery (lease_until) WHERE claim_id IS NOT NULL;
CREATE UNIQUE INDEX delivery_claim ON delivery (claim_id) WHERE claim_id IS NOT NULL;
CREATE INDEX delivery_event_id ON delivery (event_id);
CREATE INDEX delivery_endpoint ON delivery (endpoint_id);
CREATE INDEX delivery_endpoint_state ON delivery (endpoint_id, state);
CREATE INDEX delivery_state ON delivery (state);
CREATE INDEX delivery_event ON delivery (event);
CREATE INDEX delivery_created ON delivery (created_at);
CREATE INDEX delivery_finished ON delivery (finished_at) WHERE finished_at IS NOT NULL;
CREATE TABLE attempt (
  delivery_seq INTEGER NOT NULL REFERENCES delivery (seq) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  url TEXT NOT NULL,
  manual INTEGER NOT NULL,
  result TEXT,
  status INTEGER,
  error_kind TEXT,
  error TEXT,
  response TEXT
) STRICT;
CREATE UNIQUE INDEX attempt_number ON attempt (delivery_seq, number);
`;

const EXECUTIONS = `
CREATE TABLE workflow_version (
  id TEXT NOT NULL PRIMARY KEY,
  workflow TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE TABLE execution (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  workflow TEXT NOT NULL,
  version_id TEXT NOT NULL REFERENCES workflow_version (id),
  trigger_id TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  deadline_at INTEGER,
  due_at INTEGER,
  step_attempts INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  claim_id TEXT,
  lease_until INTEGER,
  input TEXT NOT NULL,
  output TEXT,
  error TEXT,
  next_at INTEGER GENERATED ALWAYS AS (CASE WHEN claim_id IS NULL THEN due_at END) VIRTUAL,
  began INTEGER GENERATED ALWAYS AS (started_at IS NOT NULL) VIRTUAL
) STRICT;
CREATE INDEX execution_next ON execution (began, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX execution_lease ON execution (lease_until) WHERE claim_id IS NOT NULL;
CREATE UNIQUE INDEX execution_claim ON execution (claim_id) WHERE claim_id IS NOT NULL;
CREATE INDEX execution_status ON execution (status);
CREATE INDEX execution_created ON execution (created_at);
CREATE INDEX execution_finished ON execution (finished_at) WHERE finished_at IS NOT NULL;
CREATE TABLE execution_step (
  execution_seq INTEGER NOT NULL REFERENCES execution (seq) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  result TEXT,
  error TEXT
) STRICT;
CREATE UNIQUE INDEX execution_step_position ON execution_step (execution_seq, position);

CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  object TEXT NOT NULL,
  details TEXT NOT NULL
) STRICT;
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_action ON audit (action);
`;

// Written by those who change the rows that are counted.
const TALLIES = `
CREATE TABLE tally (name TEXT NOT NULL PRIMARY KEY, count INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`;

/**
 * `removal` holds what removals of endpoints, payloads and triggers have left to do, `swept` how far events were looked
 * through for old ones. `voids` is how often a claim was taken back since anything was written of the execution.
 */
const PORTIONS = `
CREATE TABLE removal (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  position INTEGER NOT NULL
) STRICT;
CREATE TABLE swept (name TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
ALTER TABLE execution ADD COLUMN voids INTEGER NOT NULL DEFAULT 0;
CREATE INDEX execution_voided ON execution (voids, next_at) WHERE voids > 0 AND next_at IS NOT NULL;
CREATE INDEX execution_version ON execution (version_id);
`;

// The older index stays: an older release that runs on the same file names it.
const QUEUES = `
CREATE INDEX execution_queue ON execution (workflow, trigger_id, began, next_at)
  WHERE next_at IS NOT NULL AND voids = 0;
`;

/** What makes each version of the schema out of the one before. What was released is never changed. */
export const MIGRATIONS: readonly string[] = [TABLES + DELIVERIES + EXECUTIONS + TALLIES, PORTIONS, QUEUES];

/** Brings the tables up to date; several processes may do so at once. Answers the version. */
export function migrate(connection: SqliteConnection, migrations: readonly string[] = MIGRATIONS): number {
  const newest = migrations.length;
  if (schemaVersion(connection) === newest) return newest;
  connection.transaction(() => {
    const version = schemaVersion(connection);
    refuseHalfFilled(connection.path, version);
    if (version > newest) {
      throw new StoreError(
        "failed",
        `Cannot open the store "${connection.path}": its schema has version ${version}, ` +
          `this release knows ${newest} and older; a newer release is needed`,
      );
    }
    for (const migration of migrations.slice(version)) connection.script(migration);
    // A number cannot be a parameter here; this one is the length of our own list.
    connection.script(`PRAGMA user_version = ${newest}`);
  });
  return newest;
}

/** The version of the tables as they are; 0 for none. */
export function schemaVersion(connection: SqliteConnection): number {
  return Number(connection.get("PRAGMA user_version")?.["user_version"]);
}
