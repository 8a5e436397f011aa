import { assertEquals } from "@std/assert";
import { recordAttempts } from "../../../../src/webhooks/store/endpoint_health.ts";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";

const PLAN = { "customer.plan": ["pro", "team"] };
const UNKNOWN = "00000000-0000-4000-8000-000000000000";
const MISMATCH = 'customer.plan is "free"; the filter expects "pro" or "team"';

/** A service with an event of a free plan. */
class Bed implements AsyncDisposable {
  readonly bed: WebhookBed;

  constructor(bed: WebhookBed) {
    this.bed = bed;
  }

  static async open(): Promise<Bed> {
    return new Bed(await WebhookBed.open());
  }

  async endpoint(fields: object): Promise<string> {
    return (await this.bed.call("POST", "/endpoints", { url: "https://example.com/hook", ...fields })).body
      .id;
  }

  async event(): Promise<string> {
    return (await this.bed.post({ event: "order.created", data: { customer: { plan: "free" } } })).body.id;
  }

  async why(eventId: string, endpointId: string): Promise<unknown> {
    const { status, body } = await this.bed.call("GET", `/events/${eventId}/why?endpointId=${endpointId}`);
    return status === 200 ? body["why"] : [status, body.code, body.field];
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.bed[Symbol.asyncDispose]();
  }
}

Deno.test("why of an event: the kind and the filter of the endpoint", async () => {
  await using bed = await Bed.open();
  const other = await bed.endpoint({ events: ["user.*"] });
  const pro = await bed.endpoint({ filter: PLAN });
  const event = await bed.event();
  assertEquals(await bed.why(event, other), "the endpoint does not subscribe to order.created");
  assertEquals(await bed.why(event, pro), MISMATCH);
});

Deno.test("why of an event: the state of the delivery, where there is one", async () => {
  await using bed = await Bed.open();
  const to = await bed.endpoint({ filter: { "customer.plan": ["free"] }, enabled: false });
  const event = await bed.event();
  const { items: [delivery] } = (await bed.bed.call("GET", "/deliveries")).body;
  const { body } = await bed.bed.call("GET", `/events/${event}/why?endpointId=${to}`);
  assertEquals(body as object, {
    ...{ eventId: event, endpointId: to, deliveryId: delivery?.id },
    why: "its endpoint is disabled; it waits until the endpoint is enabled",
  });
});

Deno.test("why of an event: what changed since", async () => {
  await using bed = await Bed.open();
  const changed = await bed.endpoint({ filter: PLAN });
  const event = await bed.event();
  bed.bed.clock.advance(1_000);
  const later = await bed.endpoint({});
  const at = "2026-01-01T12:00:01.000Z";
  assertEquals(await bed.why(event, later), `the endpoint was created at ${at}, after the event`);
  await bed.bed.call("PATCH", `/endpoints/${changed}`, { filter: null });
  const since = `the endpoint was changed at ${at}, after the event`;
  assertEquals(await bed.why(event, changed), `it has no delivery; ${since}`);
  await bed.bed.call("PATCH", `/endpoints/${changed}`, { filter: { a: [1] } });
  assertEquals(
    await bed.why(event, changed),
    `a is missing in data; the filter expects 1; ${since}`,
  );
});

Deno.test("why of an event: one about the endpoint itself goes to others only", async () => {
  await using bed = await Bed.open();
  const [about, other] = [
    await bed.endpoint({ events: ["endpoint.*"] }),
    await bed.endpoint({ events: ["endpoint.*"], enabled: false }),
  ];
  const { clock, store } = bed.bed;
  const at = clock.now();
  const failures = { count: 20, firstAt: at, lastAt: at, areReportable: true };
  const summary = { succeeded: 0, failed: 20, answered: 0, totalMs: 0, maxMs: 0, failures };
  const options = { now: at, newId: () => crypto.randomUUID(), disableAfterMs: 0 };
  await store.write(recordAttempts, [{ endpointId: about, summary }], options);
  const { items: [event] } = (await bed.bed.call("GET", "/events?event=endpoint.failing")).body;
  const id = String(event?.["id"]);
  assertEquals(await bed.why(id, about), "the event is about this endpoint: only others receive it");
  assertEquals(
    await bed.why(id, other),
    "its endpoint is disabled; it waits until the endpoint is enabled",
  );
});

Deno.test("why of an event: an erased payload cannot be compared", async () => {
  await using bed = await Bed.open();
  const to = await bed.endpoint({ filter: PLAN });
  const event = await bed.event();
  await bed.bed.call("DELETE", `/events/${event}/payload`);
  assertEquals(
    await bed.why(event, to),
    "the filter of the endpoint cannot be compared: the payload of the event was erased",
  );
});

Deno.test("why of an event: wrong input", async () => {
  await using bed = await Bed.open();
  const [to, event] = [await bed.endpoint({}), await bed.event()];
  assertEquals(await bed.why(UNKNOWN, to), [404, "not_found", undefined]);
  assertEquals(await bed.why(event, UNKNOWN), [404, "not_found", undefined]);
  for (
    const [query, field] of [["", "endpointId"], ["endpointId=1&x=2", "x"], ["endpointId=x", "endpointId"]]
  ) {
    const { status, body } = await bed.bed.call("GET", `/events/${event}/why?${query}`);
    assertEquals([status, body.field], [422, field], query);
  }
});
