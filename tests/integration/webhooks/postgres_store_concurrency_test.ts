import { FLEET_CASES, runFleet } from "../../harness/postgres_fleet_cases.ts";
import { postgres } from "../../harness/postgres_fixture.ts";
import { mixEverything } from "../../harness/postgres_mixture.ts";

for (const [name, one] of Object.entries(FLEET_CASES)) {
  postgres.test(`several stores on postgres: ${name}`, (database) => runFleet(database.url(), one, 1));
}

postgres.test("several stores on postgres: a mixture of everything keeps the rules, and none of it fails", (database) =>
  mixEverything(database.url(), { rounds: 18, seed: 7 }));
