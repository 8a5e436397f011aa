import { assertEquals } from "#assert";
import { signingSecret } from "../../../../src/webhooks/deliveries/request.ts";
import { ENDPOINT_FIELDS } from "../../../../src/webhooks/resources/endpoint.ts";
import { changeFields } from "../../../../src/webhooks/resources/field.ts";
import { readFields } from "../../../../src/webhooks/api/field_reader.ts";
import { refusalOf } from "./refusal_fixture.ts";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";
import { findEndpoint } from "../../../../src/webhooks/store/operations/endpoints.ts";

function headersOf(name: string): unknown {
  return readFields({ headers: { [name]: "v" } }, changeFields(ENDPOINT_FIELDS)).headers;
}

Deno.test("endpoint: headers that steer a connection are refused when they are saved", async () => {
  const refused = [
    ...["connection", "TE", "trailer", "Transfer-Encoding", "upgrade", "http2-settings", "keep-alive"],
    ...["expect", "host", "Content-Length", "proxy-authorization", "proxy-connection", "user-agent"],
    ...["x-svc-event", "X-Svc-Other", "webhook-id"],
  ];
  for (const name of refused) {
    const problem = await refusalOf(() => headersOf(name));
    assertEquals([problem.status, problem.field], [422, `headers.${name}`]);
  }
  for (const name of ["authorization", "x-tenant", "__proto__"]) assertEquals(headersOf(name), [[name, "v"]]);
});

Deno.test("endpoint: the secret that is shown as signing is the one that signs, also when the clock was set back", async () => {
  await using bed = await WebhookBed.open();
  const { id } = (await bed.call("POST", "/endpoints", { url: "https://a.test/" })).body;
  await bed.call("POST", `/endpoints/${id}/rotate`, { activeIn: "24h" });
  for (const hours of [0, 25, -50]) {
    bed.clock.advance(hours * 3_600_000);
    const secrets = (await bed.store.read(findEndpoint, id))?.secrets ?? [];
    const { body } = await bed.call("GET", `/endpoints/${id}`);
    const shown = body["secrets"] as { id: string; signs: boolean }[];
    assertEquals(
      shown.filter(({ signs }) => signs).map((secret) => secret.id),
      [signingSecret(secrets, bed.clock.now())?.id],
      `${hours} h`,
    );
  }
});
