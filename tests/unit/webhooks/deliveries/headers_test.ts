import { assertEquals } from "@std/assert";
import type { EndpointSecret } from "../../../../src/webhooks/model/records.ts";
import { signature, standardWebhooksHeaders } from "../../../../src/webhooks/model/signature.ts";
import { DispatcherBed, SECRET } from "../../../harness/dispatcher_fixture.ts";
import { addEndpointSecret } from "../../../../src/webhooks/store/endpoints.ts";

const HOUR = 3_600_000;

function secret(id: string, activeAt: number, createdAt = activeAt): EndpointSecret {
  const text = `whsec_${btoa(`the secret ${id} of the tests, 32 b`)}`;
  return { id, activeAt, createdAt, sealed: { keyId: "k", bytes: new TextEncoder().encode(text) } };
}

Deno.test("a rotated secret signs from its moment on", async () => {
  await using bed = await DispatcherBed.open();
  const now = bed.clock.now();
  const [old, next] = [secret("old", now), secret("next", now + 24 * HOUR, now)];
  const id = await bed.endpoint({ secrets: [old] });
  await bed.store.write(addEndpointSecret, id, next, bed.entry("endpoint.rotated"));
  const dispatcher = bed.start();
  for (
    const [count, [advanceMs, wanted]] of [[0, old], [24 * HOUR - 1, old], [1, next]]
      .entries() as ArrayIterator<
        [number, [number, EndpointSecret]]
      >
  ) {
    bed.clock.advance(advanceMs);
    await bed.event();
    dispatcher.wake();
    await bed.sent(count + 1);
    const request = bed.sender.sent[count];
    const text = new TextDecoder().decode(wanted.sealed.bytes);
    assertEquals(
      request?.headers["x-svc-signature"],
      await signature(text, request?.body ?? new Uint8Array()),
    );
  }
});

Deno.test("an endpoint's own headers, Standard Webhooks and time-out go with its deliveries", async () => {
  await using bed = await DispatcherBed.open();
  const own = { "x-team": "red", "authorization": "Bearer of the receiver" };
  await bed.endpoint({
    standardWebhooks: true,
    timeoutMs: 2_500,
    headerNames: Object.keys(own),
    headers: { keyId: "k", bytes: new TextEncoder().encode(JSON.stringify(own)) },
  });
  await bed.event();
  bed.start();
  await bed.sent(1);
  const { delivery } = await bed.only();
  const [{ headers = {}, body = new Uint8Array(), timeoutMs } = {}] = bed.sender.sent;
  const timestampSeconds = Math.floor(bed.clock.now() / 1_000);
  const standard = await standardWebhooksHeaders({ id: delivery.id, timestampSeconds, body, secret: SECRET });
  assertEquals(headers, {
    ...own,
    "content-type": "application/json",
    "user-agent": "Weir/0.0.0",
    "x-svc-event": "agent.reply.completed",
    "x-svc-signature": await signature(SECRET, body),
    "x-svc-delivery": delivery.id,
    "x-svc-timestamp": `${timestampSeconds}`,
    ...standard,
  });
  assertEquals([timeoutMs, standard["webhook-id"]], [2_500, delivery.id]);
});
