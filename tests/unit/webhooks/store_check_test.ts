import { assert, assertEquals, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { migratePostgres } from "../../../src/webhooks/postgres_migration.ts";
import { migrate, MIGRATIONS } from "../../../src/webhooks/sqlite_schema.ts";
import { SqliteConnection } from "../../../src/webhooks/sqlite_store_connection.ts";
import { backupStore } from "../../../src/webhooks/sqlite_store_backup.ts";
import { checkStore } from "../../../src/webhooks/store_check.ts";
import { transactionsOn, withPostgresStore } from "../../../src/webhooks/store_connection.ts";
import { addEndpoint, addEvent, audit, newId, NOW } from "../../contract/webhook_store_bed.ts";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { needs } from "../../harness/tools.ts";
import { sessionsEnded } from "../../harness/postgres_fixture.ts";
import { StoreFolder } from "../../harness/sqlite_fixture.ts";
import { fillLikeService, move } from "../../harness/store_move_fixture.ts";

const COUNTS = {
  attempt: 1,
  audit: 3,
  delivery: 2,
  endpoint: 1,
  endpoint_secret: 1,
  event: 2,
  event_key: 1,
  execution: 1,
  execution_step: 0,
  idempotency: 1,
  trigger_key: 1,
  workflow_trigger: 1,
  workflow_version: 1,
};

const DAMAGES: Readonly<Record<string, string>> = {
  "UPDATE delivery SET claim_id = NULL, lease_until = NULL, due_at = NULL":
    "an open delivery is due or claimed",
  "UPDATE delivery SET state = 'acknowledged'": "a delivery that has ended is not due",
  "UPDATE delivery SET reason = 'exhausted'": "a delivery that failed has a reason, and no other has",
  "UPDATE delivery SET lease_until = NULL": "a claim of a delivery has a lease",
  "UPDATE event SET body = NULL": "an open delivery has a payload",
  "UPDATE delivery SET endpoint_id = 'none'": "an open delivery has an endpoint",
  "UPDATE delivery SET claim_id = NULL, lease_until = NULL": "an attempt that runs belongs to a claim",
  "UPDATE execution SET due_at = NULL": "an open execution is due or claimed",
  "UPDATE execution SET status = 'failed'": "an execution that has ended is neither due nor claimed",
  "UPDATE execution SET claim_id = 'c'": "a claim of an execution has a lease",
  "DELETE FROM endpoint_secret": "an endpoint has a secret",
  "UPDATE tally SET count = count + 1": "the tallies are right",
  "DELETE FROM tally": "the tallies are right",
};

const REFERENCE = "PRAGMA foreign_keys = OFF; DELETE FROM event";

Deno.test("a check counts the rows of a file that is whole, changes nothing, and names what is wrong", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  await fillLikeService(store);
  const { problems, schemaVersion, bytes, counts, shown } = await checkStore(folder.path);
  assertEquals([problems, schemaVersion, bytes > 0, shown], [[], MIGRATIONS.length, true, folder.path]);
  assertEquals(counts, COUNTS);
  await store.addAudit(audit());
  await store.close();
  const damages = { ...DAMAGES, [REFERENCE]: "a row of delivery names one of event that is not there" };
  for (const [index, [damage, problem]] of Object.entries(damages).entries()) {
    const copy = folder.file(`${index}.db`);
    await backupStore(folder.path, copy);
    const database = new DatabaseSync(copy);
    database.exec(damage);
    database.close();
    const { problems } = await checkStore(copy);
    assert(problems.some((line) => line.includes(problem)), `${damage}: ${problems.join("; ")}`);
  }
});

Deno.test({
  ...needs(["postgres"], "a check does the same for a PostgreSQL, whose password it does not show"),
  async fn() {
    await using server = await PostgresServer.start();
    using folder = new StoreFolder();
    const store = await folder.open();
    await fillLikeService(store);
    await store.close();
    const name = await server.createDatabase();
    const shown = `postgres://weir@127.0.0.1:${server.port}/${name}`;
    assertEquals((await assertRejects(() => checkStore(server.url(name)))).message, noStoreIn(shown));
    await move(folder.path, server.url(name));
    // In PostgreSQL a name may have several rows, of which some are below zero.
    await server.psql(
      "INSERT INTO tally (name, count) VALUES ('delivery.attempting', -1), ('delivery.attempting', 1)",
      name,
    );
    const { bytes, ...rest } = await checkStore(server.url(name));
    assertEquals(rest, { shown, problems: [], schemaVersion: MIGRATIONS.length, counts: COUNTS });
    assert(bytes > 100_000);
    // Nobody may be connected to what is copied.
    await sessionsEnded(server, name);
    for (const [index, [damage, problem]] of Object.entries(DAMAGES).entries()) {
      await server.psql(`CREATE DATABASE copy_${index} TEMPLATE ${name}`);
      await server.psql(damage, `copy_${index}`);
      const { problems } = await checkStore(server.url(`copy_${index}`));
      assert(problems.some((line) => line.includes(problem)), `${damage}: ${problems.join("; ")}`);
    }
  },
});

Deno.test({
  ...needs(["postgres"], "a check names a few of many rows, and refuses a schema that it does not know"),
  async fn() {
    await using server = await PostgresServer.start();
    const url = server.url(await server.createDatabase());
    const shown = `postgres://weir@127.0.0.1:${server.port}/test_1`;
    await withPostgresStore(
      url,
      (connection) => migratePostgres(transactionsOn(connection), { shownAddress: shown }),
    );
    await server.psql(
      `INSERT INTO workflow_version VALUES ('v', 'w', 't');
       INSERT INTO execution (id, workflow, version_id, trigger_id, status, created_at, step_attempts, cancel_requested, input)
       SELECT 'e' || n, '', 'v', '', 'queued', 1, 0, 0, '' FROM generate_series(1, 9) AS n`,
      "test_1",
    );
    assertEquals((await checkStore(url)).problems, [
      "not so: an open execution is due or claimed (9: e1, e2, e3, e4, e5, …)",
      "not so: the tallies are right (1: execution.queued)",
    ]);
    await server.psql("UPDATE schema_version SET version = 99", "test_1");
    const { message } = await assertRejects(() => checkStore(url));
    assertEquals(
      message,
      `Cannot open the store "${shown}": its schema has version 99, this release knows 1 to ${MIGRATIONS.length}`,
    );
  },
});

Deno.test("a check finds nothing wrong while a removal is under way, nor in a file of version 1", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  const to = await addEndpoint(store);
  await Promise.all(Array.from({ length: 501 }, () => addEvent(store)));
  await store.deleteEndpoint(to.id, { now: NOW, audit: audit(), newId });
  assertEquals((await checkStore(folder.path)).problems, []);
  assertEquals((await store.figures(NOW)).deliveries.attempting, 1);
  await store.close();

  using old = new StoreFolder();
  const connection = new SqliteConnection(old.path);
  migrate(connection, MIGRATIONS.slice(0, 1));
  connection.close();
  const { problems, schemaVersion } = await checkStore(old.path);
  assertEquals([problems, schemaVersion], [[], 1]);
});

function noStoreIn(shown: string): string {
  return `Cannot open the store "${shown}": it holds no store, this release knows 1 to ${MIGRATIONS.length}`;
}
