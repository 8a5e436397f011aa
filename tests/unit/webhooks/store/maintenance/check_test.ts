import { assert, assertEquals } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { migrate } from "../../../../../src/webhooks/store/sqlite/migration.ts";
import { MIGRATIONS, SCHEMA_VERSION } from "../../../../../src/webhooks/store/schema.ts";
import { SqliteConnection } from "../../../../../src/webhooks/store/sqlite/connection.ts";
import { backupStore } from "../../../../../src/webhooks/store/maintenance/backup.ts";
import { checkStore } from "../../../../../src/webhooks/store/maintenance/check.ts";
import { addEndpoint, addEvent, audit, newId, NOW } from "../../../../contract/webhook_store_bed.ts";
import { StoreFolder } from "../../../../harness/sqlite_fixture.ts";
import { COUNTS, DAMAGES } from "../../../../harness/store_check_cases.ts";
import { fillLikeService } from "../../../../harness/store_move_fixture.ts";
import { addAudit } from "../../../../../src/webhooks/store/audit_log.ts";
import { deleteEndpoint } from "../../../../../src/webhooks/store/endpoints.ts";

const REFERENCE = "PRAGMA foreign_keys = OFF; DELETE FROM event";

Deno.test("a check counts the rows of a file that is whole, changes nothing, and names what is wrong", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  await fillLikeService(store);
  const { problems, schemaVersion, bytes, counts, shown } = await checkStore(folder.path);
  assertEquals([problems, schemaVersion, bytes > 0, shown], [[], SCHEMA_VERSION, true, folder.path]);
  assertEquals(counts, COUNTS);
  await store.write(addAudit, audit());
  await store.close();
  const damages = { ...DAMAGES, [REFERENCE]: "a row of delivery references a missing row of event" };
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

Deno.test("a check finds nothing wrong while a removal is under way, nor in a file of version 1", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  const to = await addEndpoint(store);
  await Promise.all(Array.from({ length: 501 }, () => addEvent(store)));
  await store.write(deleteEndpoint, to.id, { now: NOW, audit: audit(), newId });
  assertEquals((await checkStore(folder.path)).problems, []);
  assertEquals((await store.metrics(NOW)).deliveries.attempting, 1);
  await store.close();

  using old = new StoreFolder();
  const connection = new SqliteConnection(old.path);
  migrate(connection, MIGRATIONS.sqlite.slice(0, 1));
  connection.close();
  const { problems, schemaVersion } = await checkStore(old.path);
  assertEquals([problems, schemaVersion], [[], 1]);
});
