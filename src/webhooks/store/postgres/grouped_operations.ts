import { acceptEvent, acceptExecution, findIdempotency } from "../operations/accept.ts";
import { finishAttempt } from "../operations/delivery_claims.ts";
import { findEventKey } from "../operations/events.ts";
import { commitExecution } from "../operations/executions.ts";
import type { Operation } from "../store.ts";
import { findTriggerKey, findTriggerKeys } from "../operations/triggers.ts";
import type { GroupedOperation } from "./call_groups.ts";
import { acceptEvents, acceptExecutions, findEventKeys, findIdempotencies } from "./grouped_accepts.ts";
import { commitExecutions, finishAttempts } from "./grouped_results.ts";

type AnyGroupedOperation = GroupedOperation<readonly unknown[], unknown>;

/** The operations whose concurrent calls run in groups. */
export const GROUPED: ReadonlyMap<unknown, AnyGroupedOperation> = new Map([
  grouped(findTriggerKey, { work: findTriggerKeys }),
  grouped(findEventKey, { work: findEventKeys }),
  grouped(findIdempotency, { work: findIdempotencies }),
  grouped(acceptExecution, { work: acceptExecutions, bytes: ({ input }) => input.length }),
  grouped(acceptEvent, { work: acceptEvents, bytes: ({ body }) => body.length }),
  grouped(finishAttempt, {
    work: finishAttempts,
    bytes: ({ outcome: { response = "" } }) => response.length,
    // These are few.
    joins: ({ audit = [], event }) => audit.length === 0 && event === undefined,
  }),
  grouped(commitExecution, {
    work: commitExecutions,
    bytes: ({ step, change, event }) =>
      (step?.result ?? "").length + (change.output ?? "").length + (event?.body.length ?? 0),
  }),
]);

function grouped<A extends readonly unknown[], T>(
  operation: Operation<A, T>,
  how: GroupedOperation<A, T>,
): readonly [unknown, AnyGroupedOperation] {
  return [operation, how];
}
