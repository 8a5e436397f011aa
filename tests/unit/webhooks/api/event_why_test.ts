import { assertEquals } from "#assert";
import { recordAttempts } from "../../../../src/webhooks/store/operations/endpoint_health.ts";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";

const PLAN = { "customer.plan": ["pro", "team"] };
const UNKNOWN = "00000000-0000-4000-8000-000000000000";
const MISMATCH = 'customer.plan is "free"; the filter expects "pro" or "team"';

async function addEndpoint(bed: WebhookBed, fields: object): Promise<string> {
  return (await bed.call("POST", "/endpoints", { url: "https://example.com/hook", ...fields })).body.id;
}

/** Adds an event of a free plan. */
async function addEvent(bed: WebhookBed): Promise<string> {
  return (await bed.post({ event: "order.created", data: { customer: { plan: "free" } } })).body.id;
}

async function whyOf(bed: WebhookBed, eventId: string, endpointId: string): Promise<unknown> {
  const { status, body } = await bed.call("GET", `/events/${eventId}/why?endpointId=${endpointId}`);
  return status === 200 ? body["why"] : [status, body.code, body.field];
}

Deno.test("why of an event: the kind and the filter of the endpoint", async () => {
  await using bed = await WebhookBed.open();
  const other = await addEndpoint(bed, { events: ["user.*"] });
  const pro = await addEndpoint(bed, { filter: PLAN });
  const event = await addEvent(bed);
  assertEquals(await whyOf(bed, event, other), "the endpoint does not subscribe to order.created");
  assertEquals(await whyOf(bed, event, pro), MISMATCH);
});

Deno.test("why of an event: the state of the delivery, where there is one", async () => {
  await using bed = await WebhookBed.open();
  const to = await addEndpoint(bed, { filter: { "customer.plan": ["free"] }, enabled: false });
  const event = await addEvent(bed);
  const { items: [delivery] } = (await bed.call("GET", "/deliveries")).body;
  const { body } = await bed.call("GET", `/events/${event}/why?endpointId=${to}`);
  assertEquals(body as object, {
    eventId: event,
    endpointId: to,
    deliveryId: delivery?.id,
    why: "its endpoint is disabled; it waits until the endpoint is enabled",
  });
});

Deno.test("why of an event: what changed since", async () => {
  await using bed = await WebhookBed.open();
  const changed = await addEndpoint(bed, { filter: PLAN });
  const event = await addEvent(bed);
  bed.clock.advance(1_000);
  const later = await addEndpoint(bed, {});
  const at = "2026-01-01T12:00:01.000Z";
  assertEquals(await whyOf(bed, event, later), `the endpoint was created at ${at}, after the event`);
  await bed.call("PATCH", `/endpoints/${changed}`, { filter: null });
  const since = `the endpoint was changed at ${at}, after the event`;
  assertEquals(await whyOf(bed, event, changed), `it has no delivery; ${since}`);
  await bed.call("PATCH", `/endpoints/${changed}`, { filter: { a: [1] } });
  assertEquals(
    await whyOf(bed, event, changed),
    `a is missing in data; the filter expects 1; ${since}`,
  );
});

Deno.test("why of an event: one about the endpoint itself goes to others only", async () => {
  await using bed = await WebhookBed.open();
  const [about, other] = [
    await addEndpoint(bed, { events: ["endpoint.*"] }),
    await addEndpoint(bed, { events: ["endpoint.*"], enabled: false }),
  ];
  const { clock, store } = bed;
  const at = clock.now();
  const failures = { count: 20, firstAt: at, lastAt: at, areReportable: true };
  const summary = { succeeded: 0, failed: 20, answered: 0, totalMs: 0, maxMs: 0, failures };
  const options = { now: at, newId: () => crypto.randomUUID(), disableAfterMs: 0 };
  await store.write(recordAttempts, [{ endpointId: about, summary }], options);
  const { items: [event] } = (await bed.call("GET", "/events?event=endpoint.failing")).body;
  const id = String(event?.["id"]);
  assertEquals(await whyOf(bed, id, about), "the event is about this endpoint: only others receive it");
  assertEquals(
    await whyOf(bed, id, other),
    "its endpoint is disabled; it waits until the endpoint is enabled",
  );
});

Deno.test("why of an event: an erased payload cannot be compared", async () => {
  await using bed = await WebhookBed.open();
  const to = await addEndpoint(bed, { filter: PLAN });
  const event = await addEvent(bed);
  await bed.call("DELETE", `/events/${event}/payload`);
  assertEquals(
    await whyOf(bed, event, to),
    "the filter of the endpoint cannot be compared: the payload of the event was erased",
  );
});

Deno.test("why of an event: wrong input", async () => {
  await using bed = await WebhookBed.open();
  const [to, event] = [await addEndpoint(bed, {}), await addEvent(bed)];
  assertEquals(await whyOf(bed, UNKNOWN, to), [404, "not_found", undefined]);
  assertEquals(await whyOf(bed, event, UNKNOWN), [404, "not_found", undefined]);
  for (
    const [query, field] of [["x=2", "x"], ["endpointId=1&x=2", "x"], ["endpointId=x", "endpointId"]]
  ) {
    const { status, body } = await bed.call("GET", `/events/${event}/why?${query}`);
    assertEquals([status, body.field], [422, field], query);
  }
});

Deno.test("why of an event: every endpoint, those with a delivery first", async () => {
  await using bed = await WebhookBed.open();
  const gone = await addEndpoint(bed, {});
  const other = await addEndpoint(bed, { events: ["user.*"] });
  const to = await addEndpoint(bed, { enabled: false });
  const pro = await addEndpoint(bed, { filter: PLAN });
  const event = await addEvent(bed);
  await bed.call("DELETE", `/endpoints/${gone}`);
  const { status, body } = await bed.call("GET", `/events/${event}/why`);
  const url = "https://example.com/hook";
  const endpoints = (body["endpoints"] as Readonly<Record<string, unknown>>[])
    .map(({ endpointId, url, why, deliveryId }) => ({
      endpointId,
      url,
      why,
      isDelivered: deliveryId !== undefined,
    }));
  const received = endpoints.filter(({ isDelivered }) => isDelivered);
  assertEquals([status, body["eventId"], body["more"], endpoints.slice(0, 2)], [
    200,
    event,
    undefined,
    received,
  ]);
  assertEquals(received.map(({ endpointId }) => endpointId).toSorted(), [gone, to].toSorted());
  assertEquals(endpoints.slice(2), [
    { endpointId: pro, url, why: MISMATCH, isDelivered: false },
    { endpointId: other, url, why: "the endpoint does not subscribe to order.created", isDelivered: false },
  ]);
});
