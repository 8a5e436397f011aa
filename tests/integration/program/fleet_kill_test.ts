import { assert, assertEquals } from "@std/assert";
import { needs } from "../../harness/tools.ts";
import { ATTEMPT_POINTS, EXECUTION_POINTS } from "../../harness/webhook_faults.ts";
import { WebhookFleet } from "../../harness/webhook_fleet.ts";
import { killWhileDelivering } from "../../harness/webhook_kill_loop.ts";
import { killWhileExecuting } from "../../harness/workflow_kill_loop.ts";

/** A part of what `deno task soak:webhooks --store postgres` does. */
const EVENTS = 600;
const EXECUTIONS = 150;
const KILLS = { events: 12, executions: 8 };
const SEED = 20_261_124;

Deno.test({
  ...needs(
    ["postgres"],
    `three machines on one database, kill -9: no event is lost or doubled (seed ${SEED})`,
  ),
  async fn() {
    const report = await killWhileDelivering({
      ...{ events: EVENTS, kills: KILLS.events, seed: SEED, open: WebhookFleet.open, say: () => {} },
    });
    assertEquals(report.problems, []);
    const { killsAt } = report;
    assertEquals(sumOf(killsAt), KILLS.events);
    for (const point of ATTEMPT_POINTS) assert((killsAt[point] ?? 0) > 0, `it died at "${point}"`);
    assert(report.interruptedAttempts > 0, "an attempt broke off");
  },
});

Deno.test({
  ...needs(["postgres"], `three machines on one database, kill -9: each execution ends once (seed ${SEED})`),
  async fn() {
    const report = await killWhileExecuting({
      ...{ executions: EXECUTIONS, kills: KILLS.executions, seed: SEED, open: WebhookFleet.open },
      say: () => {},
    });
    assertEquals(report.problems, []);
    const { killsAt } = report;
    assertEquals(sumOf(killsAt), KILLS.executions);
    for (const point of EXECUTION_POINTS) assert((killsAt[point] ?? 0) > 0, `it died at "${point}"`);
    assert(report.repeatedSteps > 0, "a step was sent again");
  },
});

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
