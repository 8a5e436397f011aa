/** The webhook service under repetition: kills, faults and bytes at random, large loads, several stores on a database. */
import { readAtRandom } from "../harness/answer_reading.ts";
import { deliverThroughFaults } from "../harness/dispatcher_faults.ts";
import { deliverAll, leaveRate } from "../harness/dispatcher_loads.ts";
import { FLEET_CASES, runFleet } from "../harness/postgres_fleet_cases.ts";
import { postgres } from "../harness/postgres_fixture.ts";
import { mixEverything } from "../harness/postgres_mixture.ts";
import { acceptWithKills, MOVE_KILLS, moveWithKills } from "../harness/store_kills.ts";
import { executeWithKills, KILL_POINTS } from "../harness/workflow_kills.ts";
import { executeAll } from "../harness/workflow_load.ts";
import { bySize, SOAK_SEED } from "./soak_options.ts";

Deno.test("soak: kill -9 in the middle of commits loses nothing that was answered", () =>
  acceptWithKills(bySize({ short: 5, full: 50 }), SOAK_SEED));

postgres.test("soak: a move that is killed again and again is whole in the end", (database) =>
  moveWithKills(database.url(), { kills: MOVE_KILLS, rows: 300 }));

Deno.test("soak: executions of three steps end, whatever kills the process again and again", async () => {
  const [executions, kills] = bySize({ short: [250, 5], full: [1_000, 20] } as const);
  await executeWithKills({
    executions,
    kills: Array.from({ length: kills }, (_, round) => KILL_POINTS[round % KILL_POINTS.length] ?? "claimed"),
    mostPasses: 90,
    seed: SOAK_SEED,
  });
});

Deno.test("soak: many executions of three steps end well", () =>
  executeAll(bySize({ short: 1_000, full: 5_000 })));

Deno.test("soak: many deliveries to 50 endpoints all end, none twice", () =>
  deliverAll(bySize({ short: 200, full: 1_000 })));

Deno.test("soak: 500 endpoints that hang leave 10 that answer their rate", () =>
  leaveRate({ hanging: 500, healthy: 10 }));

for (let seed = SOAK_SEED; seed < SOAK_SEED + bySize({ short: 3, full: 100 }); seed++) {
  Deno.test(`soak: a store that fails at random loses no delivery and repeats none unrecorded (seed ${seed})`, () =>
    deliverThroughFaults(seed));
}

for (const [name, one] of Object.entries(FLEET_CASES)) {
  postgres.test(`soak: several stores on postgres: ${name}`, (database) => runFleet(database.url(), one, 10));
}

postgres.test("soak: a mixture of everything keeps the rules, and none of it fails", (database) =>
  mixEverything(database.url(), { rounds: bySize({ short: 60, full: 1_000 }), seed: SOAK_SEED }));

Deno.test("soak: of answers at random the same is read however they are cut", () =>
  readAtRandom(bySize({ short: 1_500, full: 50_000 }), SOAK_SEED));
