import { assert, assertEquals } from "#assert";
import type { TriggerEdit } from "../../src/webhooks/model/records.ts";
import { acceptAuditedExecution, acceptExecution } from "../../src/webhooks/store/operations/accept.ts";
import { findExecution, listExecutions } from "../../src/webhooks/store/operations/executions.ts";
import {
  countSealed,
  replaceSealed,
  SEALED_COLUMNS,
  sealedByOthers,
} from "../../src/webhooks/store/sealed.ts";
import {
  addTriggerSecret,
  createTrigger,
  deleteTrigger,
  deleteTriggerSecret,
  editTrigger,
  findSignedTrigger,
  findTrigger,
  listTriggers,
} from "../../src/webhooks/store/operations/triggers.ts";
import {
  audit,
  execution,
  newId,
  NOW,
  signedTrigger,
  type StoreCases,
  trigger,
  triggerSecret,
} from "./webhook_store_bed.ts";

/** Triggers whose calls are signed. */
export const SIGNED_TRIGGER_CASES: StoreCases = {
  "a signed trigger is read as it was written, by its id, by its name and in lists": async (store) => {
    const full = signedTrigger({ secrets: [triggerSecret(), triggerSecret({ createdAt: NOW + 1 })] });
    const bare = signedTrigger({ verify: { scheme: "github" }, when: '{"execution.event":["push"]}' });
    const keyed = trigger();
    const passing = trigger({ accept: ["form", "text"], answer: 200, passHeaders: ["X-Topic"] });
    for (const added of [full, bare, keyed, passing]) {
      assertEquals(await store.write(createTrigger, added, audit()), true);
      assertEquals(await store.read(findTrigger, added.id), added);
    }
    for (const one of [full, bare]) assertEquals(await store.read(findSignedTrigger, one.name), one);
    assertEquals(await store.read(findSignedTrigger, keyed.name), undefined);
    assertEquals(await store.read(findSignedTrigger, newId()), undefined);
    assertEquals((await store.read(listTriggers, { limit: 9 })).items, [passing, keyed, bare, full]);
  },

  "of three secrets of a trigger the oldest goes, and all may be revoked": async (store) => {
    const [one, two, three] = [triggerSecret(), triggerSecret(), triggerSecret()];
    const added = signedTrigger({ secrets: [one] });
    await store.write(createTrigger, added, audit());
    const add = (id: string, secret = three) =>
      store.write(addTriggerSecret, id, secret, audit({ action: "added" }));
    const remove = (id: string, secretId: string) =>
      store.write(deleteTriggerSecret, id, secretId, audit({ action: "revoked" }));
    assertEquals((await add(added.id, two))?.secrets, [two, one]);
    assertEquals((await add(added.id))?.secrets, [three, two]);
    assertEquals(await add(newId(), triggerSecret()), undefined);
    assertEquals(await remove(newId(), two.id), false);
    assertEquals(await remove(added.id, one.id), false);
    assertEquals(await remove(added.id, three.id), true);
    assertEquals((await store.read(findSignedTrigger, added.name))?.secrets, [two]);
    assertEquals(await remove(added.id, two.id), true);
    const empty = { ...added, secrets: [] };
    assertEquals(await store.read(findSignedTrigger, added.name), empty);
    assertEquals(await store.read(findTrigger, added.id), empty);
    const actions = (await store.auditLog()).map((entry) => entry.split(" ")[0]);
    assertEquals(actions.filter((action) => action !== "test.done"), [
      "added",
      "added",
      "revoked",
      "revoked",
    ]);
  },

  "the secrets of a signed trigger get another key, as all encrypted values do": async (store) => {
    const added = signedTrigger({ secrets: [triggerSecret(), triggerSecret()] });
    await store.write(createTrigger, added, audit());
    const columns = SEALED_COLUMNS.filter(({ table }) => table === "trigger_secret");
    assertEquals(await store.read(countSealed, columns), { k1: 2 });
    for (const one of columns) {
      const rows = await store.read(sealedByOthers, one, "k2", { after: 0, max: 9 });
      const changes = rows.map((before) => ({ before, after: { ...before.sealed, keyId: "k2" } }));
      assertEquals(await store.write(replaceSealed, one, changes), 2);
    }
    const found = await store.read(findSignedTrigger, added.name);
    assertEquals(found?.secrets?.map(({ sealed }) => sealed.keyId), ["k2", "k2"]);
  },

  "an execution keeps the kind of event of its call, alone and in a group": async (store) => {
    await store.saveVersion();
    const asked = [execution({ event: "push" }), execution(), execution({ event: "orders/create" })];
    await store.write(acceptExecution, execution({ event: "first" }), { now: NOW });
    await Promise.all(asked.map((one) => store.write(acceptExecution, one, { now: NOW })));
    for (const { id, event } of asked) {
      assertEquals((await store.read(findExecution, id))?.execution.event, event);
    }
    const { items } = await store.read(listExecutions, { limit: 9 });
    assertEquals(
      new Set(items.map(({ event }) => event)),
      new Set(["push", undefined, "orders/create", "first"]),
    );
  },

  "an execution names the one that it runs again, alone, in a group, and audited": async (store) => {
    await store.saveVersion();
    const headers = '{"x-topic":"a"}';
    const origin = execution({ event: "push", headers });
    await store.write(acceptExecution, origin, { now: NOW });
    const [alone, grouped, audited] = [1, 2, 3].map(() =>
      execution({ rerunOf: origin.id, event: "push", headers })
    );
    assert(alone !== undefined && grouped !== undefined && audited !== undefined);
    await store.write(acceptExecution, alone, { now: NOW });
    await Promise.all([grouped, execution()].map((one) => store.write(acceptExecution, one, { now: NOW })));
    const idempotency = { scope: `execution:${origin.id}`, key: "k", bodyHash: "" };
    const entry = audit({ action: "execution.rerun", object: `execution:${origin.id}` });
    const options = { now: NOW, idempotency, audit: entry };
    const added = await store.write(acceptAuditedExecution, audited, options);
    assertEquals(added.kind === "new" && added.value.rerunOf, origin.id);
    const other = execution({ rerunOf: origin.id });
    assertEquals((await store.write(acceptAuditedExecution, other, options)).kind, "replayed");
    for (const { id, event } of [alone, grouped, audited]) {
      const found = (await store.read(findExecution, id))?.execution;
      assertEquals([found?.rerunOf, found?.event, found?.headers], [origin.id, event, headers]);
    }
    assertEquals((await store.read(findExecution, origin.id))?.execution.rerunOf, undefined);
    assertEquals(await store.auditLog(), [`execution.rerun execution:${origin.id}`]);
    const { items } = await store.read(listExecutions, { limit: 9 });
    assertEquals(items.filter(({ rerunOf }) => rerunOf === origin.id).length, 3);
  },

  "an edit of a signed trigger replaces its verification and keeps its secrets": async (store) => {
    const added = signedTrigger();
    await store.write(createTrigger, added, audit());
    const verify = { scheme: "hmac-sha256", header: "x-other", encoding: "base64" } as const;
    const edit = (part: TriggerEdit) =>
      store.write(editTrigger, added.id, part, { now: NOW + 1, audit: audit() });
    assertEquals(await edit({ verify }), { ...added, verify, updatedAt: NOW + 1 });
    assertEquals((await edit({ enabled: false }))?.verify, verify);
    assertEquals(await store.write(deleteTrigger, added.id, audit()), true);
    assertEquals(await store.read(findSignedTrigger, added.name), undefined);
    // The secrets went with it: their identifiers are free again.
    const again = signedTrigger({ secrets: added.secrets });
    assertEquals(await store.write(createTrigger, again, audit()), true);
  },
};
