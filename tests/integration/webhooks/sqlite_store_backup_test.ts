import { assert, assertEquals, assertRejects } from "#assert";
import { DatabaseSync } from "node:sqlite";
import { SCHEMA_VERSION } from "../../../src/webhooks/store/schema.ts";
import { backupStore } from "../../../src/webhooks/store/maintenance/backup.ts";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import { openSqliteStore } from "../../../src/webhooks/store/sqlite/store.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { NOW } from "../../contract/webhook_store_bed.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { until } from "../../harness/until.ts";
import { QUIET, StoreFolder } from "../../harness/sqlite_fixture.ts";
import { dueEndpoints } from "../../../src/webhooks/store/operations/delivery_claims.ts";
import { findEvent } from "../../../src/webhooks/store/operations/events.ts";
import { findExecution } from "../../../src/webhooks/store/operations/executions.ts";

Deno.test("a copy holds one moment while another process writes, and is its own store", async () => {
  using folder = new StoreFolder();
  const child = new URL("../../harness/sqlite_crash_child.ts", import.meta.url).pathname;
  await using running = new ChildProcess(Deno.execPath(), {
    args: ["run", "-A", "--no-check", child, folder.path],
  });
  await until("it writes", () => running.stdoutLines.length > 100, { intervalMs: 1 });
  const answered = [...running.stdoutLines];
  const target = folder.file("copy.db");
  const { bytes, schemaVersion } = await backupStore(folder.path, target);
  await running.kill();

  const stat = Deno.statSync(target);
  assertEquals([stat.size, (stat.mode ?? 0) & 0o777, schemaVersion], [
    bytes,
    0o600,
    SCHEMA_VERSION,
  ]);
  const { problems, counts } = await checkStore(target);
  assertEquals(problems, []);
  assert((counts["event"] ?? 0) + (counts["execution"] ?? 0) >= answered.length);
  const copy = await openSqliteStore({ path: target, logger: QUIET, clock: systemClock });
  for (const [what, id = ""] of answered.map((line) => line.split(" "))) {
    assert(
      (what === "event" ? await copy.read(findEvent, id) : await copy.read(findExecution, id)) !== undefined,
    );
  }
  const [to] = await copy.read(dueEndpoints, NOW);
  const { dueNow } = await copy.metrics(NOW);
  assert(to !== undefined && dueNow === counts["delivery"], "what was open is due in the copy");
  await copy.close();
});

Deno.test("a copy of several steps holds one moment, and writes between the steps do not start it over", async () => {
  using folder = new StoreFolder();
  await (await folder.open()).close();
  using writer = new DatabaseSync(folder.path);
  writer.exec("CREATE TABLE filler (bytes BLOB)");
  const insert = writer.prepare("INSERT INTO filler VALUES (zeroblob(1000000))");
  for (let blob = 0; blob < 60; blob++) insert.run();
  const shares: number[] = [];
  const target = folder.file("copy.db");
  await backupStore(folder.path, target, (share) => {
    shares.push(share);
    insert.run();
  });
  assert(shares.length > 0 && shares.every((share, index) => share > (shares[index - 1] ?? 0) && share < 1));
  using copy = new DatabaseSync(target);
  assertEquals({ ...copy.prepare("SELECT count(*) AS count FROM filler").get() }, { count: 60 });
});

Deno.test("a copy replaces nothing, and is not begun where the store is missing or none", async () => {
  using folder = new StoreFolder();
  const target = folder.file("copy.db");
  const missing = await assertRejects(() => backupStore(folder.path, target));
  assertEquals(missing.message, `Cannot open the store "${folder.path}": there is no such file`);
  const emptyFile = folder.file("empty.db");
  Deno.writeTextFileSync(emptyFile, "");
  const empty = await assertRejects(() => backupStore(emptyFile, target));
  assertEquals(
    empty.message,
    `Cannot open the store "${emptyFile}": it holds no store`,
  );
  await (await folder.open()).close();
  Deno.writeTextFileSync(target, "precious");
  const taken = await assertRejects(() => backupStore(folder.path, target));
  assertEquals(taken.message, `Cannot write the copy "${target}": the file exists`);
  assertEquals(Deno.readTextFileSync(target), "precious");
  await assertRejects(() => backupStore(folder.path, folder.file("no/such/folder.db")));
});
