import { assertEquals } from "#assert";
import { deliveriesProblems } from "../../harness/delivery_problems.ts";
import { until } from "../../harness/until.ts";
import { WebhookProcess } from "../../harness/webhook_process.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";

Deno.test("kill -9 after a rendered body was sent: the next process sends the same bytes in spite of a change", async () => {
  await using receiver = await WebhookReceiver.start();
  await using weir = await WebhookProcess.open({});
  await weir.start({ faults: { kill: { at: "after send", nth: 1 } } });
  await until("the service", async () => (await weir.api("GET", "/triggers?limit=1")).status === 200);
  const template = { event: "{{ event }}", data: "{{ data }}", sent: "{{ time }}" };
  const { id } = await weir.endpoint(receiver, "/hook", { events: ["agent.*"], template });
  weir.event({ n: 0 }, "event-0").catch(() => {});
  assertEquals(await weir.ended(), "SIGKILL");
  await weir.start();
  await until("the service", async () => (await weir.api("GET", "/triggers?limit=1")).status === 200);
  await weir.api("PATCH", `/endpoints/${id}`, { template: null, format: "cloudevents" });
  await until("the delivery", () => weir.isDelivered());
  const deliveries = await weir.all("/deliveries");
  assertEquals(deliveriesProblems(deliveries, { receiver, events: 1 }), []);
  const bodies = receiver.receptions.map(({ body }) => body);
  assertEquals([bodies.length, new Set(bodies).size], [2, 1]);
  assertEquals(Object.keys(JSON.parse(bodies[0] ?? "{}")), ["event", "data", "sent"]);
  const types = receiver.receptions.map(({ headers }) => headers["content-type"]);
  assertEquals(types, ["application/json", "application/json"]);
  assertEquals(receiver.problems, []);
});
