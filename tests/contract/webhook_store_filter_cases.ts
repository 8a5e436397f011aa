import { assert, assertEquals } from "#assert";
import {
  audit,
  endpoint,
  event,
  execution,
  newId,
  NOW,
  type StoreCases,
  type TestStore,
} from "./webhook_store_bed.ts";
import { completion } from "../../src/webhooks/model/completion_event.ts";
import { eventBody } from "../../src/webhooks/model/event.ts";
import { acceptEvent, acceptExecution } from "../../src/webhooks/store/operations/accept.ts";
import { listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import { createEndpoint, editEndpoint, findEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";
import { commitExecution } from "../../src/webhooks/store/operations/executions.ts";

const KIND = "order.created";

/** The endpoints that an event with this payload goes to. */
async function reached(store: TestStore, data: string, kind = KIND): Promise<readonly string[]> {
  const added = event({ kind, body: eventBody(kind, data) });
  const accepted = await store.write(acceptEvent, added, { now: NOW });
  assert(accepted.kind === "new");
  const { items } = await store.read(listDeliveries, { limit: 200, eventId: added.id });
  assertEquals(items.map(({ endpointId }) => endpointId).toReversed(), [...accepted.value.endpointIds]);
  return accepted.value.endpointIds;
}

/** Filters of endpoints by fields of `data`. */
export const FILTER_CASES: StoreCases = {
  "a filter is read as it was written, and an edit sets and removes it": async (store) => {
    const filter = '{"a":[12345678901234567890,1.10,"é",null]}';
    const added = endpoint({ filter });
    await store.write(createEndpoint, added, audit());
    assertEquals(await store.read(findEndpoint, added.id), added);
    const edited = async (filter: string | null | undefined) =>
      (await store.write(editEndpoint, added.id, { filter }, { now: NOW, audit: audit() }))?.filter;
    assertEquals(await edited(undefined), filter);
    assertEquals(await edited('{"b":[true]}'), '{"b":[true]}');
    assertEquals(await edited(null), undefined);
  },

  "an event goes to the endpoints whose filter matches, and to those without one": async (store) => {
    const pro = await store.addEndpoint({ filter: '{"customer.plan":["pro","team"]}' });
    const big = await store.addEndpoint({ filter: '{"id":[12345678901234567890]}' });
    const both = await store.addEndpoint({
      filter: '{"customer.plan":["pro"],"id":[1,null]}',
      enabled: false,
    });
    const all = await store.addEndpoint();
    await store.addEndpoint({ events: ["other.*"], filter: '{"customer.plan":["pro"]}' });
    const rows: readonly (readonly [data: string, endpoints: readonly { id: string }[]])[] = [
      ['{"customer":{"plan":"pro"},"id":1}', [pro, both, all]],
      ['{"customer":{"plan":"pro"},"id":null}', [pro, both, all]],
      ['{"customer":{"plan":"team"},"id":12345678901234567890}', [pro, big, all]],
      ['{"customer":{"plan":"free"},"id":12345678901234567891}', [all]],
      ['{"customer":["pro"]}', [all]],
      ["{}", [all]],
    ];
    for (const [data, endpoints] of rows) {
      assertEquals(await reached(store, data), endpoints.map(({ id }) => id), data);
    }
    const together = await Promise.all(rows.map(([data]) => reached(store, data)));
    assertEquals(together, rows.map(([, endpoints]) => endpoints.map(({ id }) => id)));
  },

  "a changed filter counts from the next event on": async (store) => {
    const to = await store.addEndpoint({ filter: '{"a":[1]}' });
    assertEquals(await reached(store, '{"a":2}'), []);
    await store.write(editEndpoint, to.id, { filter: '{"a":[2]}' }, { now: NOW, audit: audit() });
    assertEquals(await reached(store, '{"a":2}'), [to.id]);
    await store.write(editEndpoint, to.id, { filter: null }, { now: NOW, audit: audit() });
    assertEquals(await reached(store, '{"a":3}'), [to.id]);
  },

  "the number of deliveries of a key is that of the matching endpoints": async (store) => {
    await store.addEndpoint({ filter: '{"a":[1]}' });
    const to = await store.addEndpoint({ filter: '{"a":[2]}' });
    const idempotency = { scope: "admin", key: "k", bodyHash: "h" };
    const added = event({ kind: KIND, body: eventBody(KIND, '{"a":2}') });
    const first = await store.write(acceptEvent, added, { now: NOW, idempotency });
    assertEquals(first, { kind: "new", value: { endpointIds: [to.id] } });
    const again = await store.write(acceptEvent, event(), { now: NOW, idempotency });
    assert(again.kind === "replayed");
    assertEquals(again.row.deliveries, 1);
  },

  "the event of an ended execution is compared too, also where its output is too deep to be read": async (
    store,
  ) => {
    const failed = await store.addEndpoint({ events: ["workflow.*"], filter: '{"status":["failed"]}' });
    const output = await store.addEndpoint({ events: ["workflow.*"], filter: '{"output.total":[99.90]}' });
    const all = await store.addEndpoint({ events: ["workflow.*"] });
    await store.saveVersion();
    const deep = `${"[1.10,".repeat(50_000)}1${"]".repeat(50_000)}`;
    const ends = [
      { status: "failed", error: "no answer" },
      { status: "succeeded", output: '{"total":99.90}' },
      { status: "succeeded", output: deep },
    ] as const;
    for (const _ of ends) await store.write(acceptExecution, execution(), { now: NOW });
    const claimed = await store.claimRuns({ max: ends.length });
    assertEquals(claimed.length, ends.length);
    const reachedBy = await Promise.all(claimed.map(async ({ execution, claimId }, index) => {
      const end = ends[index] ?? ends[0];
      const { change, event } = completion(execution, end, { now: NOW, eventId: newId() });
      const ended = { executionId: execution.id, claimId, now: NOW, change, event, keepClaim: false };
      assertEquals(await store.write(commitExecution, ended), { cancelRequested: false });
      const { items } = await store.read(listDeliveries, { limit: 10, eventId: event.id });
      return items.map(({ endpointId }) => endpointId).toReversed();
    }));
    assertEquals(reachedBy, [[failed.id, all.id], [output.id, all.id], [all.id]]);
  },
};
