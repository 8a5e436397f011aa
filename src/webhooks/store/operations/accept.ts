import { isLive } from "../../model/key_life.ts";
import type { AuditEntry, Execution, IdempotencyRow, WorkflowVersion } from "../../model/records.ts";
import {
  type AcceptOptions,
  addingKeys,
  firstOfEachKey,
  KEY_COLUMNS,
  keyColumns,
  keyOf,
  liveKey,
  UNLESS_KNOWN,
} from "./accept_keys.ts";
import { addEvents, type EventCall } from "./add_events.ts";
import { addAudit } from "./audit_log.ts";
import { CompoundStatement } from "../compound_statement.ts";
import { APART, listed } from "../list_operation.ts";
import { RECORDS, text } from "../rows.ts";
import { StoreError } from "../store.ts";
import { tallyInSqlite } from "./tally.ts";
import { ConflictError, get, run, storedText, type Work } from "../work.ts";

/** A request that was accepted, now or before. */
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
  /** The execution that it runs again. */
  readonly rerunOf?: string | undefined;
  /** The headers that its trigger passes, a JSON object. */
  readonly headers?: string | undefined;
  readonly input: string;
  /** Of the process that runs it immediately. */
  readonly claim?: { readonly id: string; readonly leaseUntil: number } | undefined;
}

/** Writes a new execution. */
export type WriteExecution = (execution: NewExecution) => Promise<Acceptance<Execution>>;

/** Stores the text of a workflow unless it exists. */
export function* saveWorkflowVersion({ id, workflow, text }: WorkflowVersion): Work<void> {
  yield* run(
    "INSERT INTO workflow_version (id, workflow, text) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
    ...[id, workflow, text],
  );
}

const FIND_KEYS = new CompoundStatement({
  given: { asked: { scope: "TEXT", key: "TEXT" } },
  parts: {
    found: {
      text: `SELECT idempotency.* FROM asked, idempotency
        WHERE idempotency.scope = asked.scope AND idempotency.key = asked.key`,
      from: "asked",
    },
  },
  answers: ["found"],
  columns: "*",
});

/** The row of a key that was accepted less than 24 hours before `now`. */
export const findIdempotency = listed<
  readonly [scope: string, key: string, now: number],
  IdempotencyRow | undefined
>({
  *work(calls) {
    const asked = new Map(calls.map(([scope, key]) => [keyOf({ scope, key }), { scope, key }]));
    const given = [...asked.values()].map((row, place) => ({ place, ...row }));
    const rows = (yield* FIND_KEYS.run({ asked: given }, true)).map((row) =>
      RECORDS.idempotencyKeys.read(row)
    );
    const found = new Map(rows.map((row) => [keyOf(row), row]));
    return calls.map(([scope, key, now]) => {
      const row = found.get(keyOf({ scope: storedText(scope), key: storedText(key) }));
      return row !== undefined && isLive(row.acceptedAt, now) ? row : undefined;
    });
  },
});

const STARTABLE = "asked JOIN kept ON kept.place = asked.place";
const ADD_EXECUTIONS = new CompoundStatement({
  given: {
    asked: {
      id: "TEXT",
      workflow: "TEXT",
      version_id: "TEXT",
      trigger_id: "TEXT",
      trigger_event: "TEXT",
      rerun_of: "TEXT",
      headers: "TEXT",
      input: "TEXT",
      claim_id: "TEXT",
      lease_until: "BIGINT",
      ...KEY_COLUMNS,
    },
  },
  parts: {
    // Locks the texts against removal.
    kept: {
      text: `SELECT asked.place, workflow_version.id FROM asked, workflow_version
        WHERE workflow_version.id = asked.version_id {}`,
      from: "asked",
      order: "ORDER BY workflow_version.id FOR SHARE OF workflow_version",
      isShared: true,
    },
    keyed: addingKeys("asked", {
      from: STARTABLE,
      deliveries: "CAST(NULL AS BIGINT)",
    }),
    added: {
      text: `
        INSERT INTO execution
          (id, workflow, version_id, trigger_id, trigger_event, rerun_of, headers, status, input, created_at, due_at,
           started_at, claim_id, lease_until, step_attempts, cancel_requested)
        SELECT asked.id, asked.workflow, asked.version_id, asked.trigger_id, asked.trigger_event, asked.rerun_of, asked.headers,
          CASE WHEN asked.claim_id IS NULL THEN 'queued' ELSE 'running' END, asked.input, asked.created_at, asked.created_at,
          CASE WHEN asked.claim_id IS NULL THEN NULL ELSE asked.created_at END, asked.claim_id, asked.lease_until, 0, 0
        FROM ${STARTABLE} LEFT JOIN keyed ON keyed.result_id = asked.id
        WHERE asked.key IS NULL OR keyed.result_id IS NOT NULL {}
        RETURNING id, status`,
      from: `${STARTABLE} LEFT JOIN keyed ON keyed.result_id = asked.id`,
      order: "ORDER BY asked.place",
      unless: UNLESS_KNOWN,
    },
    tallied: {
      text:
        "INSERT INTO tally (name, count) SELECT 'execution.' || status, count(*) FROM added GROUP BY status",
      from: "added",
      inSqlite: { as: undefined },
    },
  },
  answers: ["added"],
  columns: "id",
});

type ExecutionCall = readonly [execution: NewExecution, options: AcceptOptions];

/** Starts an execution, once for each key; its version must be stored unless the text is given. */
export const acceptExecution = listed<ExecutionCall, Acceptance<Execution>>({
  bytes: ({ input }) => input.length,
  work: (calls) => addExecutions(calls, true),
  apart: acceptApart,
});

/** `acceptExecution` with an entry of the audit log, unless it is a replay. */
export function* acceptAuditedExecution(
  execution: NewExecution,
  { audit, ...options }: AcceptOptions & { readonly audit: AuditEntry },
): Work<Acceptance<Execution>> {
  const acceptance = yield* acceptApart(execution, options);
  if (acceptance.kind === "new") yield* addAudit(audit);
  return acceptance;
}

/** Leaves the calls with a known key or an unknown text. */
function* addExecutions(
  calls: readonly ExecutionCall[],
  isAlone: boolean,
): Work<readonly (Acceptance<Execution> | typeof APART)[]> {
  const firsts = firstOfEachKey(calls);
  const asked = [...firsts].map(([execution, options], place) => ({
    ...keyColumns(options),
    place,
    id: execution.id,
    workflow: execution.workflow,
    version_id: execution.versionId,
    trigger_id: execution.triggerId,
    trigger_event: execution.event,
    rerun_of: execution.rerunOf,
    headers: execution.headers,
    input: execution.input,
    claim_id: execution.claim?.id,
    lease_until: execution.claim?.leaseUntil,
  }));
  const rows = yield* ADD_EXECUTIONS.run({ asked }, isAlone);
  const added = new Set(rows.map((row) => text(row, "id")));
  const results: (Acceptance<Execution> | typeof APART)[] = [];
  for (const call of calls) {
    const [execution, { now }] = call;
    if (!firsts.has(call) || !added.has(execution.id)) {
      results.push(APART);
      continue;
    }
    const value = firstExecution(execution, now);
    yield* tallyInSqlite(`execution.${value.status}`, 1);
    results.push({ kind: "new", value });
  }
  return results;
}

function* acceptApart(execution: NewExecution, options: AcceptOptions): Work<Acceptance<Execution>> {
  const { versionId, workflow, text: version } = execution;
  const known = yield* liveKey(options);
  if (known !== undefined) return { kind: "replayed", row: known };
  if (version !== undefined) yield* saveWorkflowVersion({ id: versionId, workflow, text: version });
  const [result] = yield* addExecutions([[execution, options]], false);
  if (result !== undefined && result !== APART) return result;
  if (version === undefined && (yield* get(FIND_VERSION, versionId)) === undefined) {
    throw new StoreError("failed", `Cannot start an execution of "${workflow}": its text is missing`);
  }
  // The key was added, or the text removed, in between.
  throw new ConflictError();
}

const FIND_VERSION = "SELECT id FROM workflow_version WHERE id = ?";
/** An execution as it is stored first. */
function firstExecution(
  { id, workflow, versionId, triggerId, event, rerunOf, headers, input, claim }: NewExecution,
  now: number,
): Execution {
  const times = { createdAt: now, dueAt: now, stepAttempts: 0, cancelRequested: false };
  const named = {
    ...(event === undefined ? {} : { event: storedText(event) }),
    ...(rerunOf === undefined ? {} : { rerunOf }),
    ...(headers === undefined ? {} : { headers: storedText(headers) }),
  };
  const what = { id, workflow, versionId, triggerId, ...named, input: storedText(input) };
  if (claim === undefined) return { ...what, status: "queued", ...times };
  const begun = { startedAt: now, claimId: claim.id, leaseUntil: claim.leaseUntil };
  return { ...what, status: "running", ...times, ...begun };
}

type AddedEvent = Acceptance<{ readonly endpointIds: readonly string[] }>;

/** Creates an event and its deliveries, once for each key; returns the endpoints that it goes to. */
export const acceptEvent = listed<EventCall, AddedEvent>({
  bytes: ({ body }) => body.length,
  *work(calls) {
    const added = yield* addEvents([...firstOfEachKey(calls)]);
    return calls.map((call) => {
      const endpointIds = added.get(call);
      return endpointIds === undefined ? APART : { kind: "new", value: { endpointIds } };
    });
  },
  *apart(event, options) {
    const known = yield* liveKey(options);
    if (known !== undefined) return { kind: "replayed", row: known };
    const call = [event, options] as const;
    const endpointIds = (yield* addEvents([call])).get(call);
    // The key was added in between.
    if (endpointIds === undefined) throw new ConflictError();
    return { kind: "new", value: { endpointIds } };
  },
});
