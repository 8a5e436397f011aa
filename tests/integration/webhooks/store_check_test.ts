import { assert, assertEquals, assertRejects } from "#assert";
import { migratePostgres } from "../../../src/webhooks/store/postgres/migration.ts";
import { MIGRATIONS, SCHEMA_VERSION } from "../../../src/webhooks/store/schema.ts";
import { migrate } from "../../../src/webhooks/store/sqlite/migration.ts";
import { SqliteConnection } from "../../../src/webhooks/store/sqlite/connection.ts";
import { addAudit } from "../../../src/webhooks/store/operations/audit_log.ts";
import { deleteEndpoint } from "../../../src/webhooks/store/operations/endpoints.ts";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import { transactionsOn, withPostgresStore } from "../../../src/webhooks/store/maintenance/connection.ts";
import { addEndpoint, addEvent, audit, newId, NOW } from "../../contract/webhook_store_bed.ts";
import { postgres } from "../../harness/postgres_fixture.ts";
import { StoreFolder } from "../../harness/sqlite_fixture.ts";
import { fillLikeService } from "../../harness/store_move_fixture.ts";
import { filePlace, type StorePlace, stores } from "../../harness/store_places.ts";

/** The number of rows of a store after `fillLikeService`. */
const COUNTS = {
  attempt: 1,
  audit: 4,
  delivery: 2,
  endpoint: 1,
  endpoint_secret: 1,
  event: 2,
  event_key: 1,
  execution: 1,
  execution_step: 0,
  idempotency: 1,
  replay: 0,
  trigger_key: 1,
  trigger_secret: 1,
  workflow_trigger: 2,
  workflow_version: 1,
};

/** Faults of such a store, by the statement that causes each, and the finding of a check. */
const DAMAGES: Readonly<Record<string, string>> = {
  "UPDATE delivery SET claim_id = NULL, lease_until = NULL, due_at = NULL":
    "an open delivery is due or claimed",
  "UPDATE delivery SET state = 'acknowledged'": "an ended delivery is not due",
  "UPDATE delivery SET reason = 'exhausted'": "a delivery has a reason if and only if it failed",
  "UPDATE delivery SET lease_until = NULL": "a claim of a delivery has a lease",
  "UPDATE event SET body = NULL": "an open delivery has a payload",
  "UPDATE delivery SET endpoint_id = 'none'": "an open delivery has an endpoint",
  "UPDATE delivery SET claim_id = NULL, lease_until = NULL": "a running attempt has a claim",
  "UPDATE execution SET due_at = NULL": "an open execution is due or claimed",
  "UPDATE execution SET status = 'failed'": "an ended execution is neither due nor claimed",
  "UPDATE execution SET claim_id = 'c'": "a claim of an execution has a lease",
  "DELETE FROM endpoint_secret": "an endpoint has a secret",
  "UPDATE tally SET count = count + 1": "the tallies match the number of rows",
  "DELETE FROM tally": "the tallies match the number of rows",
};

async function filled(place: StorePlace): Promise<void> {
  await using store = await place.open();
  await fillLikeService(store);
}

stores.test("a check counts the rows of a store that is whole, changes nothing, and shows no password", async (place) => {
  await using store = await place.open();
  await fillLikeService(store);
  // In PostgreSQL a name may have several rows, of which some are below zero.
  if (place.kind === "postgres") {
    await place.execute(
      "INSERT INTO tally (name, count) VALUES ('delivery.attempting', -1), ('delivery.attempting', 1)",
    );
  }
  const { bytes, ...rest } = await checkStore(place.address);
  const { shown } = place;
  assertEquals(rest, { shown, problems: [], schemaVersion: SCHEMA_VERSION, counts: COUNTS, keys: { k1: 3 } });
  assert(bytes > 50_000, `${bytes}`);
  await store.write(addAudit, audit());
});

for (const [damage, problem] of Object.entries(DAMAGES)) {
  stores.test(`a check finds that ${problem}, after ${damage}`, async (place) => {
    await filled(place);
    await place.execute(damage);
    const { problems } = await checkStore(place.address);
    assert(problems.some((line) => line.includes(problem)), problems.join("; "));
  });
}

Deno.test("a check finds a row that refers to a missing one", async () => {
  using folder = new StoreFolder();
  await filled(filePlace(folder));
  await filePlace(folder).execute("PRAGMA foreign_keys = OFF; DELETE FROM event");
  const { problems } = await checkStore(folder.path);
  assert(problems.some((line) => line.includes("a row of delivery references a missing row of event")));
});

stores.test("a check finds nothing wrong while a removal is under way", async (place) => {
  await using store = await place.open();
  const to = await addEndpoint(store);
  await Promise.all(Array.from({ length: 501 }, () => addEvent(store)));
  await store.write(deleteEndpoint, to.id, { now: NOW, audit: audit(), newId });
  assertEquals((await checkStore(place.address)).problems, []);
  assertEquals((await store.metrics(NOW)).deliveries.attempting, 1);
});

Deno.test("a check finds nothing wrong in a file of version 1", async () => {
  using old = new StoreFolder();
  const connection = new SqliteConnection(old.path);
  migrate(connection, MIGRATIONS.sqlite.slice(0, 1));
  connection.close();
  const { problems, schemaVersion } = await checkStore(old.path);
  assertEquals([problems, schemaVersion], [[], 1]);
});

postgres.test("a check names a few of many rows, and refuses no store and a schema that it does not know", async (database) => {
  const { shown } = database;
  const refused = async () => (await assertRejects(() => checkStore(database.url()))).message;
  assertEquals(await refused(), `Cannot open the store "${shown}": it holds no store`);
  await withPostgresStore(
    database.url(),
    (connection) => migratePostgres(transactionsOn(connection), { shownAddress: shown }),
  );
  await database.psql(
    `INSERT INTO workflow_version VALUES ('v', 'w', 't');
     INSERT INTO execution (id, workflow, version_id, trigger_id, status, created_at, step_attempts, cancel_requested, input)
     SELECT 'e' || n, '', 'v', '', 'queued', 1, 0, 0, '' FROM generate_series(1, 9) AS n`,
  );
  assertEquals((await checkStore(database.url())).problems, [
    "rule violated: an open execution is due or claimed (9: e1, e2, e3, e4, e5, …)",
    "rule violated: the tallies match the number of rows (1: execution.queued)",
  ]);
  await database.psql("UPDATE schema_version SET version = 99");
  assertEquals(
    await refused(),
    `Cannot open the store "${shown}": its schema has version 99, ` +
      `this release supports ${SCHEMA_VERSION} and older; a newer release is needed`,
  );
});
