import { assert, assertEquals } from "@std/assert";
import { ATTEMPT_POINTS } from "../../harness/webhook_faults.ts";
import { killWhileDelivering } from "../../harness/webhook_kill_loop.ts";

/** A part of what `deno task soak:webhooks` does. */
const EVENTS = 1_200;
const KILLS = 12;
const SEED = 20_261_122;

Deno.test(`kill -9 at every step of an attempt loses no event and doubles none (seed ${SEED})`, async () => {
  const report = await killWhileDelivering({ events: EVENTS, kills: KILLS, seed: SEED, say: () => {} });
  assertEquals(report.problems, []);
  const { killsAt } = report;
  assertEquals(Object.values(killsAt).reduce((sum, count) => sum + count, 0), KILLS);
  for (const point of ATTEMPT_POINTS) assert((killsAt[point] ?? 0) > 0, `it died at "${point}"`);
  assert(report.interruptedAttempts > 0, "an attempt broke off");
});
