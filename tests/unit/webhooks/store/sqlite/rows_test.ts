import { assert, assertEquals } from "#assert";
import { DatabaseSync } from "node:sqlite";
import {
  ACKNOWLEDGED,
  addEndpoint,
  addEvent,
  allPages,
  audit,
  auditLog,
  claim,
  claimOne,
  claimRuns,
  DAY,
  deliveryOf,
  execution,
  finish,
  newId,
  NOW,
  saveVersion,
} from "../../../../contract/webhook_store_bed.ts";
import { RecordedLogger } from "../../../../harness/recorded_logger.ts";
import { StoreFolder } from "../../../../harness/sqlite_fixture.ts";
import { acceptExecution, saveWorkflowVersion } from "../../../../../src/webhooks/store/operations/accept.ts";
import { addAudit, listAudit } from "../../../../../src/webhooks/store/operations/audit_log.ts";
import { erasePayload, listEvents } from "../../../../../src/webhooks/store/operations/events.ts";
import { findExecution } from "../../../../../src/webhooks/store/operations/executions.ts";
import { removeFinished } from "../../../../../src/webhooks/store/operations/retention.ts";

Deno.test("a delivery whose event has lost its payload fails alone, and the log tells of it", async () => {
  using folder = new StoreFolder();
  const logger = new RecordedLogger();
  const store = await folder.open({ logger });
  const to = await addEndpoint(store);
  const [bad, good] = [await addEvent(store), await addEvent(store)];
  script(folder.path, `UPDATE event SET body = NULL WHERE id = '${bad.id}'`);
  const claimed = await claim(store, [to]);
  assertEquals(claimed.map(({ delivery }) => delivery.eventId), [good.id]);
  const { id, state, reason } = await deliveryOf(store, bad.id);
  assertEquals([state, reason], ["failed", "payload_erased"]);
  assertEquals(await auditLog(store), [`delivery.failed delivery:${id}`]);
  assertEquals(logger.lines.filter(({ level }) => level === "error").map(({ fields }) => fields), [{
    delivery: id,
  }]);
  await store.close();
});

Deno.test("an execution whose workflow's text is gone fails alone, with its event", async () => {
  using folder = new StoreFolder();
  const logger = new RecordedLogger();
  const store = await folder.open({ logger });
  await addEndpoint(store, { events: ["workflow.*"] });
  await saveVersion(store);
  await store.write(saveWorkflowVersion, { id: "v2", workflow: "w", text: "workflow: w" });
  const [bad, good] = [execution(), execution({ versionId: "v2" })];
  for (const added of [bad, good]) await store.write(acceptExecution, added, { now: NOW });
  script(folder.path, "PRAGMA foreign_keys = OFF; DELETE FROM workflow_version WHERE id = 'v1'");
  assertEquals((await claimRuns(store, { logger })).map((claimed) => claimed.execution.id), [good.id]);
  const found = (await store.read(findExecution, bad.id))?.execution;
  assertEquals([found?.status, found?.error, found?.dueAt], [
    "failed",
    "its workflow's text is gone",
    undefined,
  ]);
  const { items: [event, ...more] } = await store.read(listEvents, { limit: 9 });
  assert(event !== undefined && more.length === 0);
  assertEquals((await deliveryOf(store, event.id)).state, "attempting");
  assertEquals(logger.lines.filter(({ level }) => level === "error").map(({ fields }) => fields), [
    { execution: bad.id },
  ]);
  const { executions } = await store.metrics(NOW);
  assertEquals(executions, { queued: 0, running: 1, succeeded: 0, failed: 1, cancelled: 0 });
  await store.close();
});

Deno.test("old rows are removed no faster than was asked for, though an event goes with its last delivery", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  const to = await addEndpoint(store);
  await addEvent(store);
  await finish(store, await claimOne(store, to), ACKNOWLEDGED);
  for (let index = 0; index < 3; index++) await store.write(addAudit, audit());
  const entries = async () => (await store.read(listAudit, { limit: 9 })).items.length;
  const before = await entries();
  const remove = () => store.write(removeFinished, { before: NOW + DAY, now: NOW, max: 1 });
  assertEquals([await remove(), await entries()], [2, before]);
  assertEquals([await remove(), await entries()], [1, before - 1]);
  await store.close();
});

function script(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

Deno.test("an erased payload is in no file of an idle store, at the latest when no other process reads it", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  const bodies = ["the-first-payload", "the-second-payload"];
  const [first, second] = await Promise.all(
    bodies.map((body) => addEvent(store, { body: new TextEncoder().encode(body) })),
  );
  const kept = () =>
    bodies.filter((body) =>
      ["", "-wal"].some((ending) =>
        new TextDecoder("latin1").decode(Deno.readFileSync(`${folder.path}${ending}`)).includes(body)
      )
    );
  assertEquals(kept(), bodies);
  await store.write(erasePayload, first?.id ?? "", { now: NOW, audit: audit(), newId });
  assertEquals(kept(), bodies.slice(1));

  const reader = new DatabaseSync(folder.path, { readOnly: true });
  reader.exec("BEGIN; SELECT count(*) FROM event");
  await store.write(erasePayload, second?.id ?? "", { now: NOW, audit: audit(), newId });
  assertEquals(kept(), bodies.slice(1));
  reader.close();
  await store.metrics(NOW);
  assertEquals(kept(), []);
  await store.close();
});

Deno.test("a list since a time is right with more rows than are looked at for its beginning", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  const rows = Array.from(
    { length: 10_500 },
    (_, index) => audit({ at: NOW + index, action: index % 5_000 === 0 ? "rare" : "often" }),
  );
  await Promise.all(rows.map((row) => store.write(addAudit, row)));
  const list = (since: number, event?: string) =>
    allPages((options) => store.read(listAudit, options), { limit: 3_000, since, event });
  for (
    const since of [NOW, NOW + 1, NOW + 499, NOW + 500, NOW + 501, NOW + 502, NOW + 10_499, NOW + 10_500]
  ) {
    assertEquals((await list(since)).length, 10_500 - (since - NOW));
  }
  assertEquals((await list(NOW + 1, "rare")).map(({ at }) => at - NOW), [10_000, 5_000]);
  assertEquals((await list(NOW + 600, "rare")).map(({ at }) => at - NOW), [10_000, 5_000]);
  await store.close();
});

Deno.test("the used size of a file shrinks with what is removed, and its file does not", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  const empty = await store.usedBytes();
  for (let n = 0; n < 20; n++) await addEvent(store, { body: new Uint8Array(20_000) });
  const [full, { bytes }] = [await store.usedBytes(), await store.metrics(NOW)];
  assert(full > empty + 400_000, `${empty}, ${full}`);
  assertEquals(await store.write(removeFinished, { before: NOW + DAY, now: NOW + DAY, max: 500 }), 20);
  const used = await store.usedBytes();
  assert(used < empty + 50_000, `${empty}, ${used}`);
  assert((await store.metrics(NOW)).bytes >= bytes);
  await store.close();
});
