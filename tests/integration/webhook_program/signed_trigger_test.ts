import { assert, assertEquals } from "#assert";
import { signatureRefusal } from "../../../src/webhooks/model/trigger_verification.ts";
import { PROVIDER_HEADERS } from "../../harness/provider_signatures.ts";
import { postgres } from "../../harness/postgres_fixture.ts";
import { until } from "../../harness/until.ts";
import { WebhookFleet } from "../../harness/webhook_fleet.ts";
import { type Reception, WebhookReceiver } from "../../harness/webhook_receiver.ts";

const SECRET = "It's a Secret to Everybody";
const BODY = '{"ref":"main","n":12345678901234567890}';
const RUNS = 8;
const workflow = (url: string) =>
  `workflow: hub
steps:
  - name: ask
    request: { method: POST, url: "${url}/ask", body: { ref: "{{ input.ref }}", event: "{{ execution.event }}", topic: "{{ execution.headers.x-topic }}" } }
`;

postgres.test("a signed call starts one workflow, whose event is signed, although the process that took it is killed", async (database) => {
  await using receiver = await WebhookReceiver.start();
  const workflows = { "hub.yaml": workflow(receiver.url) };
  await using fleet = await WebhookFleet.open({ size: 2, workflows, address: database.url() });
  await fleet.start();
  const { secret } = await fleet.endpoint(receiver, "/hook", { events: ["workflow.*"] });
  await fleet.made("/triggers", {
    name: "hub",
    workflow: "hub",
    verify: { scheme: "github", secret: SECRET },
    passHeaders: ["X-Topic"],
  });
  const call = (n: number) => {
    const headers = PROVIDER_HEADERS.github({ secret: SECRET, body: BODY, id: `delivery-${n}` });
    return fleet.signedTrigger("hub", { ...headers, "x-topic": "refs" }, BODY);
  };
  const all = () => Promise.all(Array.from({ length: RUNS }, (_, n) => call(n)));
  const first = await all();
  await fleet.member(0).kill();
  const second = await all();
  assertEquals(
    second.map(({ body, headers }) => [body.executionId, headers.get("idempotency-replayed")]),
    first.map(({ body }) => [body.executionId, "true"]),
  );
  const survivor = fleet.member(1);
  await until("all to be done", async () => await survivor.isCarriedOut() && await survivor.isDelivered());
  const records = await survivor.all("/executions");
  assertEquals(
    records.map(({ status, event }) => [status, event]),
    Array(RUNS).fill(["succeeded", "push"]),
  );
  assertEquals(new Set(records.map(({ id }) => id)), new Set(first.map(({ body }) => body.executionId)));
  const asked = receiver.receptions.filter(({ path }) => path === "/ask");
  assertEquals(
    new Set(asked.map(({ body }) => body)),
    new Set(['{"ref":"main","event":"push","topic":"refs"}']),
  );
  const delivered = receiver.receptions.filter(({ path }) => path === "/hook");
  assertEquals(new Set(delivered.map(({ id }) => id)).size, RUNS);
  for (const one of delivered) assertEquals(await refusalOf(one, secret), undefined);
  const wrong = PROVIDER_HEADERS.github({ secret: "another secret", body: BODY, id: "delivery-x" });
  assertEquals((await fleet.signedTrigger("hub", wrong, BODY)).status, 401);
  assertEquals((await survivor.all("/executions")).length, RUNS);
  await until("the metrics", async () => await survivor.metric("signature_refusals.wrong_signature") === 1);
  assertEquals(await survivor.metric("triggers.unauthorized"), 1);
  assert(await survivor.metric("triggers.replayed") > 0);
  assertEquals(receiver.problems, []);
});

/** Why a receiver of Standard Webhooks refuses a delivery; nothing where it is valid. */
function refusalOf({ headers, body }: Reception, secret: string): Promise<unknown> {
  const sent = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
  const call = { headers: new Map(sent), body: new TextEncoder().encode(body) };
  const options = { secrets: [secret], now: Date.now() };
  return signatureRefusal({ scheme: "standard-webhooks", toleranceSeconds: 300 }, call, options);
}
