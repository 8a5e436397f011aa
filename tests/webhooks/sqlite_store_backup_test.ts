import { assert, assertEquals, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { migrate, MIGRATIONS } from "../../src/webhooks/sqlite_schema.ts";
import { SqliteConnection } from "../../src/webhooks/sqlite_store_connection.ts";
import { backupStore, checkStore } from "../../src/webhooks/sqlite_store_backup.ts";
import { openSqliteStore } from "../../src/webhooks/sqlite_store.ts";
import { systemClock } from "../../src/base/clock.ts";
import {
  addEndpoint,
  addEvent,
  audit,
  begin,
  claimOne,
  execution,
  newId,
  NOW,
  saveVersion,
} from "../contract/webhook_store_bed.ts";
import { ChildProcess } from "../support/child_process.ts";
import { until } from "../support/until.ts";
import { QUIET, StoreFolder } from "./sqlite_fixture.ts";

Deno.test("a copy holds one moment while another process writes, and is a store of its own", async () => {
  using folder = new StoreFolder();
  const child = new URL("sqlite_crash_child.ts", import.meta.url).pathname;
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
    MIGRATIONS.length,
  ]);
  const { problems, counts } = await checkStore(target);
  assertEquals(problems, []);
  assert((counts["event"] ?? 0) + (counts["execution"] ?? 0) >= answered.length);
  const copy = await openSqliteStore({ path: target, logger: QUIET, clock: systemClock });
  for (const [what, id = ""] of answered.map((line) => line.split(" "))) {
    assert((what === "event" ? await copy.findEvent(id) : await copy.findExecution(id)) !== undefined);
  }
  const [to] = await copy.dueEndpoints(NOW);
  const { dueNow } = await copy.figures(NOW);
  assert(to !== undefined && dueNow === counts["delivery"], "what was open is due in the copy");
  await copy.close();
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
    `Cannot open the store "${emptyFile}": it holds no store, this release knows 1 to ${MIGRATIONS.length}`,
  );
  await (await folder.open()).close();
  Deno.writeTextFileSync(target, "precious");
  const taken = await assertRejects(() => backupStore(folder.path, target));
  assertEquals(taken.message, `Cannot write the copy "${target}": there is a file of that name`);
  assertEquals(Deno.readTextFileSync(target), "precious");
  await assertRejects(() => backupStore(folder.path, folder.file("no/such/folder.db")));
});

Deno.test("a check counts the rows of a store that is whole, and changes nothing", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  const to = await addEndpoint(store);
  await addEvent(store);
  await begin(store, await claimOne(store, to));
  await saveVersion(store);
  await store.acceptExecution(execution(), { now: NOW });
  const { problems, schemaVersion, bytes, counts } = await checkStore(folder.path);
  assertEquals([problems, schemaVersion, bytes > 0], [[], MIGRATIONS.length, true]);
  assertEquals(counts, {
    attempt: 1,
    audit: 1,
    delivery: 1,
    endpoint: 1,
    endpoint_secret: 1,
    event: 1,
    event_key: 0,
    execution: 1,
    execution_step: 0,
    idempotency: 0,
    trigger_key: 0,
    workflow_trigger: 0,
    workflow_version: 1,
  });
  await store.addAudit(audit());
  await store.close();
});

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
  "PRAGMA foreign_keys = OFF; DELETE FROM event": "a row of delivery names one of event that is not there",
};

Deno.test("a check names what is wrong", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  const to = await addEndpoint(store);
  await addEvent(store);
  await begin(store, await claimOne(store, to));
  await saveVersion(store);
  await store.acceptExecution(execution(), { now: NOW });
  await store.close();
  for (const [index, [damage, problem]] of Object.entries(DAMAGES).entries()) {
    const copy = folder.file(`${index}.db`);
    await backupStore(folder.path, copy);
    const database = new DatabaseSync(copy);
    database.exec(damage);
    database.close();
    const { problems } = await checkStore(copy);
    assert(problems.some((line) => line.includes(problem)), `${damage}: ${problems.join("; ")}`);
  }
});

Deno.test("a check finds nothing wrong while a removal is under way, nor in a store of version 1", async () => {
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
