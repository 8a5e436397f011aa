import { assertEquals } from "#assert";
import { EXHAUSTED, finish } from "../../../contract/webhook_store_bed.ts";
import { instead, storeWith } from "../../../harness/store_double.ts";
import { countMatches } from "../../../../src/webhooks/store/operations/replay_search.ts";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";

const NOON = "2026-01-01T12:00:00.000Z";
const ELEVEN = "2026-01-01T11:00:00.000Z";
const UNKNOWN = "00000000-0000-4000-8000-000000000000";

async function endpoint(bed: WebhookBed, more: object = {}): Promise<string> {
  return (await bed.call("POST", "/endpoints", { url: "https://a.example", ...more })).body.id;
}

/** Posts orders an hour ago. */
async function postOrders(bed: WebhookBed, totals: readonly number[]): Promise<void> {
  for (const total of totals) await bed.post({ event: "order.created", data: { total } });
  bed.clock.advance(3_600_000);
}

Deno.test("replays: a dry run counts, and a start is shown, listed and audited once", async () => {
  await using bed = await WebhookBed.open();
  await postOrders(bed, [1, 20, 300]);
  await bed.post({ event: "agent.done", data: { total: 900 } });
  const id = await endpoint(bed, { events: ["order.*", "agent.*"] });
  const filter = { total: { greater: 5 } };
  const scope = { since: "2h", until: "0s", events: ["order.*"], filter };
  const path = `/endpoints/${id}/replay`;
  const counted = await bed.call("POST", path, { ...scope, dryRun: true });
  assertEquals([counted.status, counted.body as object], [200, { count: 2 }]);
  assertEquals((await bed.call("GET", "/replays")).body.items, []);
  const { status, body } = await bed.call("POST", path, scope);
  const now = new Date(bed.clock.now()).toISOString();
  const shown = {
    id: body.id,
    source: "events",
    state: "running",
    count: 2,
    done: 0,
    endpointId: id,
    events: ["order.*"],
    filter,
    since: new Date(bed.clock.now() - 7_200_000).toISOString(),
    until: now,
    createdAt: now,
  };
  assertEquals([status, body as object], [202, shown]);
  assertEquals((await bed.call("GET", `/replays/${body.id}`)).body as object, shown);
  assertEquals((await bed.call("GET", `/replays?endpointId=${id}&state=running`)).body.items as object, [
    shown,
  ]);
  const cancelled = await bed.call("POST", `/replays/${body.id}/cancel`);
  assertEquals([cancelled.status, cancelled.body.state, cancelled.body["finishedAt"]], [
    200,
    "cancelled",
    now,
  ]);
  const again = await bed.call("POST", `/replays/${body.id}/cancel`);
  assertEquals([again.status, again.body.code], [409, "already_ended"]);
  const { items } = (await bed.call("GET", "/audit")).body;
  const { since, until } = shown;
  const details = {
    source: "events",
    endpointId: id,
    events: ["order.*"],
    filter: JSON.stringify(filter),
    since,
    until,
    count: 2,
  };
  assertEquals(items.slice(0, 2).map((one) => [one["action"], one["object"], one["details"]]), [
    ["replay.cancelled", `replay:${body.id}`, {}],
    ["replay.started", `replay:${body.id}`, details],
  ]);
});

Deno.test("replays: failed deliveries are retried by the filters of their list, in one call", async () => {
  await using bed = await WebhookBed.open();
  const [one, two] = [await endpoint(bed), await endpoint(bed)];
  await postOrders(bed, [1, 2]);
  const now = bed.clock.now();
  const requests = [one, two].map((endpointId) => ({ endpointId, max: 9 }));
  const newClaimId = () => crypto.randomUUID();
  for (const claim of await bed.store.claimDeliveries({ now, leaseUntil: now + 1, newClaimId, requests })) {
    await finish(bed.store, claim, EXHAUSTED);
  }
  const cases: readonly (readonly [object, number])[] = [
    [{}, 4],
    [{ endpointId: one }, 2],
    [{ event: "order.created", since: ELEVEN }, 4],
    [{ event: "order.paid" }, 0],
    [{ until: ELEVEN }, 0],
    [{ state: "retrying" }, 0],
  ];
  for (const [scope, count] of cases) {
    const { status, body } = await bed.call("POST", "/deliveries/retry", { ...scope, dryRun: true });
    assertEquals([status, body as object], [200, { count }], JSON.stringify(scope));
  }
  const { status, body } = await bed.call("POST", "/deliveries/retry");
  assertEquals([status, body["source"], body["deliveryState"], body["count"], body["since"]], [
    202,
    "deliveries",
    "failed",
    4,
    undefined,
  ]);
  const audited = (await bed.call("GET", "/audit?event=replay.started")).body.items;
  assertEquals(audited.map((entry) => entry["object"]), [`replay:${body.id}`]);
});

Deno.test("replays: a refusal names the field, the record or the bound", async () => {
  await using bed = await WebhookBed.open();
  const id = await endpoint(bed);
  const path = `/endpoints/${id}/replay`;
  const cases: readonly (readonly [string, object, number, string, string | undefined])[] = [
    [path, {}, 422, "invalid_field", "since"],
    [path, { since: "1h", until: "2h" }, 422, "invalid_field", "until"],
    [path, { since: "2030-01-01T00:00:00Z" }, 422, "invalid_field", "until"],
    [path, { since: "1h", events: ["a b"] }, 422, "invalid_field", "events[0]"],
    [path, { since: "1h", filter: { a: { near: 1 } } }, 422, "invalid_field", "filter.a"],
    [path, { since: "1h", state: "failed" }, 422, "invalid_field", "state"],
    [`/endpoints/${UNKNOWN}/replay`, { since: "1h" }, 404, "not_found", undefined],
    ["/deliveries/retry", { state: "acknowledged" }, 422, "invalid_field", "state"],
    ["/deliveries/retry", { endpointId: UNKNOWN }, 404, "not_found", undefined],
    [`/replays/${UNKNOWN}/cancel`, {}, 404, "not_found", undefined],
  ];
  for (const [target, sent, status, code, field] of cases) {
    const answer = await bed.call("POST", target, sent);
    assertEquals(
      [answer.status, answer.body.code, answer.body.field],
      [status, code, field],
      JSON.stringify(sent),
    );
  }
  for (let count = 0; count < 10; count++) await bed.call("POST", path, { since: NOON.replace("12", "10") });
  const { status, body } = await bed.call("POST", path, { since: "1h" });
  assertEquals([status, body.code, (await bed.call("GET", "/replays")).body.items.length], [
    409,
    "too_many_replays",
    10,
  ]);
  assertEquals((await bed.call("POST", path, { since: "1h", dryRun: true })).status, 200);
});

Deno.test("replays: counting ends after five seconds", async () => {
  let reads = 0;
  await using bed = await WebhookBed.open({
    store: (store) =>
      storeWith(store, [
        instead(countMatches, (call) => {
          if (++reads === 2) bed.clock.advance(5_000);
          return call();
        }),
      ]),
  });
  await postOrders(bed, Array.from({ length: 1_200 }, (_, total) => total));
  const id = await endpoint(bed);
  const path = `/endpoints/${id}/replay`;
  const counted = await bed.call("POST", path, { since: "2h", dryRun: true });
  assertEquals(counted.body as object, { count: 1_000, isPartial: true });
  reads = 0;
  const { status, body } = await bed.call("POST", path, { since: "2h" });
  assertEquals([status, body["count"], body["done"]], [202, undefined, 0]);
});
