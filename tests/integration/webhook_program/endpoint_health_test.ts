import { assertEquals } from "#assert";
import { until } from "../../harness/until.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

/** The kinds that a receiver got, and the data of each. */
function received(receiver: WebhookReceiver): readonly { event: string; data: Record<string, unknown> }[] {
  return receiver.receptions.map(({ body }) => JSON.parse(body));
}

Deno.test("webhooks: others learn that an endpoint fails, and that it works again", async () => {
  await using folder = await WebhookFolder.make();
  await using receiver = await WebhookReceiver.start();
  await using watcher = await WebhookReceiver.start();
  await using weir = await folder.serve();
  const { http } = weir.running.addresses;
  const add = async (url: string, events: readonly string[]) =>
    (await api(http, "/endpoints", { body: { url, events } })).body.id;
  const id = await add(receiver.url, ["order.*", "endpoint.*"]);
  await add(watcher.url, ["endpoint.*"]);
  receiver.react = () => 500;
  // Each is attempted twice without a pause.
  for (let n = 0; n < 12; n++) await api(http, "/events", { body: { event: "order.created", data: { n } } });
  await until("the failure", () => received(watcher).length > 0);
  const failing = (await api(http, `/endpoints/${id}`)).body;
  assertEquals(received(watcher).map(({ event, data }) => [event, data["endpointId"]]), [[
    "endpoint.failing",
    id,
  ]]);
  assertEquals(Number(failing["consecutiveFailures"]) >= 20, true);
  assertEquals(failing["failingSince"], received(watcher)[0]?.data["failingSince"]);
  receiver.react = () => 200;
  const { body: { items: [delivery] } } = await api(http, `/deliveries?endpointId=${id}`);
  await api(http, `/deliveries/${delivery?.id}/resend`, { method: "POST" });
  await until("the recovery", () => received(watcher).length > 1);
  assertEquals(received(watcher)[1]?.event, "endpoint.recovered");
  assertEquals(
    received(receiver).every(({ event }) => event === "order.created"),
    true,
    "nothing about itself",
  );
  const [hour] = (await api(http, `/endpoints/${id}`)).body.attempts;
  assertEquals([hour?.["period"], Number(hour?.["failures"]) >= 20], ["1h", true]);
  assertEquals(weir.log.filter((line) => line.includes("Endpoint is failing")).length, 1);
});
