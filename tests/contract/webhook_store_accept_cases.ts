import { assert, assertEquals, assertRejects } from "#assert";
import {
  allPages,
  audit,
  DAY,
  event,
  eventKey,
  execution,
  key,
  newId,
  NOW,
  type StoreCases,
  trigger,
} from "./webhook_store_bed.ts";
import {
  acceptAuditedExecution,
  acceptEvent,
  acceptExecution,
  findIdempotency,
  type NewExecution,
  saveWorkflowVersion,
} from "../../src/webhooks/store/operations/accept.ts";
import { listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import {
  createEventKey,
  deleteEventKey,
  findEvent,
  findEventKey,
  listEventKeys,
  listEvents,
} from "../../src/webhooks/store/operations/events.ts";
import { findExecution, listExecutions } from "../../src/webhooks/store/operations/executions.ts";
import {
  createTrigger,
  deleteTrigger,
  deleteTriggerKey,
  findTriggerKey,
} from "../../src/webhooks/store/operations/triggers.ts";
import { StoreError } from "../../src/webhooks/store/store.ts";

/** Taking in what others bring. */
export const ACCEPT_CASES: StoreCases = {
  "an execution is queued, due immediately, with its input to the digit": async (store) => {
    await store.saveVersion();
    const added = execution();
    const expected = {
      ...added,
      status: "queued" as const,
      createdAt: NOW,
      dueAt: NOW,
      stepAttempts: 0,
      cancelRequested: false,
    };
    assertEquals(await store.write(acceptExecution, added, { now: NOW }), { kind: "new", value: expected });
    assertEquals(await store.read(findExecution, added.id), { execution: expected, steps: [] });
    assertEquals(await store.read(findExecution, newId()), undefined);
  },

  "an audited execution is in the audit log once, and not where nothing starts": async (store) => {
    await store.saveVersion();
    const idempotency = { scope: "trigger:1", key: "k", bodyHash: "h" };
    const options = { now: NOW, idempotency };
    const entry = (object: string) => audit({ action: "trigger.called", object });
    const first = execution();
    const accept = (added: NewExecution, object: string) =>
      store.write(acceptAuditedExecution, added, { ...options, audit: entry(object) });
    assertEquals((await accept(first, "trigger:first")).kind, "new");
    assertEquals((await accept(execution(), "trigger:replay")).kind, "replayed");
    const unsaved = execution({ versionId: "unsaved" });
    const failing = { now: NOW, audit: entry("trigger:unsaved") };
    await assertRejects(() => store.write(acceptAuditedExecution, unsaved, failing));
    assertEquals(await store.auditLog(), ["trigger.called trigger:first"]);
    assertEquals((await store.read(listExecutions, { limit: 10 })).items.map(({ id }) => id), [first.id]);
  },

  "an execution of a version that was not saved is refused whole": async (store) => {
    const idempotency = { scope: "trigger:1", key: "k", bodyHash: "h" };
    const failure = await store.write(acceptExecution, execution(), { now: NOW, idempotency }).catch((
      error,
    ) => error);
    assert(failure instanceof Error);
    assertEquals(await store.read(findIdempotency, "trigger:1", "k", NOW), undefined);
    assertEquals((await store.read(listExecutions, { limit: 10 })).items, []);
  },

  "a key is replayed until it is 24 hours old, and then accepts again": async (store) => {
    await store.saveVersion();
    const first = execution();
    const idempotency = { scope: "trigger:1", key: "k", bodyHash: "h1" };
    const row = { scope: "trigger:1", key: "k", acceptedAt: NOW, bodyHash: "h1", resultId: first.id };
    assertEquals((await store.write(acceptExecution, first, { now: NOW, idempotency })).kind, "new");
    const again = { ...idempotency, bodyHash: "h2" };
    for (const now of [NOW, NOW + DAY - 1]) {
      assertEquals(await store.read(findIdempotency, "trigger:1", "k", now), row);
      const answer = await store.write(acceptExecution, execution(), { now, idempotency: again });
      assertEquals(answer, { kind: "replayed", row });
    }
    assertEquals((await store.read(listExecutions, { limit: 10 })).items.length, 1);

    const now = NOW + DAY;
    assertEquals(await store.read(findIdempotency, "trigger:1", "k", now), undefined);
    const second = execution();
    assertEquals((await store.write(acceptExecution, second, { now, idempotency: again })).kind, "new");
    assertEquals(await store.read(findIdempotency, "trigger:1", "k", now), {
      ...row,
      acceptedAt: now,
      bodyHash: "h2",
      resultId: second.id,
    });
    assertEquals((await store.read(listExecutions, { limit: 10 })).items.length, 2);
  },

  "a key stands for itself in each scope, with any characters": async (store) => {
    await store.saveVersion();
    for (const scope of ["trigger:1", "trigger:2"]) {
      for (const name of ["k", "K", "k ", "'; DROP TABLE event; --", "é", "%"]) {
        const idempotency = { scope, key: name, bodyHash: "h" };
        assertEquals(
          (await store.write(acceptExecution, execution(), { now: NOW, idempotency })).kind,
          "new",
        );
        assertEquals((await store.read(findIdempotency, scope, name, NOW))?.key, name);
      }
    }
  },

  "1,000 at the same time with one key, through two objects, are one execution": async (store) => {
    await store.saveVersion();
    const other = await store.another();
    const idempotency = { scope: "trigger:1", key: "k", bodyHash: "h" };
    const answers = await Promise.all(Array.from({ length: 1_000 }, (_, index) => {
      const into = index % 2 === 0 ? store : other;
      return into.write(acceptExecution, execution(), { now: NOW, idempotency });
    }));
    const ids = answers.map((answer) => answer.kind === "new" ? answer.value.id : answer.row.resultId);
    assertEquals(answers.filter(({ kind }) => kind === "new").length, 1);
    assertEquals(new Set(ids).size, 1);
    assertEquals((await store.read(listExecutions, { limit: 10 })).items.map(({ id }) => id), [ids[0] ?? ""]);
  },

  "one operation that fails among many undoes itself alone": async (store) => {
    await store.saveVersion();
    const twice = execution();
    await store.write(acceptExecution, twice, { now: NOW });
    const answers = await Promise.allSettled(
      [execution(), twice, execution()].map((item) => store.write(acceptExecution, item, { now: NOW })),
    );
    assertEquals(answers.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
    assertEquals((await store.read(listExecutions, { limit: 10 })).items.length, 3);
  },

  "an event goes to every endpoint that names its kind, disabled ones included": async (store) => {
    const wanting = [
      await store.addEndpoint({ events: ["agent.reply.completed"] }),
      await store.addEndpoint({ events: ["workflow.*", "agent.*"] }),
      await store.addEndpoint({ events: ["*"], enabled: false }),
    ];
    await store.addEndpoint({ events: ["agent.reply"] });
    await store.addEndpoint({ events: ["agent.replies.*"] });
    const added = event({ body: new Uint8Array([123, 0, 255, 125]) });
    assertEquals(await store.write(acceptEvent, added, { now: NOW }), {
      kind: "new",
      value: { endpointIds: wanting.map(({ id }) => id) },
    });
    assertEquals(await store.read(findEvent, added.id), { ...added, createdAt: NOW });
    const { items } = await store.read(listDeliveries, { limit: 10 });
    assertEquals(
      items.map(({ id: _, ...rest }) => rest),
      wanting.toReversed().map(({ id }) => ({
        endpointId: id,
        eventId: added.id,
        event: added.kind,
        state: "attempting" as const,
        createdAt: NOW,
        slot: 0,
        dueAt: NOW,
      })),
    );
    assertEquals(new Set(items.map(({ id }) => id)).size, 3);
  },

  "an event without a subscriber is kept, with no delivery": async (store) => {
    const added = event();
    assertEquals(await store.write(acceptEvent, added, { now: NOW }), {
      kind: "new",
      value: { endpointIds: [] },
    });
    assertEquals((await store.read(listEvents, { limit: 10 })).items, [
      { ...added, body: new Uint8Array(), createdAt: NOW },
    ]);
    assertEquals(await store.read(findEvent, added.id), { ...added, createdAt: NOW });
  },

  "an event is accepted once for a key, and the row tells how many it goes to": async (store) => {
    await store.addEndpoint();
    await store.addEndpoint();
    const other = await store.another();
    const idempotency = { scope: "admin", key: "k", bodyHash: "h" };
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => {
      const into = index % 2 === 0 ? store : other;
      return into.write(acceptEvent, event(), { now: NOW, idempotency });
    }));
    assertEquals(answers.filter(({ kind }) => kind === "new").length, 1);
    const { items } = await store.read(listEvents, { limit: 10 });
    assertEquals(items.length, 1);
    assertEquals((await store.read(listDeliveries, { limit: 10 })).items.length, 2);
    const row = { ...idempotency, acceptedAt: NOW, resultId: items[0]?.id ?? "", deliveries: 2 };
    assertEquals(answers.find(({ kind }) => kind === "replayed"), { kind: "replayed", row });
  },

  "a key of a trigger is found by its hash until it is revoked or its trigger goes": async (store) => {
    const [one, two] = [key(), key()];
    const added = trigger({ keys: [one, two] });
    await store.write(createTrigger, added, audit());
    assertEquals(await store.read(findTriggerKey, one.hash), { trigger: added, keyId: one.id });
    assertEquals(await store.read(findTriggerKey, two.hash), { trigger: added, keyId: two.id });
    assertEquals(await store.read(findTriggerKey, newId()), undefined);
    assertEquals(await store.write(deleteTriggerKey, added.id, one.id, audit()), true);
    assertEquals(await store.read(findTriggerKey, one.hash), undefined);
    assertEquals((await store.read(findTriggerKey, two.hash))?.trigger.keys, [two]);
    await store.write(deleteTrigger, added.id, audit());
    assertEquals(await store.read(findTriggerKey, two.hash), undefined);
  },

  "an event key is found by its hash until it is revoked": async (store) => {
    const [one, two] = [eventKey(), eventKey({ name: "other", kinds: ["*"] })];
    await store.write(createEventKey, one, audit());
    await store.write(createEventKey, two, audit());
    assertEquals(await store.read(findEventKey, one.hash), one);
    assertEquals(await store.read(findEventKey, newId()), undefined);
    assertEquals(await allPages((options) => store.read(listEventKeys, options)), [two, one]);
    assertEquals(await store.write(deleteEventKey, one.id, audit()), true);
    assertEquals(await store.write(deleteEventKey, one.id, audit()), false);
    assertEquals(await store.read(findEventKey, one.hash), undefined);
  },

  "a text of a workflow that is there already stays": async (store) => {
    await store.saveVersion();
    await store.write(saveWorkflowVersion, { id: "v1", workflow: "other", text: "other" });
    await store.saveVersion();
    await store.write(acceptExecution, execution(), { now: NOW });
    const [claimed] = await store.claimRuns();
    const version = { id: "v1", workflow: "order-intake", text: "workflow: order-intake\n" };
    assertEquals(claimed?.version, version);
  },

  "the first executions of a version keep its text, also when they begin at the same time": async (store) => {
    const stores = [store, await store.another(), await store.another()];
    const text = "workflow: order-intake\n";
    const accepted = await Promise.all(
      Array.from(
        { length: 12 },
        (_, index) => stores[index % 3]?.write(acceptExecution, execution({ text }), { now: NOW }),
      ),
    );
    assertEquals(accepted.filter((one) => one?.kind === "new").length, 12);
    await store.write(acceptExecution, execution({ text: "workflow: other\n" }), { now: NOW });
    const claims = await store.claimRuns({ max: 20 });
    assertEquals(claims.map(({ version }) => version.text), Array(13).fill(text));
    const error = await assertRejects(() =>
      store.write(acceptExecution, execution({ versionId: "v2" }), { now: NOW })
    );
    assert(error instanceof StoreError);
  },
};
