import { assert, assertEquals } from "@std/assert";
import { needs, type Tool } from "../harness/tools.ts";
import { ATTEMPT_POINTS, EXECUTION_POINTS, type KillPoint } from "../harness/webhook_faults.ts";
import { WebhookFleet } from "../harness/webhook_fleet.ts";
import { killWhileDelivering } from "../harness/webhook_kill_loop.ts";
import { WebhookProcess } from "../harness/webhook_process.ts";
import { killWhileExecuting } from "../harness/workflow_kill_loop.ts";
import { bySize, onlyFull, SOAK_SEED, SOAK_SIZE } from "./soak_options.ts";

const STORES = [
  { what: "a process on a file", tools: [], open: WebhookProcess.open },
  { what: "three machines on one database", tools: ["postgres"] as readonly Tool[], open: WebhookFleet.open },
];
const EVENTS = bySize({ short: { events: 150, kills: 3 }, full: { events: 10_000, kills: 50 } });
const EXECUTIONS = bySize({ short: { executions: 60, kills: 3 }, full: { executions: 1_000, kills: 20 } });

for (const { what, tools, open } of STORES) {
  Deno.test({
    ...needs(
      tools,
      `${what}, kill -9 at every step of an attempt: no event is lost or doubled (seed ${SOAK_SEED})`,
    ),
    async fn() {
      const report = await killWhileDelivering({ ...EVENTS, seed: SOAK_SEED, open });
      assertEquals(report.problems, []);
      checkKills(report.killsAt, ATTEMPT_POINTS, EVENTS.kills);
      if (SOAK_SIZE === "full") assert(report.interruptedAttempts > 0, "an attempt broke off");
    },
  });

  const isOfFile = tools.length === 0;
  const test = needs(tools, `${what}, kill -9 in the work on executions: each ends once (seed ${SOAK_SEED})`);
  Deno.test({
    ...isOfFile ? test : onlyFull(test),
    async fn() {
      const report = await killWhileExecuting({ ...EXECUTIONS, seed: SOAK_SEED, open });
      assertEquals(report.problems, []);
      checkKills(report.killsAt, EXECUTION_POINTS, EXECUTIONS.kills);
      if (SOAK_SIZE === "full") assert(report.repeatedSteps > 0, "a step was sent again");
    },
  });
}

/** A full run comes to each place. */
function checkKills(
  killsAt: Readonly<Record<string, number>>,
  points: readonly KillPoint[],
  kills: number,
): void {
  assertEquals(Object.values(killsAt).reduce((sum, count) => sum + count, 0), kills);
  if (SOAK_SIZE === "short") return;
  for (const point of points) assert((killsAt[point] ?? 0) > 0, `it died at "${point}"`);
}
