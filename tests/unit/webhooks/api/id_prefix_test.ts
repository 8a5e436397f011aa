import { assertEquals } from "#assert";
import { addEvent } from "../../../contract/webhook_store_bed.ts";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";

/** The length of the first group of a UUID. */
const SHORT = 8;

Deno.test("identifiers: the first characters of one select its record, in paths and parameters", async () => {
  await using bed = await WebhookBed.open();
  const { body: { id: endpointId } } = await bed.call("POST", "/endpoints", {
    url: "https://example.com/hook",
  });
  const { id: triggerId, keys: [key] } = await bed.trigger();
  const { body: { id: eventId } } = await bed.post({ event: "order.created", data: {} });
  const [delivery] = (await bed.call("GET", "/deliveries")).body.items;
  const short = (id: string | undefined) => (id ?? "").slice(0, SHORT);
  const { body: { id: eventKeyId } } = await bed.call("POST", "/event-keys", { name: "desk", kinds: ["*"] });
  const replay = await bed.call("POST", "/deliveries/retry", {
    endpointId: short(endpointId),
    eventId: short(eventId).toUpperCase(),
  });
  assertEquals([replay.body["endpointId"], replay.body["eventId"]], [endpointId, eventId]);
  const paths: Readonly<Record<string, string>> = {
    [`/endpoints/${short(endpointId)}`]: endpointId,
    [`/endpoints/${short(endpointId).toUpperCase()}`]: endpointId,
    [`/endpoints/${endpointId.slice(0, 6)}`]: endpointId,
    [`/endpoints/${endpointId.slice(0, 35)}`]: endpointId,
    [`/triggers/${short(triggerId)}`]: triggerId,
    [`/events/${short(eventId)}`]: eventId,
    [`/deliveries/${short(delivery?.id)}`]: delivery?.id ?? "",
    [`/event-keys/${short(eventKeyId)}`]: eventKeyId,
    [`/replays/${short(replay.body.id)}`]: replay.body.id,
  };
  for (const [path, id] of Object.entries(paths)) {
    const { status, body } = await bed.call("GET", path);
    assertEquals([path, status, body.id], [path, 200, id]);
  }
  const query = `endpointId=${short(endpointId)}&eventId=${short(eventId)}`;
  assertEquals((await bed.call("GET", `/deliveries?${query}`)).body.items.map(({ id }) => id), [
    delivery?.id,
  ]);
  const why = await bed.call("GET", `/events/${short(eventId)}/why?endpointId=${short(endpointId)}`);
  assertEquals([why.status, why.body["deliveryId"]], [200, delivery?.id]);
  const called = await bed.call("POST", `/triggers/${short(triggerId)}/call`, { data: {} });
  assertEquals([called.status, typeof called.body["executionId"]], [202, "string"]);
  assertEquals(
    (await bed.call("DELETE", `/triggers/${short(triggerId)}/keys/${short(key?.id)}`)).status,
    204,
  );
  assertEquals((await bed.call("DELETE", `/endpoints/${short(endpointId)}`)).status, 204);
  const { items: [entry] } = (await bed.call("GET", "/audit?event=endpoint.deleted")).body;
  assertEquals(entry?.["object"], `endpoint:${endpointId}`);
});

Deno.test("identifiers: fewer than six characters and unknown ones select nothing", async () => {
  await using bed = await WebhookBed.open();
  const { body: { id } } = await bed.call("POST", "/endpoints", { url: "https://example.com/hook" });
  const other = id.startsWith("0") ? "1" : "0";
  for (const text of [id.slice(0, 5), `${other}${id.slice(1, 8)}`, `${id}0`, `${id.slice(0, 8)}_`]) {
    assertEquals([text, (await bed.call("GET", `/endpoints/${text}`)).status], [text, 404]);
  }
  const { status, body } = await bed.call("GET", `/deliveries?endpointId=${id.slice(0, 5)}`);
  assertEquals([status, body.field], [422, "endpointId"]);
  for (const endpointId of [id.slice(0, 5), 7, { id }]) {
    const refused = await bed.call("POST", "/deliveries/retry", { endpointId });
    assertEquals([refused.status, refused.body.field], [422, "endpointId"]);
  }
});

Deno.test("identifiers: an ambiguous one is refused with its candidates, and nothing happens", async () => {
  const ids = ["a", "b", "c", "d", "e", "f"].map((last) => `2a408522-0000-4000-8000-00000000000${last}`);
  await using bed = await WebhookBed.open();
  for (const id of ids) await addEvent(bed.store, { id });
  const { status, body } = await bed.call("DELETE", "/events/2a408522/payload");
  assertEquals([status, body.code, body["candidates"]], [400, "ambiguous_id", ids.slice(0, 5)]);
  const detail = `Cannot find one record: ${ids.slice(0, 5).join(", ")} and others begin with "2a408522"`;
  assertEquals(body["detail"], detail);
  for (const id of ids) assertEquals((await bed.call("GET", `/events/${id}`)).body["isErased"], false);
});
