import { assertEquals } from "#assert";
import { signingSecrets } from "../../../../src/webhooks/model/signing_secrets.ts";
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

Deno.test("endpoint: the secrets that are shown as signing are those that sign, also when the clock was set back", async () => {
  await using bed = await WebhookBed.open();
  const rotationOverlapMs = 2 * 3_600_000;
  const { id } = (await bed.call("POST", "/endpoints", { url: "https://a.test/", rotationOverlapMs })).body;
  await bed.call("POST", `/endpoints/${id}/rotate`, { activeIn: "24h" });
  const states = [];
  for (const hours of [0, 23, 2, 2, -50]) {
    bed.clock.advance(hours * 3_600_000);
    const secrets = (await bed.store.read(findEndpoint, id))?.secrets ?? [];
    const { body } = await bed.call("GET", `/endpoints/${id}`);
    const shown = body["secrets"] as { id: string; signs: boolean; state: string }[];
    const signing = signingSecrets({ secrets, rotationOverlapMs }, bed.clock.now());
    const now = shown.filter(({ signs }) => signs);
    assertEquals(now.find(({ state }) => state === "signing")?.id, signing[0]?.id, `${hours} h`);
    assertEquals(now.map((one) => one.id).toSorted(), signing.map((one) => one.id).toSorted(), `${hours} h`);
    states.push(shown.map(({ state, signs }) => signs ? `${state} signs` : state).join(", "));
  }
  assertEquals(states, [
    "pending, signing signs",
    "pending signs, signing signs",
    "signing signs, retired signs",
    "signing signs, retired",
    "pending, signing signs",
  ]);
});
