import { assertEquals } from "@std/assert";
import { until } from "../../harness/until.ts";
import { api, WebhookFolder, WebhookReceiver } from "../../harness/webhook_weir.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

/** The kinds that a receiver got, and the data of each. */
function received(receiver: WebhookReceiver): readonly { event: string; data: Record<string, unknown> }[] {
  return receiver.received.map(({ body }) => JSON.parse(body));
}

Deno.test("webhooks: others learn that an endpoint fails, and that it works again", async () => {
  await using folder = await WebhookFolder.make();
  await using receiver = new WebhookReceiver();
  await using watcher = new WebhookReceiver();
  await using weir = await folder.serve();
  const { http } = weir.running.addresses;
  const add = async (url: string, events: readonly string[]) =>
    (await api(http, "/endpoints", { body: { url, events } })).body.id;
  const id = await add(receiver.url, ["order.*", "endpoint.*"]);
  await add(watcher.url, ["endpoint.*"]);
  receiver.status = 500;
  // Each is attempted twice at once.
  for (let n = 0; n < 12; n++) await api(http, "/events", { body: { event: "order.created", data: { n } } });
  await until("the failure", () => received(watcher).length > 0);
  const failing = (await api(http, `/endpoints/${id}`)).body;
  assertEquals(received(watcher).map(({ event, data }) => [event, data["endpointId"]]), [[
    "endpoint.failing",
    id,
  ]]);
  assertEquals(Number(failing["consecutiveFailures"]) >= 20, true);
  assertEquals(failing["failingSince"], received(watcher)[0]?.data["failingSince"]);
  receiver.status = 200;
  const { body: { items: [delivery] } } = await api(http, `/deliveries?endpointId=${id}`);
  await api(http, `/deliveries/${delivery?.id}/resend`, { method: "POST" });
  await until("the recovery", () => received(watcher).length > 1);
  assertEquals(received(watcher)[1]?.event, "endpoint.recovered");
  assertEquals(
    received(receiver).every(({ event }) => event === "order.created"),
    true,
    "nothing about itself",
  );
  const [hour] = (await api(http, `/endpoints/${id}`)).body["attempts"] as {
    period: string;
    failures: number;
  }[];
  assertEquals([hour?.period, (hour?.failures ?? 0) >= 20], ["1h", true]);
  assertEquals(weir.log.filter((line) => line.includes("Endpoint is failing")).length, 1);
});

Deno.test("webhooks: an endpoint that only fails is disabled, the others learn it, and it is enabled again", async () => {
  await using folder = await WebhookFolder.make();
  await using receiver = new WebhookReceiver();
  await using watcher = new WebhookReceiver();
  await using weir = await folder.serve({ WEBHOOK_DISABLE_AFTER: "1ms" });
  const { http } = weir.running.addresses;
  const { body: { id } } = await api(http, "/endpoints", {
    body: { url: receiver.url, events: ["order.*"] },
  });
  await api(http, "/endpoints", { body: { url: watcher.url, events: ["endpoint.disabled"] } });
  receiver.status = 500;
  await api(http, "/events", { body: { event: "order.created", data: {} } });
  await api(http, "/events", { body: { event: "order.created", data: {} } });
  await until("the end", () => received(watcher).length > 0);
  const { event, data } = received(watcher)[0] ?? {};
  assertEquals([event, data?.["endpointId"], data?.["reason"]], ["endpoint.disabled", id, "failing"]);
  const shown = (await api(http, `/endpoints/${id}`)).body;
  assertEquals([shown["enabled"], shown["disabledReason"], shown["disabledAt"]], [
    ...[false, "failing", data?.["disabledAt"]],
  ]);
  const { body: { items: [entry] } } = await api(http, "/audit?event=endpoint.disabled");
  assertEquals([entry?.["actor"], entry?.["object"]], ["system", `endpoint:${id}`]);
  const attempts = receiver.received.length;
  await api(http, "/events", { body: { event: "order.created", data: {} } });
  receiver.status = 200;
  const enabled = await api(http, `/endpoints/${id}`, { method: "PATCH", body: { enabled: true } });
  assertEquals([enabled.status, enabled.body["missed"], enabled.body["disabledReason"]], [200, 0, undefined]);
  await until("what waited to arrive", () => receiver.received.length > attempts);
});
