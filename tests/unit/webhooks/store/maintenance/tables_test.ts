import { assert, assertEquals } from "#assert";
import { SqliteConnection } from "../../../../../src/webhooks/store/sqlite/connection.ts";
import { storeTables, TableReader } from "../../../../../src/webhooks/store/maintenance/tables.ts";
import type { Row } from "../../../../../src/webhooks/store/work.ts";
import { seededRandom } from "../../../../harness/seeded_random.ts";
import { StoreFolder } from "../../../../harness/sqlite_fixture.ts";
import { fillRandomly } from "../../../../harness/store_move_fixture.ts";

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
