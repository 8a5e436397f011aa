import { assert, assertEquals } from "#assert";
import { SUBSCRIPTIONS } from "../../../../src/webhooks/store/operations/subscriptions.ts";
import { acceptEvent } from "../../../../src/webhooks/store/operations/accept.ts";
import {
  commitExecution,
  type ExecutionCommit,
} from "../../../../src/webhooks/store/operations/executions.ts";
import { APART, listOf } from "../../../../src/webhooks/store/list_operation.ts";
import {
  type Answer,
  NO_ANSWER,
  type Parameter,
  performed,
  type Statement,
  type Work,
} from "../../../../src/webhooks/store/work.ts";
import { event, newId, NOW } from "../../../contract/webhook_store_bed.ts";

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
    if (textOf(statement) === "") return NO_ANSWER;
    const ids = listAt(statement, 1);
    if (!textOf(statement).includes("INSERT INTO event")) {
      return { rows: ids.map((_, place) => ({ place, before: "running", cancel_requested: 0 })), changes: 0 };
    }
    deliveries.push(listAt(statement, -1).length);
    return { rows: [...ids, ...listAt(statement, -2)].map((id) => ({ id })), changes: 0 };
  });
  return { result, deliveries };
}

function textOf({ sql }: Statement): string {
  return typeof sql === "string" ? sql : sql.postgres;
}

function listAt({ parameters }: Statement, index: number): readonly string[] {
  const list: Parameter = parameters.at(index);
  assert(Array.isArray(list), "Expected a list");
  return list.map(String);
}

function workOf(operation: unknown, calls: readonly (readonly unknown[])[]): Work<readonly unknown[]> {
  const list = listOf(operation);
  assert(list !== undefined, "Expected a list operation");
  return list.work(calls);
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
    const { result, deliveries } = withEndpoints(endpoints, workOf(acceptEvent, CALLS));
    assertEquals(deliveries, [together * endpoints]);
    assertEquals(result.map((one) => one === APART), EVENTS.map((_, index) => index >= together));
  }
});

Deno.test("events of executions that end are added in several statements where they have too many deliveries", () => {
  const change = { status: "succeeded", stepAttempts: 0 } as const;
  const commits = EVENTS.map((one): readonly [ExecutionCommit] => [
    { executionId: newId(), claimId: newId(), now: NOW, change, event: one, keepClaim: false },
  ]);
  for (const [endpoints, together] of CASES) {
    const { result, deliveries } = withEndpoints(endpoints, workOf(commitExecution, commits));
    assertEquals(deliveries, Array(64 / together).fill(together * endpoints));
    assertEquals(result, commits.map(() => ({ cancelRequested: false })));
  }
});
