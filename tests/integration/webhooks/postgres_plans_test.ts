import { assertEquals } from "#assert";
import {
  addEndpoint,
  audit,
  claim,
  claimRuns,
  DAY,
  event,
  execution,
  newId,
  NOW,
  saveVersion,
} from "../../contract/webhook_store_bed.ts";
import { openStoreAt, postgres } from "../../harness/postgres_fixture.ts";
import {
  acceptEvent,
  acceptExecution,
  findIdempotency,
} from "../../../src/webhooks/store/operations/accept.ts";
import { listAudit } from "../../../src/webhooks/store/operations/audit_log.ts";
import {
  backlogPosition,
  countBacklog,
  failOverBacklog,
} from "../../../src/webhooks/store/operations/backlog.ts";
import { clockSetBack, releaseClaims, voidClaims } from "../../../src/webhooks/store/operations/claims.ts";
import {
  findDelivery,
  listDeliveries,
  resendDelivery,
} from "../../../src/webhooks/store/operations/deliveries.ts";
import {
  dueEndpoints,
  failPaused,
  finishAttempt,
  renewClaims,
} from "../../../src/webhooks/store/operations/delivery_claims.ts";
import { listEndpoints } from "../../../src/webhooks/store/operations/endpoints.ts";
import { listEvents } from "../../../src/webhooks/store/operations/events.ts";
import {
  commitExecution,
  findExecution,
  listExecutions,
  renewExecutionClaims,
} from "../../../src/webhooks/store/operations/executions.ts";
import { removeFinished } from "../../../src/webhooks/store/operations/retention.ts";
import type { WebhookStore } from "../../../src/webhooks/store/store.ts";
import { findTriggerKey } from "../../../src/webhooks/store/operations/triggers.ts";

/** Most rows that an operation may read through indexes: a small share of what there is. */
const MOST_READ = 5_000;

// 100,000 deliveries and executions, of which a twentieth is due; what is over is older than what is not.
const FILL = `
  INSERT INTO event (id, kind, created_at, body)
  SELECT 'e' || n, 'kind.' || n % 20, ${NOW} + n, CAST(repeat('x', 500) AS BYTEA) FROM generate_series(1, 20000) AS n;
  INSERT INTO delivery (id, endpoint_id, event_id, event, state, created_at, first_failure_at, slot, due_at,
    finished_at, reason, attempts, claim_id, lease_until)
  SELECT 'd' || n, (SELECT id FROM endpoint WHERE seq = 1 + n % 50), 'e' || 1 + n % 20000, 'kind.' || n % 20,
    CASE WHEN n <= 80000 THEN 'acknowledged' WHEN n <= 90000 THEN 'retrying' ELSE 'attempting' END, ${NOW} + n,
    CASE WHEN n > 80000 AND n <= 90000 THEN ${NOW} + n END, 0,
    CASE WHEN n > 95000 THEN ${NOW} + n WHEN n > 80000 THEN ${NOW + 9 * DAY} + n END,
    CASE WHEN n <= 80000 THEN ${NOW + DAY} + n END, NULL, 1,
    CASE WHEN n > 90000 AND n <= 90100 THEN 'claim' || n END, CASE WHEN n > 90000 AND n <= 90100 THEN ${NOW} END
  FROM generate_series(1, 100000) AS n;
  INSERT INTO attempt (delivery_seq, number, started_at, url, manual, result)
  SELECT seq, 1, ${NOW}, 'https://one.example/', 0, CASE WHEN claim_id IS NULL THEN 'failed' END FROM delivery WHERE seq > 80000;
  INSERT INTO execution (id, workflow, version_id, trigger_id, status, created_at, started_at, finished_at, due_at,
    step_attempts, cancel_requested, input)
  SELECT 'x' || n, 'w', 'v1', 't', CASE WHEN n <= 90000 THEN 'succeeded' ELSE 'queued' END, ${NOW} + n,
    CASE WHEN n <= 95000 THEN ${NOW} END, CASE WHEN n <= 90000 THEN ${NOW + DAY} + n END,
    CASE WHEN n > 90000 THEN ${NOW} + n END, 0, 0, '{}'
  FROM generate_series(1, 100000) AS n;
  INSERT INTO execution_step (execution_seq, position, name, kind, status, attempts, started_at, finished_at)
  SELECT seq, 0, 's', 'set', 'succeeded', 1, ${NOW}, ${NOW} FROM execution WHERE seq > 80000;
  INSERT INTO audit (id, at, actor, action, object, details)
  SELECT 'a' || n, ${NOW} + n, 'admin', 'action.' || n % 20, 'o', '{}' FROM generate_series(1, 20000) AS n;
  INSERT INTO idempotency (scope, key, accepted_at, body_hash, result_id)
  SELECT 'admin', 'k' || n, ${NOW} + n, 'h', 'r' FROM generate_series(1, 20000) AS n`;

// What a session has read is counted at its end.
const READ = `
  SELECT relname, sum(seq_tup_read), sum(idx) FROM (
    SELECT relname, seq_tup_read, coalesce((
      SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE pg_stat_user_indexes.relid = tables.relid), 0) AS idx
    FROM pg_stat_user_tables AS tables
  ) AS reads WHERE relname IN ('event', 'delivery', 'attempt', 'execution', 'execution_step', 'audit', 'idempotency')
  GROUP BY relname HAVING sum(seq_tup_read) > 10 OR sum(idx) > ${MOST_READ}`;

// A statement that was prepared gets a plan for any values where the server holds it no dearer than those for the values
// that it was given: for these it does not, as they begin at a time that only the values tell.
const BY_VALUES: ReadonlySet<string> = new Set(["clockSetBack", "removeFinished", "lists"]);

const later = NOW + 2 * DAY;
const OPERATIONS: Readonly<Record<string, (store: WebhookStore) => Promise<unknown>>> = {
  dueEndpoints: (store) => store.read(dueEndpoints, NOW + 97_000),
  claimDeliveries: async (store) => {
    const due = await store.read(dueEndpoints, NOW + 97_000);
    const claims = await claim(store, due, { now: NOW + 97_000, max: 4 });
    assertEquals([due.length, claims.length], [50, 200]);
    const attempted = claims.slice(0, 100);
    const outcome = { result: "acknowledged", finishedAt: NOW } as const;
    const change = { state: "acknowledged", slot: 0, finishedAt: later } as const;
    const ended = await Promise.all(
      attempted.map(({ delivery, claimId, attempt: number }) =>
        store.write(finishAttempt, { deliveryId: delivery.id, claimId, number, outcome, change })
      ),
    );
    assertEquals(ended.filter((isHeld) => isHeld).length, 100);
    assertEquals((await store.write(renewClaims, claims.map(({ claimId }) => claimId), later)).length, 100);
    await store.write(releaseClaims, claims.slice(100, 109).map(({ claimId }) => claimId), NOW);
  },
  voidClaims: (store) => store.write(voidClaims, { now: NOW + 60_001, which: "expired" }),
  failPaused: (store) => store.write(failPaused, { now: NOW + DAY, newId }),
  clockSetBack: (store) => store.write(clockSetBack, NOW + 99_900),
  claimExecutions: async (store) => {
    const claims = await claimRuns(store, { now: NOW + 99_000, leaseUntil: later, max: 50 });
    assertEquals(claims.length, 50);
    const ids = claims.map(({ claimId }) => claimId);
    assertEquals((await store.write(renewExecutionClaims, ids, later)).length, 50);
    await Promise.all(claims.map(({ claimId, execution: { id: executionId } }) => {
      const change = { status: "running", stepAttempts: 1, dueAt: NOW } as const;
      return store.write(commitExecution, { executionId, claimId, now: NOW, change, keepClaim: false });
    }));
  },
  acceptExecution: async (store) => {
    await Promise.all(Array.from({ length: 100 }, async (_, index) => {
      const [scope, key] = ["admin", `k${index % 2 === 0 ? index : newId()}`] as const;
      await store.read(findIdempotency, scope, key, NOW);
      await store.read(findTriggerKey, newId());
      await store.write(acceptExecution, execution(), {
        now: NOW,
        idempotency: { scope, key, bodyHash: "h" },
      });
    }));
  },
  acceptEvent: (store) =>
    store.write(acceptEvent, event({ kind: "unmatched.kind" }), {
      now: NOW,
      idempotency: { scope: "admin", key: newId(), bodyHash: "h" },
    }),
  backlogs: async (store) => {
    const { latest, endpointIds: [endpointId = ""] } = await store.read(backlogPosition);
    // Of 20,000 open deliveries to 50 endpoints; some are claimed.
    const open = await store.read(countBacklog, endpointId, 1_000);
    assertEquals([latest, open > 350 && open <= 400], [100_000, true], `${open}`);
    const full = { endpointId, after: latest - 5_000, now: later, newId };
    assertEquals(await store.write(failOverBacklog, full), 0);
  },
  removeFinished: (store) => store.write(removeFinished, { before: NOW + DAY + 60, now: NOW, max: 100 }),
  findDelivery: (store) => store.read(findDelivery, "d777"),
  resendDelivery: (store) => store.write(resendDelivery, "d778", { now: NOW, audit: audit() }),
  findExecution: (store) => store.read(findExecution, "x777"),
  lists: async (store) => {
    const { items: [endpoint] } = await store.read(listEndpoints, { limit: 1 });
    const endpointId = endpoint?.id;
    const filters = [{}, { state: "retrying" }, { endpointId }, { endpointId, state: "acknowledged" }];
    for (const filter of filters) await store.read(listDeliveries, { limit: 20, ...filter });
    await store.read(listDeliveries, { limit: 20, event: "kind.3" });
    const { items: [{ eventId } = {}] } = await store.read(listDeliveries, { limit: 1 });
    for (const filter of [{}, { endpointId }, { state: "acknowledged" }, { since: NOW - DAY }]) {
      await store.read(listDeliveries, { limit: 20, eventId, ...filter });
    }
    await store.read(listExecutions, { limit: 20, state: "queued" });
    await store.read(listEvents, { limit: 20, event: "kind.3", since: NOW + 19_900 });
    await store.read(listAudit, { limit: 20, event: "action.3", since: NOW + 19_900 });
  },
};

postgres.test("operations of a store on postgres read what they need by its indexes", async (database) => {
  const store = await openStoreAt(database.url());
  await Promise.all(Array.from({ length: 50 }, () => addEndpoint(store, { events: ["a.b"] })));
  await saveVersion(store);
  await store.close();
  await database.psql(FILL);
  await database.psql("ANALYZE");
  const found: string[] = [];
  for (const mode of ["force_custom_plan", "force_generic_plan"]) {
    const url = database.url(`options=-c%20plan_cache_mode%3D${mode}`);
    for (const [name, run] of Object.entries(OPERATIONS)) {
      if (mode === "force_generic_plan" && BY_VALUES.has(name)) continue;
      const store = await openStoreAt(url, { poolSize: 1 });
      await database.psql("SELECT pg_stat_reset()");
      await run(store);
      await store.close();
      await database.sessionsEnded();
      const read = await database.psql(READ);
      if (read !== "") found.push(`${mode} ${name}: ${read.replaceAll("\n", ", ")}`);
    }
  }
  assertEquals(found, []);
});
