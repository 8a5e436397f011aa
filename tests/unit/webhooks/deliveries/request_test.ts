import { assertEquals } from "#assert";
import { signingSecret } from "../../../../src/webhooks/deliveries/request.ts";
import { signature, standardWebhooksHeaders } from "../../../../src/webhooks/model/signature.ts";
import type { EndpointSecret } from "../../../../src/webhooks/model/records.ts";
import { addEndpointSecret } from "../../../../src/webhooks/store/operations/endpoints.ts";
import { DispatcherBed, SECRET } from "../../../harness/dispatcher_fixture.ts";

const HOUR = 3_600_000;

/** A secret by when it was made and when it becomes active, in hours. */
function secret(id: string, createdAt: number, activeAt: number): EndpointSecret {
  const sealed = { keyId: "k", bytes: new Uint8Array() };
  return { id, sealed, createdAt: createdAt * HOUR, activeAt: activeAt * HOUR };
}

const FIRST = secret("first", 0, 0);
const STAGED = secret("staged", 1, 25);
const URGENT = secret("urgent", 2, 2);

const CASES: readonly {
  readonly name: string;
  readonly secrets: readonly EndpointSecret[];
  readonly hour: number;
  readonly signs: string | undefined;
}[] = [
  { name: "none", secrets: [], hour: 1, signs: undefined },
  { name: "the only one", secrets: [FIRST], hour: 1, signs: "first" },
  { name: "the only one, after the clock was set back", secrets: [FIRST], hour: -1, signs: "first" },
  { name: "none is active yet", secrets: [STAGED, FIRST], hour: -1, signs: "first" },
  { name: "a staged one before its time", secrets: [STAGED, FIRST], hour: 24.9, signs: "first" },
  { name: "a staged one at its time", secrets: [STAGED, FIRST], hour: 25, signs: "staged" },
  { name: "one that overtook a staged one", secrets: [URGENT, STAGED, FIRST], hour: 3, signs: "urgent" },
  { name: "the overtaken one at its time", secrets: [URGENT, STAGED, FIRST], hour: 25, signs: "urgent" },
];

for (const { name, secrets, hour, signs } of CASES) {
  Deno.test(`signing secret: ${name}`, () => {
    assertEquals(signingSecret(secrets, hour * HOUR)?.id, signs);
  });
}

function textSecret(id: string, activeAt: number, createdAt = activeAt): EndpointSecret {
  const text = `whsec_${btoa(`the secret ${id} of the tests, 32 b`)}`;
  return { id, activeAt, createdAt, sealed: { keyId: "k", bytes: new TextEncoder().encode(text) } };
}

Deno.test("a rotated secret signs from its moment on", async () => {
  await using bed = await DispatcherBed.open();
  const now = bed.clock.now();
  const [old, next] = [textSecret("old", now), textSecret("next", now + 24 * HOUR, now)];
  const id = await bed.endpoint({ secrets: [old] });
  await bed.store.write(addEndpointSecret, id, next, bed.entry("endpoint.rotated"));
  const dispatcher = bed.start();
  const signing = [[0, old], [24 * HOUR - 1, old], [1, next]] as const;
  for (const [count, [advanceMs, wanted]] of signing.entries()) {
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
