import { assertEquals, assertRejects } from "@std/assert";
import { audit } from "../contract/webhook_store_bed.ts";
import { startPgBouncer } from "../harness/pgbouncer.ts";
import { needs } from "../harness/tools.ts";
import { openStoreAt, sharedPostgres } from "../harness/postgres_fixture.ts";
import { addAudit, listAudit } from "../../src/webhooks/store/audit_log.ts";

const server = sharedPostgres();

/** A connection gets the session that was used last, or the one that was not used for longest. */
const SETTINGS = {
  "one session": ["default_pool_size = 1"],
  "many sessions": ["server_round_robin = 1", "min_pool_size = 4"],
};

for (const [name, settings] of Object.entries(SETTINGS)) {
  Deno.test({
    ...needs(["postgres", "pgbouncer"], `a pooler in transaction mode is refused at the start: ${name}`),
    async fn() {
      const database = await server().createDatabase();
      await using pooler = await startPgBouncer(server(), "transaction", settings);
      const url = pooler.url(database);
      assertEquals(
        (await assertRejects(() => openStoreAt(url))).message,
        `Cannot use the store "${url}": a pooler runs its transactions in different sessions; ` +
          "set the pooler to session mode, or connect without it",
      );
    },
  });
}

Deno.test({
  ...needs(["postgres", "pgbouncer"], "a pooler in session mode works under load"),
  async fn() {
    const database = await server().createDatabase();
    await using pooler = await startPgBouncer(server(), "session");
    const store = await openStoreAt(pooler.url(database));
    await Promise.all(Array.from({ length: 100 }, () => store.write(addAudit, audit())));
    assertEquals((await store.read(listAudit, { limit: 200 })).items.length, 100);
    await store.close();
  },
});
