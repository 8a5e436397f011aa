import type { Logger } from "../../../base/log.ts";
import type { Execution, ExecutionStep, WorkflowVersion } from "../../model/records.ts";
import { claiming } from "../claiming.ts";
import { failWithoutText, stepsOf } from "./executions.ts";
import { integer, RECORDS, text } from "../rows.ts";
import { tallyMove } from "./tally.ts";
import { all, alone, get, postgresOnly, type Row, sql, type Work } from "../work.ts";

/** An execution to run; the claim has started it unless it had begun before. */
export interface ClaimedExecution {
  readonly execution: Execution;
  /** The queue that it waited in. */
  readonly queue: ExecutionQueue;
  readonly claimId: string;
  readonly version: WorkflowVersion;
  /** Its completed steps, in order. */
  readonly steps: readonly ExecutionStep[];
  /** Of the input and the results of its steps, at most `MAX_COUNTED_BYTES`. */
  readonly bytes: number;
}

/** Executions of one trigger of a workflow at one stage, which are scheduled as one queue. */
export interface ExecutionQueue {
  readonly workflow: string;
  readonly triggerId: string;
  /** `voided` are those with expired claims. */
  readonly stage: "new" | "begun" | "voided";
  /** The number of claims that expired since anything was written of each: the process ended during its next step. */
  readonly expiredClaims: number;
}

/** A queue with unclaimed executions that are due. */
export interface DueQueue extends ExecutionQueue {
  /** When the first was due. */
  readonly dueAt: number;
}

/** The part of a queue that may be claimed. */
export interface QueueClaim extends ExecutionQueue {
  readonly max: number;
  readonly maxBytes: number;
}

/** An execution counts for at most this many bytes, so that each fits into an idle service. */
export const MAX_COUNTED_BYTES = 8 * 1_048_576;

/** Executions with this many expired claims are suspects: they are claimed after all others, one at a time. */
export const SUSPECT_EXPIRED_CLAIMS = 3;

// Goes from queue to queue by the index, without reading all that waits in them. Those with expired claims are few.
const DUE_QUEUES = sql((d) =>
  `WITH RECURSIVE one (seq) AS (
     SELECT (
       SELECT seq FROM execution ${d.by("execution_queue")} WHERE next_at IS NOT NULL AND voids = 0
       ORDER BY workflow, trigger_id, began, next_at, seq LIMIT 1
     )
     UNION ALL
     SELECT (
       SELECT later.seq FROM execution AS later ${d.by("execution_queue")}
       WHERE later.next_at IS NOT NULL AND later.voids = 0
         AND (later.workflow, later.trigger_id, later.began)
           > (execution.workflow, execution.trigger_id, execution.began)
       ORDER BY later.workflow, later.trigger_id, later.began, later.next_at, later.seq LIMIT 1
     ) FROM one ${d.crossJoin} execution ON execution.seq = one.seq
   )
   SELECT workflow, trigger_id, CASE WHEN began = 0 THEN 'new' ELSE 'begun' END AS stage, next_at, voids
   FROM one ${d.crossJoin} execution ON execution.seq = one.seq WHERE next_at <= ?
   UNION ALL
   SELECT workflow, trigger_id, 'voided', min(next_at), voids
   FROM execution ${d.by("execution_voided")} WHERE voids > 0 AND next_at <= ?
   GROUP BY workflow, trigger_id, voids`
);

/** The queues with executions that are due. */
export function* dueExecutions(now: number): Work<readonly DueQueue[]> {
  const rows = yield* alone(all(DUE_QUEUES, now, now));
  return rows.map((row) => ({
    workflow: text(row, "workflow"),
    triggerId: text(row, "trigger_id"),
    stage: text(row, "stage") as DueQueue["stage"],
    dueAt: integer(row, "next_at"),
    expiredClaims: integer(row, "voids"),
  }));
}

/** Read first, to choose the executions that fit without reading their texts. */
const CANDIDATE = `seq, status, octet_length(input) + (
    SELECT coalesce(sum(octet_length(result)), 0) FROM execution_step WHERE execution_seq = execution.seq
  ) AS bytes`;
// With a limit that is a mere parameter SQLite would prepare the statement again each time.
const OF_QUEUE = sql((d) =>
  `SELECT ${CANDIDATE} FROM execution ${d.by("execution_queue")}
   WHERE workflow = ? AND trigger_id = ? AND began = ? AND next_at <= ? AND voids = 0
   ORDER BY next_at, seq LIMIT ? + 0 ${d.lockFree()}`
);
const VOIDED = sql((d) =>
  `SELECT ${CANDIDATE} FROM execution ${d.by("execution_voided")}
   WHERE voids > 0 AND voids = ? AND workflow = ? AND trigger_id = ? AND next_at <= ?
   ORDER BY next_at, seq LIMIT ? + 0 ${d.lockFree()}`
);
// With the claim, so that the timeout counts from then on, whatever happens.
const CLAIM = claiming("execution", ", status = 'running', started_at = coalesce(started_at, ?)");

/** A request for claims of executions; each claim lasts until `leaseUntil`. */
interface ExecutionClaimOptions {
  readonly now: number;
  readonly leaseUntil: number;
  readonly newClaimId: () => string;
  readonly queues: readonly QueueClaim[];
  /** Of all queues together. */
  readonly maxBytes: number;
  readonly logger: Logger;
}

/**
 * Claims due executions, queue by queue, longest due first; of suspects at most one at any time. A queue ends before
 * the first execution that does not fit into its bytes, or into `maxBytes`. An execution whose workflow's text is gone
 * fails instead, with its event.
 */
export function* claimExecutions(options: ExecutionClaimOptions): Work<readonly ClaimedExecution[]> {
  const { now, leaseUntil, newClaimId, queues, logger } = options;
  const chosen = new Map<number, Pick<ClaimedExecution, "queue" | "bytes">>();
  const begun = new Set<number>();
  let left = options.maxBytes;
  let hasSuspect = false;
  for (const { max, maxBytes, ...queue } of queues) {
    const isSuspect = queue.expiredClaims >= SUSPECT_EXPIRED_CLAIMS;
    if (isSuspect && hasSuspect) continue;
    let ofQueue = maxBytes;
    for (const row of yield* candidates(queue, max, now)) {
      const bytes = Math.min(integer(row, "bytes"), MAX_COUNTED_BYTES);
      if (bytes > Math.min(ofQueue, left)) break;
      ofQueue -= bytes;
      left -= bytes;
      const seq = integer(row, "seq");
      chosen.set(seq, { queue, bytes });
      if (text(row, "status") !== "queued") begun.add(seq);
      hasSuspect ||= isSuspect;
    }
  }
  if (chosen.size === 0) return [];
  const seqs = [...chosen.keys()];
  const rows = yield* all(CLAIM, seqs.map(newClaimId), leaseUntil, now, seqs);
  yield* tallyMove("execution.queued", "execution.running", chosen.size - begun.size);
  const versions = yield* versionsOf(rows);
  const steps = yield* stepsOf(rows.filter((row) => begun.has(integer(row, "seq"))));
  const claims = new Map<number, ClaimedExecution>();
  for (const row of rows) {
    const version = versions.get(text(row, "version_id"));
    if (version === undefined) {
      yield* failWithoutText(row, { logger, now });
      continue;
    }
    const seq = integer(row, "seq");
    const choice = chosen.get(seq);
    if (choice === undefined) continue;
    claims.set(seq, {
      ...choice,
      execution: RECORDS.executions.read(row),
      claimId: text(row, "claim_id"),
      version,
      steps: steps.get(seq) ?? [],
    });
  }
  return seqs.flatMap((seq) => claims.get(seq) ?? []);
}

function* candidates(
  { workflow, triggerId, stage, expiredClaims }: ExecutionQueue,
  max: number,
  now: number,
): Work<readonly Row[]> {
  if (stage === "voided") {
    const rows = yield* all(VOIDED, expiredClaims, workflow, triggerId, now, max);
    return expiredClaims < SUSPECT_EXPIRED_CLAIMS ? rows : yield* oneSuspect(rows);
  }
  return yield* all(OF_QUEUE, workflow, triggerId, stage === "begun", now, max);
}

// Only one process at a time checks whether a suspect is claimed.
const TAKE_TURN = postgresOnly("SELECT name FROM turn WHERE name = 'suspect' FOR UPDATE");
const TAKEN = sql((d) =>
  `SELECT 1 AS one FROM execution ${
    d.by("execution_lease")
  } WHERE claim_id IS NOT NULL AND voids >= ? LIMIT 1`
);

/** The first row, unless a suspect is claimed already. */
function* oneSuspect(rows: readonly Row[]): Work<readonly Row[]> {
  if (rows.length === 0) return [];
  yield* all(TAKE_TURN);
  return (yield* get(TAKEN, SUSPECT_EXPIRED_CLAIMS)) === undefined ? rows.slice(0, 1) : [];
}

const VERSIONS = sql((d) => `SELECT id, workflow, text FROM workflow_version WHERE ${d.among("id")}`);

/** The text of a workflow by its id. */
export function* findWorkflowVersion(id: string): Work<WorkflowVersion | undefined> {
  return (yield* all(VERSIONS, [id])).map(versionOf)[0];
}

function* versionsOf(executions: readonly Row[]): Work<ReadonlyMap<string, WorkflowVersion>> {
  const rows = yield* all(VERSIONS, [...new Set(executions.map((row) => text(row, "version_id")))]);
  return new Map(rows.map((row) => [text(row, "id"), versionOf(row)]));
}

function versionOf(row: Row): WorkflowVersion {
  return { id: text(row, "id"), workflow: text(row, "workflow"), text: text(row, "text") };
}
