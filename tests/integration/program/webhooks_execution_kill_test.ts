import { assert, assertEquals } from "@std/assert";
import { EXECUTION_POINTS } from "../../harness/webhook_faults.ts";
import { killWhileExecuting } from "../../harness/workflow_kill_loop.ts";

/** A part of what `deno task soak:webhooks` does. */
const EXECUTIONS = 250;
const KILLS = 8;
const SEED = 20_261_123;

Deno.test(`kill -9 in the work on executions: each ends once and well (seed ${SEED})`, async () => {
  const report = await killWhileExecuting({
    ...{ executions: EXECUTIONS, kills: KILLS, seed: SEED, say: () => {} },
  });
  assertEquals(report.problems, []);
  const { killsAt } = report;
  assertEquals(Object.values(killsAt).reduce((sum, count) => sum + count, 0), KILLS);
  for (const point of EXECUTION_POINTS) assert((killsAt[point] ?? 0) > 0, `it died at "${point}"`);
  assert(report.repeatedSteps > 0, "a step was sent again");
});
