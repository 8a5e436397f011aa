import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { needs } from "../../harness/tools.ts";

Deno.test({
  ...needs(["postgres"], "a PostgreSQL server of a test makes databases and keeps them over restarts"),
  async fn() {
    await using server = await PostgresServer.start({ settings: { max_connections: "20" } });
    const [first, second] = [await server.createDatabase(), await server.createDatabase()];
    await server.psql("CREATE TABLE kept (a int); INSERT INTO kept VALUES (1), (2)", second);
    assertEquals(await server.psql("SELECT a, a + 1 FROM kept ORDER BY a", second), "1|2\n2|3");
    const missing = await assertRejects(() => server.psql("SELECT a FROM kept", first));
    assertMatch(missing.message, /relation "kept" does not exist/);
    assertEquals(await server.psql("SHOW max_connections"), "20");
    const url = `postgres://weir:se%3Acr%40et@127.0.0.1:${server.port}/test_2?sslmode=disable`;
    assertEquals(server.url(second, "sslmode=disable"), url);
    for (const end of [() => server.stop(), () => server.stop("immediate"), () => server.kill()]) {
      await end();
      assertEquals(server.isRunning, false);
      await assertRejects(() => server.psql("SELECT 1"));
      await server.start();
      assertEquals(await server.psql("SELECT count(*) FROM kept", second), "2");
    }
  },
});

Deno.test({
  ...needs(["postgres"], "a PostgreSQL server of a test is paused with all its connections"),
  async fn() {
    await using server = await PostgresServer.start();
    const sleeping = server.psql("SELECT pg_sleep(0.1), 'woken'");
    server.pause();
    const waiting = server.psql("SELECT 'taken'");
    assertEquals(await Promise.race([sleeping, waiting, later("nothing", 400)]), "nothing");
    server.resume();
    assertEquals(await Promise.all([sleeping, waiting]), ["|woken", "taken"]);
    await server.breakConnections();
  },
});

Deno.test({
  ...needs(["postgres"], "a standby of a test follows, refuses writes and is promoted"),
  async fn() {
    await using primary = await PostgresServer.start();
    const database = await primary.createDatabase();
    await using standby = await PostgresServer.start({ standbyOf: primary });
    await primary.psql("SET synchronous_commit = on; CREATE TABLE kept (a int)", database);
    assertEquals(await standby.psql("SHOW transaction_read_only", database), "on");
    const refused = await assertRejects(() => standby.psql("CREATE TABLE own (a int)", database));
    assertMatch(refused.message, /read-only transaction/);
    await standby.promote();
    await standby.psql("CREATE TABLE own (a int)", database);
  },
});

async function later<T>(value: T, ms: number): Promise<T> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  return value;
}
