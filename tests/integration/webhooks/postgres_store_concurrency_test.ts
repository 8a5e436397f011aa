import { needs } from "../../harness/tools.ts";
import { FLEET_CASES, runFleet } from "../../harness/postgres_fleet_cases.ts";
import { emptyDatabases, sharedPostgres } from "../../harness/postgres_fixture.ts";
import { mixEverything } from "../../harness/postgres_mixture.ts";

const emptyDatabase = emptyDatabases(sharedPostgres());

for (const [name, one] of Object.entries(FLEET_CASES)) {
  Deno.test({
    ...needs(["postgres"], `several stores on postgres: ${name}`),
    fn: async () => await runFleet(await emptyDatabase(), one, 1),
  });
}

Deno.test({
  ...needs(
    ["postgres"],
    "several stores on postgres: a mixture of everything keeps the rules, and none of it fails",
  ),
  fn: async () => await mixEverything(await emptyDatabase(), { rounds: 18, seed: 7 }),
});
