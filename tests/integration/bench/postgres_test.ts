import { assertEquals, assertRejects } from "@std/assert";
import { postgresStore } from "../../../scripts/bench/postgres_counts.ts";
import { bareTransactions } from "../../../scripts/bench/postgres_yardstick.ts";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { needs } from "../../harness/tools.ts";

Deno.test({
  ...needs(["postgres"], "bareTransactions: every row is there, and what was there before is told"),
  async fn() {
    await using server = await PostgresServer.start();
    const url = server.url(await server.createDatabase());
    assertEquals(await bareTransactions(url, { connections: 3, seconds: 0.1 }) > 0, true);
    // The table is there already.
    await assertRejects(() => bareTransactions(url, { connections: 1, seconds: 0.1 }));
    assertEquals(await postgresStore(url, {}).count("SELECT count(*) % 2 AS number FROM bare"), 0);
  },
});
