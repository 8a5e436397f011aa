import { assert, assertEquals } from "@std/assert";
import { migratePostgres } from "../../../src/webhooks/postgres_migration.ts";
import { SqliteConnection } from "../../../src/webhooks/sqlite_store_connection.ts";
import { transactionsOn, withPostgresStore } from "../../../src/webhooks/store_connection.ts";
import { storeTables, TABLE_NAMES, TableReader } from "../../../src/webhooks/store_tables.ts";
import { text } from "../../../src/webhooks/store_rows.ts";
import { all, type Row } from "../../../src/webhooks/store_work.ts";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { needs } from "../../harness/tools.ts";
import { StoreFolder } from "../../harness/sqlite_fixture.ts";
import { fillRandomly } from "../../harness/store_move_fixture.ts";

Deno.test({
  ...needs(["postgres"], "no table and no column of either database is forgotten"),
  async fn() {
    using folder = new StoreFolder();
    fillRandomly(folder.path, { rows: 0, random: seededRandom(1) });
    const sqlite = new SqliteConnection(folder.path, { readOnly: true });
    const inFile = sqlite.all(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )
      .map((row) => text(row, "name"));
    const tables = sqlite.perform(storeTables());
    sqlite.close();
    assertEquals(inFile.toSorted(), TABLE_NAMES.toSorted());

    await using server = await PostgresServer.start();
    await withPostgresStore(server.url(await server.createDatabase()), async (connection) => {
      await migratePostgres(transactionsOn(connection), { shownAddress: "here" });
      const names = await connection.perform(
        all("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"),
      );
      const inDatabase = names.map((row) => text(row, "name")).toSorted();
      // Of these no row says anything: the one is the version, the other is only ever locked.
      assertEquals(inDatabase, [...TABLE_NAMES, "schema_version", "turn"].toSorted());
      assertEquals(await connection.perform(storeTables()), tables);
    });
    assert(tables.every(({ columns }) => columns.length >= 2));
  },
});

Deno.test("a table is read in portions that memory can hold, each row once", () => {
  using folder = new StoreFolder();
  fillRandomly(folder.path, { rows: 0, random: seededRandom(1) });
  const connection = new SqliteConnection(folder.path);
  const sizes = [
    ...Array.from({ length: 700 }, () => 10),
    ...Array.from({ length: 9 }, () => 1_500_000),
    9_000_000,
    1,
    1,
  ];
  connection.transaction(() => {
    for (const [index, size] of sizes.entries()) {
      connection.run(
        "INSERT INTO event (id, kind, created_at, body) VALUES (?, 'k', 1, zeroblob(?))",
        String(index),
        size,
      );
    }
  });
  const table = connection.perform(storeTables()).find(({ name }) => name === "event");
  assert(table !== undefined);
  const reader = new TableReader(table);
  const portions: (readonly Row[])[] = [];
  for (;;) {
    const rows = connection.perform(reader.next());
    if (rows.length === 0) break;
    portions.push(rows);
  }
  connection.close();
  assertEquals(portions.map(({ length }) => length), [256, 256, 190, 2, 2, 2, 1, 1, 2]);
  assertEquals(portions.flat().map(({ seq }) => seq), sizes.map((_, index) => index + 1));
});
