import { assertEquals, assertRejects } from "@std/assert";
import { parsePostgresAddress } from "../../../src/base/postgres_address.ts";
import { PostgresConnection } from "../../../src/webhooks/store/postgres/connection.ts";
import { migratePostgres } from "../../../src/webhooks/store/postgres/migration.ts";
import { MIGRATIONS, SCHEMA_VERSION } from "../../../src/webhooks/store/schema.ts";
import { SqliteConnection } from "../../../src/webhooks/store/sqlite/connection.ts";
import { withPostgresStore } from "../../../src/webhooks/store/maintenance/connection.ts";
import { transactionsOn } from "../../../src/webhooks/store/maintenance/connection.ts";
import { text } from "../../../src/webhooks/store/rows.ts";
import { storeTables, TABLE_NAMES } from "../../../src/webhooks/store/maintenance/tables.ts";
import { all } from "../../../src/webhooks/store/work.ts";
import { addEndpoint, addEvent, audit, saveVersion } from "../../contract/webhook_store_bed.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { needs } from "../../harness/tools.ts";
import { NO_LIMITS, openStoreAt, sharedPostgres } from "../../harness/postgres_fixture.ts";
import { QUIET, StoreFolder } from "../../harness/sqlite_fixture.ts";
import { addAudit, listAudit } from "../../../src/webhooks/store/audit_log.ts";
import { findEvent } from "../../../src/webhooks/store/events.ts";

const server = sharedPostgres();
const TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = ";

function postgresTest(name: string, run: (database: string) => Promise<void>): void {
  Deno.test({
    ...needs(["postgres"], `schema on postgres: ${name}`),
    async fn() {
      await run(await server().createDatabase());
    },
  });
}

postgresTest("of many stores that are opened at once one makes the tables", async (database) => {
  const told: unknown[] = [];
  const logger = { ...QUIET, info: (message: string, fields: unknown) => void told.push(message, fields) };
  const stores = await Promise.all(
    Array.from({ length: 8 }, () => openStoreAt(server().url(database), { logger })),
  );
  const address = `postgres://weir@127.0.0.1:${server().port}/${database}`;
  assertEquals(told, ["Store migrated", { address, from: 0, to: SCHEMA_VERSION }]);
  await Promise.all(stores.map((store) => store.write(addAudit, audit())));
  assertEquals((await stores[0]?.read(listAudit, { limit: 9 }))?.items.length, 8);
  assertEquals(await server().psql("SELECT version FROM schema_version", database), String(SCHEMA_VERSION));
  for (const store of stores) await store.close();
});

postgresTest("of many processes that start at once one makes the tables", async (database) => {
  const child = new URL("postgres_start_child.ts", import.meta.url).pathname;
  const children = Array.from(
    { length: 8 },
    () =>
      new ChildProcess(Deno.execPath(), { args: ["run", "-A", "--no-check", child, server().url(database)] }),
  );
  const exits = await Promise.all(children.map(({ exited }) => exited));
  assertEquals(exits.map(({ code }) => code), Array(8).fill(0), children[0]?.stderrLines.join("\n"));
  const lines = children.flatMap(({ stdoutLines }) => stdoutLines);
  assertEquals(lines, ["Store migrated"]);
  assertEquals(
    await server().psql("SELECT count(*), (SELECT count(*) FROM schema_version) FROM audit", database),
    "8|1",
  );
});

postgresTest(
  "a store of a newer release is refused, and left as it is; so is one that is half filled",
  async (database) => {
    await (await openStoreAt(server().url(database))).close();
    const shown = `postgres://weir@127.0.0.1:${server().port}/${database}`;
    const newer = SCHEMA_VERSION + 1;
    const refused = async (version: number) => {
      await server().psql(`UPDATE schema_version SET version = ${version}`, database);
      const error = await assertRejects(() => openStoreAt(server().url(database)));
      assertEquals(await server().psql("SELECT version FROM schema_version", database), String(version));
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
  },
);

postgresTest(
  "a store of version 1 is brought up to date, with all that it holds, or not at all",
  async (database) => {
    const url = server().url(database);
    const [first = []] = MIGRATIONS.postgres;
    await server().psql(
      `SET ROLE weir; ${first.join("; ")}; CREATE TABLE schema_version (version BIGINT NOT NULL);
     INSERT INTO schema_version VALUES (1); INSERT INTO event (id, kind, created_at) VALUES ('e', 'k', 1);
     CREATE TABLE turn (a INTEGER)`,
      database,
    );
    const error = await assertRejects(() => openStoreAt(url));
    assertEquals(error.message.includes('relation "turn" already exists'), true, error.message);
    const state =
      "SELECT version, (SELECT count(*) FROM pg_tables WHERE tablename IN ('removal', 'swept')) FROM schema_version";
    assertEquals(await server().psql(state, database), "1|0");
    await server().psql("DROP TABLE turn", database);
    const store = await openStoreAt(url);
    assertEquals((await store.read(findEvent, "e"))?.kind, "k");
    assertEquals(await server().psql(state, database), `${SCHEMA_VERSION}|2`);
    await store.close();
  },
);

postgresTest("the server does not limit how long a migration takes", async (database) => {
  await server().psql(
    `CREATE FUNCTION refuse_limit() RETURNS event_trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF current_setting('statement_timeout') <> '0' THEN
           RAISE EXCEPTION 'limited to %', current_setting('statement_timeout');
         END IF;
       END $$;
     CREATE EVENT TRIGGER refuse_limit ON ddl_command_start EXECUTE FUNCTION refuse_limit()`,
    database,
  );
  const store = await openStoreAt(server().url(database));
  assertEquals(await server().psql("SELECT version FROM schema_version", database), String(SCHEMA_VERSION));
  await store.close();
});

postgresTest("a statement without a limit is waited for without a timer", async (database) => {
  const clock = new FakeClock();
  const address = parsePostgresAddress(server().url(database));
  const host = { host: "127.0.0.1", port: server().port };
  const options = { clock, ...NO_LIMITS, statementTimeoutMs: 0 };
  const connection = await PostgresConnection.open(address, host, options);
  const answer = connection.query("SHOW statement_timeout", [], "rows");
  assertEquals(clock.waiting, 0);
  assertEquals((await answer).rows[0]?.["statement_timeout"], "0");
  await connection.close();
});

postgresTest("tables are made where the search path says, one store in each schema", async (database) => {
  const url = (schema: string) => server().url(database, `options=-c%20search_path%3D${schema}`);
  const error = await assertRejects(() => openStoreAt(url("one")));
  assertEquals(
    error.message,
    `Cannot open the store "postgres://weir@127.0.0.1:${server().port}/${database}": ` +
      "no schema of its search_path exists; create one",
  );
  await server().psql("CREATE SCHEMA one AUTHORIZATION weir; CREATE SCHEMA two AUTHORIZATION weir", database);
  const [one, two] = [await openStoreAt(url("one")), await openStoreAt(url("two,one"))];
  await addEndpoint(one);
  await addEvent(one);
  const counts = await Promise.all(
    [one, two].map(async (store) => (await store.metrics(0)).deliveries.attempting),
  );
  assertEquals(counts, [1, 0]);
  const tables = await Promise.all(
    ["one", "two", "public"].map((schema) => server().psql(`${TABLES}'${schema}'`, database)),
  );
  assertEquals([tables[0] === tables[1], tables[2]], [true, "0"]);
  for (const store of [one, two]) await store.close();
});

postgresTest(
  "a user who may not make tables is told so, and works with those that are there",
  async (database) => {
    // Roles belong to the whole server.
    const other = `other_${database}`;
    await server().psql(
      `CREATE ROLE ${other} LOGIN PASSWORD 'pw'; REVOKE CREATE ON SCHEMA public FROM PUBLIC`,
      database,
    );
    const url = server().url(database).replace(/weir:[^@]*@/, `${other}:pw@`);
    const shown = `postgres://${other}@127.0.0.1:${server().port}/${database}`;
    const refused = await assertRejects(() => openStoreAt(url));
    assertEquals(
      refused.message,
      `Cannot migrate the store "${shown}" from version 0 to ${SCHEMA_VERSION}: its user lacks the permission; ` +
        "use one who owns the schema and its tables",
    );
    await (await openStoreAt(server().url(database))).close();
    const missing = await assertRejects(() => openStoreAt(url));
    assertEquals(
      missing.message.includes("permission denied for table schema_version"),
      true,
      missing.message,
    );
    await server().psql(
      `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${other};
       GRANT USAGE ON SCHEMA public TO ${other}`,
      database,
    );
    const store = await openStoreAt(url);
    await saveVersion(store);
    await addEndpoint(store);
    await addEvent(store);
    assertEquals((await store.metrics(0)).deliveries.attempting, 1);
    await store.close();
  },
);

postgresTest("a version means the same tables and columns as on SQLite", async (database) => {
  assertEquals([MIGRATIONS.postgres.length, MIGRATIONS.sqlite.length], [SCHEMA_VERSION, SCHEMA_VERSION]);
  await (await openStoreAt(server().url(database))).close();
  const found = await server().psql(
    `SELECT table_name || '.' || column_name || CASE WHEN is_nullable = 'NO' THEN ' NOT NULL' ELSE '' END
     FROM information_schema.columns WHERE table_schema = 'public'`,
    database,
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

postgresTest("no table and no column of either database is forgotten", async (database) => {
  using folder = new StoreFolder();
  await (await folder.open()).close();
  const sqlite = new SqliteConnection(folder.path, { readOnly: true });
  const inFile = sqlite.all(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  ).map((row) => text(row, "name"));
  const tables = sqlite.perform(storeTables());
  sqlite.close();
  assertEquals(inFile.toSorted(), TABLE_NAMES.toSorted());
  await withPostgresStore(server().url(database), async (connection) => {
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
