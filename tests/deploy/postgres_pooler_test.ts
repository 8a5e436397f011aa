import { assertEquals, assertRejects } from "#assert";
import { audit } from "../contract/webhook_store_bed.ts";
import { startPgBouncer } from "../harness/pgbouncer.ts";
import { needing } from "../harness/tools.ts";
import { openStoreAt, serverOfRun, usePostgres } from "../harness/postgres_fixture.ts";
import { addAudit, listAudit } from "../../src/webhooks/store/operations/audit_log.ts";

/** A connection gets the session that was used last, or the one that was not used for longest. */
const SETTINGS = {
  "one session": ["default_pool_size = 1"],
  "many sessions": ["server_round_robin = 1", "min_pool_size = 4"],
};

usePostgres();
const pgbouncer = needing("postgres", "pgbouncer");

for (const [name, settings] of Object.entries(SETTINGS)) {
  pgbouncer.test(`a pooler in transaction mode is refused at the start: ${name}`, async () => {
    await using database = await serverOfRun().database();
    await using pooler = await startPgBouncer(database.server, "transaction", settings);
    const url = pooler.url(database.name);
    assertEquals(
      (await assertRejects(() => openStoreAt(url))).message,
      `Cannot use the store "${url}": a pooler runs its transactions in different sessions; ` +
        "set the pooler to session mode, or connect without it",
    );
  });
}

pgbouncer.test("a pooler in session mode works under load", async () => {
  await using database = await serverOfRun().database();
  await using pooler = await startPgBouncer(database.server, "session");
  await using store = await openStoreAt(pooler.url(database.name));
  await Promise.all(Array.from({ length: 100 }, () => store.write(addAudit, audit())));
  assertEquals((await store.read(listAudit, { limit: 200 })).items.length, 100);
});
