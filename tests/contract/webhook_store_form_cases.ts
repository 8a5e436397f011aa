import { assertEquals } from "#assert";
import { audit, event, newId, NOW, type StoreCases, type TestStore } from "./webhook_store_bed.ts";
import { eventBody } from "../../src/webhooks/model/event.ts";
import { listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import { findSentBody } from "../../src/webhooks/store/operations/delivery_bodies.ts";
import { voidDeliveryClaims } from "../../src/webhooks/store/operations/delivery_claims.ts";
import { editEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";
import { erasePayload } from "../../src/webhooks/store/operations/events.ts";
import { all } from "../../src/webhooks/store/work.ts";

const TEMPLATE = '{"order":"{{ data.id }}"}';

/** Claims one delivery of an endpoint, as if its process ended then. */
async function sentBy(store: TestStore, endpointId: string): Promise<unknown> {
  const claims = { now: NOW, leaseUntil: NOW + 60_000, newClaimId: newId };
  const [claimed] = await store.claimDeliveries({ ...claims, requests: [{ endpointId, max: 1 }] });
  await store.write(voidDeliveryClaims, { now: NOW, which: "all" });
  if (claimed === undefined) return undefined;
  const { body, form, problem, attempt } = claimed;
  return problem ?? `${attempt} ${form ?? "event"} ${new TextDecoder().decode(body)}`;
}

async function edit(store: TestStore, id: string, change: Parameters<typeof editEndpoint>[1]): Promise<void> {
  await store.write(editEndpoint, id, change, { now: NOW, audit: audit() });
}

function order(data: string) {
  return event({ kind: "order.created", body: eventBody("order.created", data) });
}

/** Bodies in the form of their endpoints. */
export const FORM_CASES: StoreCases = {
  "a body is rendered by the first attempt and stays the same, whatever happens to the endpoint": async (
    store,
  ) => {
    const { id } = await store.addEndpoint({ template: TEMPLATE });
    await store.addEvent(order('{"id":7}'));
    assertEquals(await sentBy(store, id), '1 template {"order":7}');
    await edit(store, id, { template: '{"other":1}' });
    assertEquals(await sentBy(await store.another(), id), '2 template {"order":7}');
    await edit(store, id, { template: null, format: "cloudevents" });
    assertEquals(await sentBy(store, id), '3 template {"order":7}');
    await edit(store, id, { format: null });
    assertEquals(await sentBy(store, id), '4 template {"order":7}');
  },

  "a body that was sent as the event has it stays so": async (store) => {
    const { id } = await store.addEndpoint();
    await store.addEvent(order('{"id":7}'));
    const body = '{"event":"order.created","data":{"id":7}}';
    assertEquals(await sentBy(store, id), `1 event ${body}`);
    await edit(store, id, { format: "cloudevents" });
    assertEquals(await sentBy(store, id), `2 event ${body}`);
  },

  "a body that cannot be rendered is rendered again by the next attempt": async (store) => {
    const { id } = await store.addEndpoint({ template: TEMPLATE });
    await store.addEvent(order('{"number":7}'));
    const problem = 'Cannot read "data.id": it has no value';
    assertEquals([await sentBy(store, id), await sentBy(store, id)], [problem, problem]);
    await edit(store, id, { template: '{"order":"{{ data.number }}"}' });
    assertEquals(await sentBy(store, id), '3 template {"order":7}');
    await edit(store, id, { template: null });
    assertEquals(await sentBy(store, id), '4 template {"order":7}');
  },

  "an erased payload erases the bodies that were rendered from it": async (store) => {
    const { id } = await store.addEndpoint({ template: TEMPLATE });
    const added = await store.addEvent(order('{"id":7}'));
    await sentBy(store, id);
    const rows = async () => (await store.read(() => all("SELECT body FROM delivery_body"))).length;
    assertEquals(await rows(), 1);
    await store.write(erasePayload, added.id, { now: NOW, newId, audit: audit() });
    assertEquals([await rows(), await sentBy(store, id)], [0, undefined]);
  },

  "the body of a delivery is the one that its attempts send, in whatever form": async (store) => {
    const plain = await store.addEndpoint();
    const formed = await store.addEndpoint({ template: TEMPLATE });
    const added = await store.addEvent(order('{"id":7,"total":12345678901234567890}'));
    const { items } = await store.read(listDeliveries, { limit: 2 });
    const shown = async ({ id: endpointId }: { readonly id: string }) => {
      const { id = "" } = items.find((one) => one.endpointId === endpointId) ?? {};
      const sent = await store.read(findSentBody, id);
      return sent && new TextDecoder().decode(sent);
    };
    assertEquals([await shown(plain), await shown(formed)], [undefined, undefined]);
    for (const { id } of [plain, formed]) await sentBy(store, id);
    assertEquals(
      [await shown(plain), await shown(formed)],
      ['{"event":"order.created","data":{"id":7,"total":12345678901234567890}}', '{"order":7}'],
    );
    await store.write(erasePayload, added.id, { now: NOW, newId, audit: audit() });
    assertEquals([await shown(plain), await shown(formed)], [undefined, undefined]);
    assertEquals(await store.read(findSentBody, newId()), undefined);
  },

  "a body that could not be rendered is not shown": async (store) => {
    const { id } = await store.addEndpoint({ template: TEMPLATE });
    await store.addEvent(order('{"number":7}'));
    await sentBy(store, id);
    const [delivery] = (await store.read(listDeliveries, { limit: 1 })).items;
    assertEquals(await store.read(findSentBody, delivery?.id ?? ""), undefined);
  },
};
