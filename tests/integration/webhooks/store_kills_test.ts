import { needs } from "../../harness/tools.ts";
import { sharedPostgres } from "../../harness/postgres_fixture.ts";
import { acceptWithKills, MOVE_KILLS, moveWithKills } from "../../harness/store_kills.ts";

const server = sharedPostgres();

Deno.test("kill -9 in the middle of commits loses nothing that was answered", () =>
  acceptWithKills(1, 20_261_122));

Deno.test({
  ...needs(
    ["postgres"],
    "a move that is killed is whole when it is called again, and half of it is never opened",
  ),
  async fn() {
    await moveWithKills(server().url(await server().createDatabase()), {
      kills: MOVE_KILLS.slice(1, 2),
      rows: 20,
    });
  },
});
