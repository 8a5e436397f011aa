import { assertEquals, assertMatch, assertRejects } from "#assert";
import { migratePostgres } from "../../../src/webhooks/store/postgres/migration.ts";
import { MIGRATIONS, SCHEMA_VERSION } from "../../../src/webhooks/store/schema.ts";
import { SqliteConnection } from "../../../src/webhooks/store/sqlite/connection.ts";
import { transactionsOn, withPostgresStore } from "../../../src/webhooks/store/maintenance/connection.ts";
import { text } from "../../../src/webhooks/store/rows.ts";
import { storeTables, TABLE_NAMES } from "../../../src/webhooks/store/maintenance/tables.ts";
import { all } from "../../../src/webhooks/store/work.ts";
import { addEndpoint, addEvent, audit, saveVersion } from "../../contract/webhook_store_bed.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { connectTo, openStoreAt, postgres } from "../../harness/postgres_fixture.ts";
import { QUIET, StoreFolder } from "../../harness/sqlite_fixture.ts";
import { addAudit, listAudit } from "../../../src/webhooks/store/operations/audit_log.ts";
import { findEvent } from "../../../src/webhooks/store/operations/events.ts";

const TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = ";

postgres.test("schema: of many stores that are opened at the same time one makes the tables", async (database) => {
  const told: unknown[] = [];
  const logger = { ...QUIET, info: (message: string, fields: unknown) => void told.push(message, fields) };
  const stores = await Promise.all(
    Array.from({ length: 8 }, () => openStoreAt(database.url(), { logger })),
  );
  assertEquals(told, ["Store migrated", { address: database.shown, from: 0, to: SCHEMA_VERSION }]);
  await Promise.all(stores.map((store) => store.write(addAudit, audit())));
  assertEquals((await stores[0]?.read(listAudit, { limit: 9 }))?.items.length, 8);
  assertEquals(await database.psql("SELECT version FROM schema_version"), String(SCHEMA_VERSION));
  for (const store of stores) await store.close();
});

postgres.test("schema: a store of a newer release is refused, and left as it is; so is one that is half filled", async (database) => {
  await (await openStoreAt(database.url())).close();
  const { shown } = database;
  const newer = SCHEMA_VERSION + 1;
  const refused = async (version: number) => {
    await database.psql(`UPDATE schema_version SET version = ${version}`);
    const error = await assertRejects(() => openStoreAt(database.url()));
    assertEquals(await database.psql("SELECT version FROM schema_version"), String(version));
    return error.message;
  };
  assertEquals(
    await refused(newer),
    `Cannot open the store "${shown}": its schema has version ${newer}, ` +
      `this release supports ${SCHEMA_VERSION} and older; a newer release is needed`,
  );
  assertEquals(
    await refused(1_000_002),
    `Cannot open the store "${shown}": it is half filled; run "weir store move" again to complete it`,
  );
});

postgres.test("schema: a store of version 1 is brought up to date, with all that it holds, or not at all", async (database) => {
  const [first = []] = MIGRATIONS.postgres;
  await database.psql(
    `SET ROLE weir; ${first.join("; ")}; CREATE TABLE schema_version (version BIGINT NOT NULL);
     INSERT INTO schema_version VALUES (1); INSERT INTO event (id, kind, created_at) VALUES ('e', 'k', 1);
     CREATE TABLE turn (a INTEGER)`,
  );
  const error = await assertRejects(() => openStoreAt(database.url()));
  assertMatch(error.message, /relation "turn" already exists/);
  const state =
    "SELECT version, (SELECT count(*) FROM pg_tables WHERE tablename IN ('removal', 'swept')) FROM schema_version";
  assertEquals(await database.psql(state), "1|0");
  await database.psql("DROP TABLE turn");
  await using store = await openStoreAt(database.url());
  assertEquals((await store.read(findEvent, "e"))?.kind, "k");
  assertEquals(await database.psql(state), `${SCHEMA_VERSION}|2`);
});

postgres.test("schema: the server does not limit how long a migration takes", async (database) => {
  await database.psql(
    `CREATE FUNCTION refuse_limit() RETURNS event_trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF current_setting('statement_timeout') <> '0' THEN
           RAISE EXCEPTION 'limited to %', current_setting('statement_timeout');
         END IF;
       END $$;
     CREATE EVENT TRIGGER refuse_limit ON ddl_command_start EXECUTE FUNCTION refuse_limit()`,
  );
  await (await openStoreAt(database.url())).close();
  assertEquals(await database.psql("SELECT version FROM schema_version"), String(SCHEMA_VERSION));
});

postgres.test("schema: a statement without a limit is waited for without a timer", async (database) => {
  const clock = new FakeClock();
  await using connection = await connectTo(database.url(), { clock, statementTimeoutMs: 0 });
  const answer = connection.query("SHOW statement_timeout", [], "rows");
  assertEquals(clock.waiting, 0);
  assertEquals((await answer).rows[0]?.["statement_timeout"], "0");
});

postgres.test("schema: tables are made where the search path says, one store in each schema", async (database) => {
  const url = (schema: string) => database.url(`options=-c%20search_path%3D${schema}`);
  const error = await assertRejects(() => openStoreAt(url("one")));
  assertEquals(
    error.message,
    `Cannot open the store "${database.shown}": ` +
      "no schema of its search_path exists; create one",
  );
  await database.psql("CREATE SCHEMA one AUTHORIZATION weir; CREATE SCHEMA two AUTHORIZATION weir");
  await using one = await openStoreAt(url("one"));
  await using two = await openStoreAt(url("two,one"));
  await addEndpoint(one);
  await addEvent(one);
  const counts = await Promise.all(
    [one, two].map(async (store) => (await store.metrics(0)).deliveries.attempting),
  );
  assertEquals(counts, [1, 0]);
  const tables = await Promise.all(
    ["one", "two", "public"].map((schema) => database.psql(`${TABLES}'${schema}'`)),
  );
  assertEquals([tables[0] === tables[1], tables[2]], [true, "0"]);
});

postgres.test("schema: a user who may not make tables gets that error, and works with those that are there", async (database) => {
  // Roles belong to the whole server.
  const other = `other_${database.name}`;
  await database.psql(
    `CREATE ROLE ${other} LOGIN PASSWORD 'pw'; REVOKE CREATE ON SCHEMA public FROM PUBLIC`,
  );
  const url = database.url().replace(/weir:[^@]*@/, `${other}:pw@`);
  const shown = database.shown.replace("weir", other);
  const refused = await assertRejects(() => openStoreAt(url));
  assertEquals(
    refused.message,
    `Cannot migrate the store "${shown}" from version 0 to ${SCHEMA_VERSION}: its user lacks the permission; ` +
      "use one who owns the schema and its tables",
  );
  await (await openStoreAt(database.url())).close();
  const missing = await assertRejects(() => openStoreAt(url));
  assertMatch(missing.message, /permission denied for table schema_version/);
  await database.psql(
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${other};
       GRANT USAGE ON SCHEMA public TO ${other}`,
  );
  await using store = await openStoreAt(url);
  await saveVersion(store);
  await addEndpoint(store);
  await addEvent(store);
  assertEquals((await store.metrics(0)).deliveries.attempting, 1);
});

postgres.test("schema: a version means the same tables and columns as on SQLite", async (database) => {
  assertEquals([MIGRATIONS.postgres.length, MIGRATIONS.sqlite.length], [SCHEMA_VERSION, SCHEMA_VERSION]);
  await (await openStoreAt(database.url())).close();
  const found = await database.psql(
    `SELECT table_name || '.' || column_name || CASE WHEN is_nullable = 'NO' THEN ' NOT NULL' ELSE '' END
     FROM information_schema.columns WHERE table_schema = 'public'`,
  );
  // The order of rows is never nothing; and PostgreSQL has some tables and columns for itself.
  const own = /^(?:schema_version|turn|tally\.seq)|\.seq/;
  const columns = found.split("\n").filter((column) => !own.test(column)).sort();
  using folder = new StoreFolder();
  await (await folder.open()).close();
  const connection = new SqliteConnection(folder.path);
  const expected = connection.all(
    `SELECT t.name || '.' || c.name || CASE WHEN c."notnull" = 1 THEN ' NOT NULL' ELSE '' END AS name
     FROM sqlite_schema AS t JOIN pragma_table_xinfo(t.name) AS c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'`,
  ).map(({ name }) => String(name)).filter((column) => !own.test(column));
  connection.close();
  assertEquals(columns, expected.sort());
});

postgres.test("schema: no table and no column of either database is forgotten", async (database) => {
  using folder = new StoreFolder();
  await (await folder.open()).close();
  const sqlite = new SqliteConnection(folder.path, { readOnly: true });
  const inFile = sqlite.all(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  ).map((row) => text(row, "name"));
  const tables = sqlite.perform(storeTables());
  sqlite.close();
  assertEquals(inFile.toSorted(), TABLE_NAMES.toSorted());
  await withPostgresStore(database.url(), async (connection) => {
    await migratePostgres(transactionsOn(connection), { shownAddress: "here" });
    const names = await connection.perform(
      all("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"),
    );
    const inDatabase = names.map((row) => text(row, "name")).toSorted();
    // Of these no row says anything: the one is the version, the other is only ever locked.
    assertEquals(inDatabase, [...TABLE_NAMES, "schema_version", "turn"].toSorted());
    assertEquals(await connection.perform(storeTables()), tables);
  });
  assertEquals(tables.every(({ columns }) => columns.length >= 2), true);
});
