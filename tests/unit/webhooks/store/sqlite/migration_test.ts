import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "#assert";
import { DatabaseSync } from "node:sqlite";
import { migrate, schemaVersion } from "../../../../../src/webhooks/store/sqlite/migration.ts";
import { MIGRATIONS, SCHEMA_VERSION } from "../../../../../src/webhooks/store/schema.ts";
import { checkStore } from "../../../../../src/webhooks/store/maintenance/check.ts";
import { SqliteConnection } from "../../../../../src/webhooks/store/sqlite/connection.ts";
import { addEndpoint, addEvent, audit } from "../../../../contract/webhook_store_bed.ts";
import { QUIET, StoreFolder } from "../../../../harness/sqlite_fixture.ts";
import { addAudit, listAudit } from "../../../../../src/webhooks/store/operations/audit_log.ts";
import { listDeliveries } from "../../../../../src/webhooks/store/operations/deliveries.ts";

Deno.test("the first start makes the folder, the tables, and files for its owner alone", async () => {
  using folder = new StoreFolder();
  const told: unknown[] = [];
  const logger = { ...QUIET, info: (message: string, fields: unknown) => void told.push(message, fields) };
  const store = await folder.open({ logger });
  await store.write(addAudit, audit());
  assertEquals((await checkStore(folder.path)).schemaVersion, SCHEMA_VERSION);
  assertEquals(modes(folder.path), [0o600, 0o600, 0o600]);
  await store.close();
  assertEquals(told, ["Store migrated", { path: folder.path, from: 0, to: SCHEMA_VERSION }]);

  // A file that others may read is closed to them at the next start; and a second start says nothing.
  Deno.chmodSync(folder.path, 0o644);
  const again = await folder.open({ logger });
  await again.write(addAudit, audit());
  assertEquals(modes(folder.path), [0o600, 0o600, 0o600]);
  assertEquals([told.length, (await again.read(listAudit, { limit: 9 })).items.length], [2, 2]);
  await again.close();
});

Deno.test("commits are durable: a write-ahead log that is synced, and references that are kept", () => {
  using folder = new StoreFolder();
  const connection = new SqliteConnection(folder.path, { busyTimeoutMs: 77 });
  const pragmas = ["journal_mode", "synchronous", "foreign_keys", "busy_timeout", "secure_delete"];
  const values = pragmas.map((name) => Object.values(connection.get(`PRAGMA ${name}`) ?? {})[0]);
  connection.close();
  assertEquals(values, ["wal", 2, 1, 77, 1]);
});

Deno.test("a store of a newer release is refused, and left as it is", async () => {
  using folder = new StoreFolder();
  await (await folder.open()).close();
  const newer = SCHEMA_VERSION + 1;
  script(folder.path, `PRAGMA user_version = ${newer}`);
  const error = await assertRejects(() => folder.open());
  assertEquals(
    error.message,
    `Cannot open the store "${folder.path}": its schema has version ${newer}, ` +
      `this release supports ${SCHEMA_VERSION} and older; a newer release is needed`,
  );
  const checked = await assertRejects(() => checkStore(folder.path));
  assertStringIncludes(checked.message, `its schema has version ${newer}`);
});

Deno.test("a file that is no database is refused, and left as it is", async () => {
  using folder = new StoreFolder();
  await (await folder.open()).close();
  const content = "this is no database, ".repeat(1_000);
  Deno.writeTextFileSync(folder.path, content);
  const error = await assertRejects(() => folder.open());
  assertEquals(error.name, "StoreError");
  assertEquals(Deno.readTextFileSync(folder.path), content);
});

Deno.test("a store of version 1 is brought up to date, with all that it holds, or not at all", async () => {
  using folder = new StoreFolder();
  const [first = []] = MIGRATIONS.sqlite;
  const old = new SqliteConnection(folder.path);
  assertEquals(migrate(old, [first]), 1);
  old.close();
  const store = await folder.open();
  await addEndpoint(store);
  await addEvent(store);
  const before = await store.read(listDeliveries, { limit: 9 });
  await store.close();

  const connection = new SqliteConnection(folder.path);
  const steps = [
    ...MIGRATIONS.sqlite,
    ["CREATE TABLE later (a INTEGER) STRICT", "ALTER TABLE event ADD COLUMN b TEXT"],
  ];
  assertThrows(() => migrate(connection, [...steps, ["CREATE TABLE last (a)", "CREATE TABLE event (a)"]]));
  assertEquals([schemaVersion(connection), tables(connection)], [SCHEMA_VERSION, 0]);
  assertEquals(migrate(connection, steps), steps.length);
  assertEquals([schemaVersion(connection), tables(connection)], [steps.length, 1]);
  assertEquals(migrate(connection, steps), steps.length);
  connection.close();
  script(folder.path, `PRAGMA user_version = ${SCHEMA_VERSION}`);
  const again = await folder.open();
  assertEquals(await again.read(listDeliveries, { limit: 9 }), before);
  await again.close();
});

function tables(connection: SqliteConnection): number {
  return connection.all("SELECT 1 FROM sqlite_schema WHERE name IN ('later', 'last')").length;
}

function script(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

function modes(path: string): number[] {
  return ["", "-wal", "-shm"].map((ending) => (Deno.statSync(`${path}${ending}`).mode ?? 0) & 0o777);
}
