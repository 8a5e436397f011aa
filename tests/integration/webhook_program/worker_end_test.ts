import { assert, assertEquals } from "#assert";
import { until } from "../../harness/until.ts";
import { SHOP_RULES } from "../../harness/webhook_calls.ts";
import { webhookCall } from "../../harness/webhook_client.ts";
import { deliveryProblems } from "../../harness/delivery_problems.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { WebhookServed } from "../../harness/webhook_served.ts";

const WORKFLOW = "workflow: order-intake\nsteps:\n  - name: result\n    set: { n: 1 }\n";

/** The faults that end the worker; after one that silences it, its heartbeat timeout is skipped. */
const ENDS: Readonly<Record<string, (weir: WebhookServed) => void>> = {
  "an uncaught error": (weir) => weir.breakWorker(),
  "an end without a word": (weir) => {
    weir.silenceWorker();
    weir.hurry(17_000);
  },
};

Deno.test("webhooks: a worker that ends is replaced, however it ends, while decisions go on", async () => {
  await using receiver = await WebhookReceiver.start();
  await using weir = await WebhookServed.open({ workflows: { "order-intake.yaml": WORKFLOW } });
  await weir.start({ rules: SHOP_RULES, faults: {} });
  await weir.endpoint(receiver, "/hook");
  const { key: token } = await weir.made("/triggers", { name: "orders", workflow: "order-intake" });
  const call = (key: string) =>
    webhookCall(`${weir.base}/api/v1/workflows/triggers/orders`, { token, key, body: {} });
  const decisions = weir.decideSteadily();

  for (const [what, end] of Object.entries(ENDS)) {
    const before = await call(`before ${what}`);
    assertEquals(before.status, 202);
    end(weir);
    await until("health to show it", async () => (await weir.health()).status === 503, { intervalMs: 1 });
    const refused = await call(`while away: ${what}`);
    assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
    await decisions.more();
    weir.hurry(1_000);
    const back = await until("the service to be back", async () => {
      const answered = await call(`back ${what}`);
      return answered.status === 202 ? answered : undefined;
    });
    assertEquals((await call(`before ${what}`)).body.executionId, before.body.executionId);
    assert(back.body.executionId !== before.body.executionId);
  }
  await until("all executions to be reported", async () => {
    return await weir.isCarriedOut() && await weir.isDelivered() && receiver.byId.size === 4;
  });
  assertEquals(await decisions.end(), []);
  const deliveries = await weir.all("/deliveries");
  assertEquals(deliveries.flatMap((delivery) => deliveryProblems(delivery, receiver)), []);
});
