import { assert, assertEquals, assertRejects } from "@std/assert";
import { migratePostgres } from "../../../src/webhooks/store/postgres/migration.ts";
import { SCHEMA_VERSION } from "../../../src/webhooks/store/schema.ts";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import { withPostgresStore } from "../../../src/webhooks/store/maintenance/connection.ts";
import { transactionsOn } from "../../../src/webhooks/store/maintenance/connection.ts";
import { needs } from "../../harness/tools.ts";
import { sessionsEnded, sharedPostgres } from "../../harness/postgres_fixture.ts";
import { StoreFolder } from "../../harness/sqlite_fixture.ts";
import { COUNTS, DAMAGES } from "../../harness/store_check_cases.ts";
import { fillLikeService, move } from "../../harness/store_move_fixture.ts";

const server = sharedPostgres();

Deno.test({
  ...needs(["postgres"], "a check does the same for a PostgreSQL, whose password it does not show"),
  async fn() {
    using folder = new StoreFolder();
    const store = await folder.open();
    await fillLikeService(store);
    await store.close();
    const name = await server().createDatabase();
    const shown = `postgres://weir@127.0.0.1:${server().port}/${name}`;
    assertEquals((await assertRejects(() => checkStore(server().url(name)))).message, noStoreIn(shown));
    await move(folder.path, server().url(name));
    // In PostgreSQL a name may have several rows, of which some are below zero.
    await server().psql(
      "INSERT INTO tally (name, count) VALUES ('delivery.attempting', -1), ('delivery.attempting', 1)",
      name,
    );
    const { bytes, ...rest } = await checkStore(server().url(name));
    assertEquals(rest, {
      shown,
      problems: [],
      schemaVersion: SCHEMA_VERSION,
      counts: COUNTS,
      keys: { k1: 3 },
    });
    assert(bytes > 100_000);
    // Nobody may be connected to what is copied.
    await sessionsEnded(server(), name);
    for (const [index, [damage, problem]] of Object.entries(DAMAGES).entries()) {
      await server().psql(`CREATE DATABASE ${name}_${index} TEMPLATE ${name}`);
      await server().psql(damage, `${name}_${index}`);
      const { problems } = await checkStore(server().url(`${name}_${index}`));
      assert(problems.some((line) => line.includes(problem)), `${damage}: ${problems.join("; ")}`);
    }
  },
});

Deno.test({
  ...needs(["postgres"], "a check names a few of many rows, and refuses a schema that it does not know"),
  async fn() {
    const name = await server().createDatabase();
    const url = server().url(name);
    const shown = `postgres://weir@127.0.0.1:${server().port}/${name}`;
    await withPostgresStore(
      url,
      (connection) => migratePostgres(transactionsOn(connection), { shownAddress: shown }),
    );
    await server().psql(
      `INSERT INTO workflow_version VALUES ('v', 'w', 't');
       INSERT INTO execution (id, workflow, version_id, trigger_id, status, created_at, step_attempts, cancel_requested, input)
       SELECT 'e' || n, '', 'v', '', 'queued', 1, 0, 0, '' FROM generate_series(1, 9) AS n`,
      name,
    );
    assertEquals((await checkStore(url)).problems, [
      "rule violated: an open execution is due or claimed (9: e1, e2, e3, e4, e5, …)",
      "rule violated: the tallies match the number of rows (1: execution.queued)",
    ]);
    await server().psql("UPDATE schema_version SET version = 99", name);
    const { message } = await assertRejects(() => checkStore(url));
    assertEquals(
      message,
      `Cannot open the store "${shown}": its schema has version 99, ` +
        `this release supports ${SCHEMA_VERSION} and older; a newer release is needed`,
    );
  },
});

function noStoreIn(shown: string): string {
  return `Cannot open the store "${shown}": it holds no store`;
}
