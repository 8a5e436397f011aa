import { assertEquals } from "#assert";
import { eventBody } from "../../../../../src/webhooks/model/event.ts";
import { subscribedTo } from "../../../../../src/webhooks/store/operations/subscriptions.ts";

Deno.test("subscriptions: the filters of thousands of endpoints are read once, not for each event", () => {
  const endpoints = Array.from({ length: 5_000 }, (_, n) => ({
    id: `e${n}`,
    events: '["order.*"]',
    data_filter: JSON.stringify({ "customer.id": [`c${n}`] }),
  }));
  const event = { kind: "order.created", body: eventBody("order.created", '{"customer":{"id":"c7"}}') };
  const parse = JSON.parse;
  let reads = 0;
  JSON.parse = (...given: Parameters<typeof parse>) => {
    reads++;
    return parse(...given);
  };
  try {
    const first = subscribedTo(event, endpoints);
    assertEquals([first.map(({ endpointId }) => endpointId), reads > 5_000], [["e7"], true]);
    reads = 0;
    assertEquals(subscribedTo(event, endpoints).length, 1);
    assertEquals(reads, 1, "only the event");
  } finally {
    JSON.parse = parse;
  }
});
