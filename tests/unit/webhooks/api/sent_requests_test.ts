import { assertEquals } from "#assert";
import { signature } from "../../../../src/webhooks/model/signature.ts";
import type { OutgoingDelivery } from "../../../../src/webhooks/deliveries/sender.ts";
import { until } from "../../../harness/until.ts";
import { type Body, WebhookBed } from "../../../harness/webhook_service_fixture.ts";

const READER = { name: "ci", role: "read" } as const;

/** A service that works, with what it sends. */
async function sendingBed() {
  const sent: OutgoingDelivery[] = [];
  const send = (request: OutgoingDelivery) => {
    sent.push(request);
    return Promise.resolve({ status: 204 });
  };
  const lock = { isSole: true, keep: () => true, release: () => {} };
  const bed = await WebhookBed.open({ parts: { sender: { send }, takeLock: () => lock } });
  bed.service.start();
  await until("the work to begin", () => bed.service.isWorking);
  const delivered = async (): Promise<Body> => {
    const acknowledged = async () => {
      bed.clock.advance(1_000);
      return (await bed.call("GET", "/deliveries?state=acknowledged")).body.items[0];
    };
    return await until("the delivery", async () => await acknowledged() ?? false);
  };
  return { bed, sent, delivered };
}

Deno.test("sent requests: headers are shown as sent, without static ones", async () => {
  const { bed, sent, delivered } = await sendingBed();
  await using _ = bed;
  const endpoint = { url: "https://example.com/", headers: { authorization: "Bearer of-the-receiver" } };
  const { secret } = (await bed.call("POST", "/endpoints", endpoint)).body;
  await bed.post({ event: "order.created", data: { id: 7 } });
  const { id } = await delivered();
  const { headers, body = new Uint8Array(), url } = sent[0] ?? {};
  const { authorization, "user-agent": agent, ...own }: Readonly<Record<string, string>> = { ...headers };
  assertEquals([authorization, agent], ["Bearer of-the-receiver", "Weir/test"]);
  assertEquals(own["x-svc-signature"], await signature(secret, body));
  const text = new TextDecoder().decode(body);
  const shown = await bed.call("GET", `/deliveries/${id}/requests`);
  assertEquals(shown.body as object, { body: text, requests: [{ number: 1, url, headers: own }] });
  const { "x-svc-signature": __, "webhook-signature": ___, ...rest } = own;
  const read = await bed.call("GET", `/deliveries/${id}/requests`, undefined, READER);
  assertEquals(read.body as object, { body: text, requests: [{ number: 1, url, headers: rest }] });
  const record = await bed.call("GET", `/deliveries/${id}`);
  assertEquals(JSON.stringify(record).includes("signature"), false);
});

const BODIES: Readonly<Record<string, readonly [fields: object, contentType: string]>> = {
  "event and data": [{}, "application/json"],
  "CloudEvents": [{ format: "cloudevents" }, "application/cloudevents+json"],
  "a template": [{ template: { order: "{{ data.id }}" } }, "application/json"],
};

for (const [form, [fields, contentType]] of Object.entries(BODIES)) {
  Deno.test(`sent requests: the body is shown as sent, in the form of ${form}`, async () => {
    const { bed, sent, delivered } = await sendingBed();
    await using _ = bed;
    await bed.call("POST", "/endpoints", { url: "https://example.com/", ...fields });
    const posted = await bed.post({ event: "order.created", data: { id: 7 } });
    const { id } = await delivered();
    const shown = async () => {
      const { body, requests } = (await bed.call("GET", `/deliveries/${id}/requests`)).body;
      const [request] = requests as { readonly headers: Readonly<Record<string, string>> }[];
      return [body, request?.headers["content-type"]];
    };
    assertEquals(await shown(), [new TextDecoder().decode(sent[0]?.body), contentType]);
    await bed.call("DELETE", `/events/${posted.body.id}/payload`);
    assertEquals(await shown(), [undefined, contentType]);
    assertEquals((await bed.call("GET", `/deliveries/${posted.body.id}/requests`)).status, 404);
  });
}
