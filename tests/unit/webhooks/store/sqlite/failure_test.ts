import { assert, assertEquals } from "#assert";
import { DatabaseSync } from "node:sqlite";
import { addEvent, audit, endpoint, event, NOW } from "../../../../contract/webhook_store_bed.ts";
import { StoreFolder } from "../../../../harness/sqlite_fixture.ts";
import { acceptEvent } from "../../../../../src/webhooks/store/operations/accept.ts";
import { addAudit, listAudit } from "../../../../../src/webhooks/store/operations/audit_log.ts";
import { createEndpoint, listEndpoints } from "../../../../../src/webhooks/store/operations/endpoints.ts";
import { listEvents } from "../../../../../src/webhooks/store/operations/events.ts";
import { cancelExecution } from "../../../../../src/webhooks/store/operations/executions.ts";
import type { StoreError, WebhookStore } from "../../../../../src/webhooks/store/store.ts";

Deno.test("a full disk refuses what does not fit, loses nothing, and is over when there is room", async () => {
  using folder = new StoreFolder();
  const accepted: string[] = [];
  {
    await using small = closing(await folder.open({ pragmas: ["max_page_count = 120"] }));
    const { store } = small;
    for (let index = 0; index < 200 && accepted.length === index; index++) {
      const added = event({ body: new Uint8Array(16_000) });
      const answer = await store.write(acceptEvent, added, { now: NOW }).then(() => undefined, codeOf);
      if (answer === undefined) accepted.push(added.id);
      else assertEquals(answer, "full");
    }
    assert(accepted.length > 3 && accepted.length < 200, `Expected some to fit, not ${accepted.length}`);

    // One that does not fit fails no other of the same turn, and reading goes on.
    const answers = await Promise.all([
      store.write(cancelExecution, "none", NOW).then(() => "done", codeOf),
      store.write(acceptEvent, event({ body: new Uint8Array(64_000) }), { now: NOW }).then(
        () => "done",
        codeOf,
      ),
    ]);
    assertEquals(answers[1], "full");
    assert(["done", "full"].includes(answers[0] ?? ""));
    assertEquals(ids(await store.read(listEvents, { limit: 200 })), accepted.toReversed());
    assertEquals(await store.write(cancelExecution, "none", NOW), undefined);
  }
  await using larger = closing(await folder.open());
  assertEquals(ids(await larger.store.read(listEvents, { limit: 200 })), accepted.toReversed());
  await addEvent(larger.store, { body: new Uint8Array(64_000) });
});

Deno.test("a store that cannot be written refuses to write, and reads", async () => {
  using folder = new StoreFolder();
  await using writable = closing(await folder.open());
  const added = await addEvent(writable.store);
  await using fixed = closing(await folder.open({ pragmas: ["query_only = ON"] }));
  assertEquals(await fixed.store.write(addAudit, audit()).catch(codeOf), "read_only");
  assertEquals(await fixed.store.write(acceptEvent, event(), { now: NOW }).catch(codeOf), "read_only");
  assertEquals(ids(await fixed.store.read(listEvents, { limit: 9 })), [added.id]);
  assertEquals((await writable.store.read(listAudit, { limit: 9 })).items, []);
});

Deno.test("no more than a bounded number of operations wait", async () => {
  using folder = new StoreFolder();
  await using opened = closing(await folder.open({ maxWaiting: 3 }));
  const { store } = opened;
  const answers = [1, 2, 3, 4].map(() => store.write(addAudit, audit()).then(() => "done", codeOf));
  assertEquals(opened.store.waiting, 3);
  assertEquals(await Promise.all(answers), ["done", "done", "done", "busy"]);
  await store.write(addAudit, audit());
  assertEquals((await store.read(listAudit, { limit: 9 })).items.length, 4);
});

Deno.test("what is asked for in one turn is one commit, and many are several", async () => {
  using folder = new StoreFolder();
  const seen: number[] = [];
  let sum = 0;
  const onCommit = (elapsedMs: number, operations: number) => {
    seen.push(operations);
    sum += elapsedMs;
  };
  await using opened = closing(await folder.open({ onCommit }));
  const { store } = opened;
  await Promise.all(Array.from({ length: 100 }, () => store.write(addAudit, audit())));
  await Promise.all(Array.from({ length: 1_500 }, () => store.write(addAudit, audit())));
  assertEquals(seen, [100, 1_000, 500]);
  assert(sum > 0);
});

Deno.test("of many operations of one commit those that throw are undone, and the others are done once", async () => {
  using folder = new StoreFolder();
  const seen: number[] = [];
  await using opened = closing(await folder.open({ onCommit: (_, operations) => seen.push(operations) }));
  const { store } = opened;
  {
    using other = disposing(new DatabaseSync(folder.path));
    other.database.exec(
      "CREATE TRIGGER fail BEFORE INSERT ON audit WHEN NEW.action = 'fail' BEGIN SELECT RAISE(ABORT, 'no'); END",
    );
  }
  // Those with "fail" throw after they have written; one of them comes first, some in the middle, one last.
  const asked = Array.from({ length: 61 }, (_, index) => ({
    added: endpoint(),
    action: index % 10 === 0 ? "fail" : `create ${index}`,
  }));
  const answers = await Promise.all(
    asked.map(({ added, action }) =>
      store.write(createEndpoint, added, audit({ action })).then(() => "done", codeOf)
    ),
  );
  assertEquals(answers, asked.map(({ action }) => action === "fail" ? "failed" : "done"));
  assertEquals(seen, [61], "they were one commit");

  // Another connection sees what is durable.
  await using second = closing(await folder.open());
  const done = asked.filter(({ action }) => action !== "fail").toReversed();
  assertEquals(
    ids(await second.store.read(listEndpoints, { limit: 200 })),
    ids({ items: done.map(({ added }) => added) }),
  );
  const { items } = await second.store.read(listAudit, { limit: 200 });
  assertEquals(items.map(({ action }) => action), done.map(({ action }) => action));
});

Deno.test("a failure that ends the whole transaction is everybody's, and the store goes on", async () => {
  using folder = new StoreFolder();
  await using opened = closing(await folder.open());
  const { store } = opened;
  {
    // Stands for what SQLite does of itself when a disk is full or broken in the middle of a transaction.
    using other = disposing(new DatabaseSync(folder.path));
    other.database.exec(
      "CREATE TRIGGER fail BEFORE INSERT ON audit WHEN NEW.action = 'fail' BEGIN SELECT RAISE(ROLLBACK, 'lost'); END",
    );
  }
  const actions = ["one", "fail", "two"];
  const answers = await Promise.all(
    actions.map((action) => store.write(addAudit, audit({ action })).then(() => "done", codeOf)),
  );
  assertEquals(answers, ["failed", "failed", "failed"]);
  await store.write(addAudit, audit({ action: "three" }));
  assertEquals((await store.read(listAudit, { limit: 9 })).items.map(({ action }) => action), ["three"]);
});

function codeOf(error: unknown): string {
  assertEquals((error as Error).name, "StoreError");
  return (error as StoreError).code;
}

function ids({ items }: { readonly items: readonly { readonly id: string }[] }): string[] {
  return items.map(({ id }) => id);
}

function closing<T extends WebhookStore>(store: T) {
  return { store, [Symbol.asyncDispose]: () => store.close() };
}

function disposing(database: DatabaseSync) {
  return { database, [Symbol.dispose]: () => database.close() };
}
