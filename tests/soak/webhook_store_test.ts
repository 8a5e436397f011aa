/** Stores of the webhook service under repetition: kills, and several stores on one database. */
import { deliverThroughFaults } from "../harness/dispatcher_faults.ts";
import { deliverAll, leaveRate } from "../harness/dispatcher_loads.ts";
import { FLEET_CASES, runFleet } from "../harness/postgres_fleet_cases.ts";
import { emptyDatabases, sharedPostgres } from "../harness/postgres_fixture.ts";
import { mixEverything } from "../harness/postgres_mixture.ts";
import { acceptWithKills, MOVE_KILLS, moveWithKills } from "../harness/store_kills.ts";
import { needs } from "../harness/tools.ts";
import { executeWithKills, KILL_POINTS } from "../harness/workflow_kills.ts";
import { executeAll } from "../harness/workflow_load.ts";
import { bySize, SOAK_SEED } from "./soak_options.ts";

const server = sharedPostgres();
const emptyDatabase = emptyDatabases(server);

Deno.test("soak: kill -9 in the middle of commits loses nothing that was answered", () =>
  acceptWithKills(bySize({ short: 5, full: 50 }), SOAK_SEED));

Deno.test({
  ...needs(["postgres"], "soak: a move that is killed again and again is whole in the end"),
  async fn() {
    const database = server().url(await server().createDatabase());
    await moveWithKills(database, { kills: MOVE_KILLS, rows: 300 });
  },
});

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
  Deno.test({
    ...needs(["postgres"], `soak: several stores on postgres: ${name}`),
    fn: async () => await runFleet(await emptyDatabase(), one, 10),
  });
}

Deno.test({
  ...needs(["postgres"], "soak: a mixture of everything keeps the rules, and none of it fails"),
  fn: async () =>
    await mixEverything(await emptyDatabase(), {
      rounds: bySize({ short: 60, full: 1_000 }),
      seed: SOAK_SEED,
    }),
});
