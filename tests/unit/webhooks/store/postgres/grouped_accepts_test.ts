import { assert, assertEquals } from "#assert";
import { SUBSCRIPTIONS } from "../../../../../src/webhooks/store/operations/subscriptions.ts";
import type { ExecutionCommit } from "../../../../../src/webhooks/store/operations/executions.ts";
import { ALONE } from "../../../../../src/webhooks/store/postgres/call_groups.ts";
import { acceptEvents } from "../../../../../src/webhooks/store/postgres/grouped_accepts.ts";
import { commitExecutions } from "../../../../../src/webhooks/store/postgres/grouped_results.ts";
import type { Answer, Parameter, Statement, Work } from "../../../../../src/webhooks/store/work.ts";
import { performed } from "../../../../../src/webhooks/store/work.ts";
import { event, newId, NOW } from "../../../../contract/webhook_store_bed.ts";

/** Runs work with so many endpoints that get every event; returns its result and the deliveries of each statement. */
function withEndpoints<T>(count: number, work: Work<T>) {
  const deliveries: number[] = [];
  const result = performed(work, (statement): Answer => {
    if (statement.sql === SUBSCRIPTIONS) {
      const rows = Array.from(
        { length: count },
        (_, index) => ({ id: `endpoint-${index}`, events: '["*"]' }),
      );
      return { rows, changes: 0 };
    }
    const ids = listOf(statement, 0);
    if (!textOf(statement).includes("INSERT INTO event")) {
      return { rows: ids.map((id) => ({ id, cancel_requested: 0 })), changes: 0 };
    }
    deliveries.push(listOf(statement, -2).length);
    return { rows: [...ids, ...listOf(statement, -1)].map((id) => ({ id })), changes: 0 };
  });
  return { result, deliveries };
}

function textOf({ sql }: Statement): string {
  return typeof sql === "string" ? sql : sql.postgres;
}

function listOf({ parameters }: Statement, index: number): readonly string[] {
  const list: Parameter = parameters.at(index);
  assert(Array.isArray(list), "Expected a list");
  return list.map(String);
}

const EVENTS = Array.from({ length: 64 }, () => event());
const CALLS = EVENTS.map((one) => [one, { now: NOW }] as const);

/** Endpoints, and how many events of a group go together. */
const CASES: readonly (readonly [endpoints: number, together: number])[] = [
  [0, 64],
  [10, 64],
  [1_000, 4],
  [3_000, 1],
];

Deno.test("events of a group with too many deliveries for one statement are accepted alone", () => {
  for (const [endpoints, together] of CASES) {
    const { result, deliveries } = withEndpoints(endpoints, acceptEvents(CALLS));
    assertEquals(deliveries, [together * endpoints]);
    assertEquals(result.map((one) => one === ALONE), EVENTS.map((_, index) => index >= together));
  }
});

Deno.test("events of executions that end are added in several statements where they have too many deliveries", () => {
  const change = { status: "succeeded", stepAttempts: 0 } as const;
  const commits = EVENTS.map((one): readonly [ExecutionCommit] => [
    { executionId: newId(), claimId: newId(), now: NOW, change, event: one, keepClaim: false },
  ]);
  for (const [endpoints, together] of CASES) {
    const { result, deliveries } = withEndpoints(endpoints, commitExecutions(commits));
    assertEquals(deliveries, Array(64 / together).fill(together * endpoints));
    assertEquals(result, commits.map(() => ({ cancelRequested: false })));
  }
});
