import { postgres } from "../../harness/postgres_fixture.ts";
import { acceptWithKills, MOVE_KILLS, moveWithKills } from "../../harness/store_kills.ts";
import { executeWithKills } from "../../harness/workflow_kills.ts";

Deno.test("kill -9 in the middle of commits loses nothing that was answered", () =>
  acceptWithKills(1, 20_261_122));

Deno.test("kill -9 between a step and its commit: executions of three steps end", () =>
  executeWithKills({ executions: 40, kills: ["after_step"], mostPasses: 10, seed: 1 }));

postgres.test("a move that is killed is whole when it is called again, and half of it is never opened", (database) =>
  moveWithKills(database.url(), { kills: MOVE_KILLS.slice(1, 2), rows: 20 }));
