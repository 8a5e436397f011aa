import { assert, assertEquals } from "@std/assert";
import { until } from "../support/until.ts";
import { webhookCall } from "../support/webhook_client.ts";
import { deliveryProblems } from "../support/webhook_kill_loop.ts";
import { WebhookProcess } from "../support/webhook_process.ts";
import { WebhookReceiver } from "../support/webhook_receiver.ts";

const RULES = {
  "shop.yaml": `domain: shop
descriptors:
- key: user
  rate_limit: { unit: day, requests_per_unit: 1000000000 }
`,
};
const DECISION = { domain: "shop", descriptors: [{ entries: [{ key: "user", value: "bob" }] }] };
const WORKFLOW = "workflow: order-intake\nsteps:\n  - name: result\n    set: { n: 1 }\n";
/** A decision waits for nothing of the webhook service; a busy machine is allowed for. */
const SLOWEST_DECISION_MS = 1_000;

/** What ends the worker, and how long it may take until calls are refused and until they are taken again. */
const ENDS = {
  "an error that nobody catches": { signal: "SIGUSR1", backMs: 10_000 },
  "an end without a word": { signal: "SIGUSR2", backMs: 30_000 },
} as const;

for (const [what, { signal, backMs }] of Object.entries(ENDS)) {
  Deno.test(`webhooks: a worker that ends by ${what} is replaced, while decisions go on`, async () => {
    await using receiver = await WebhookReceiver.start();
    await using weir = await WebhookProcess.open({ workflows: { "order-intake.yaml": WORKFLOW } });
    await weir.start({ rules: RULES, faults: {} });
    await weir.endpoint(receiver, "/hook");
    const { key: token } = await weir.made("/triggers", { name: "orders", workflow: "order-intake" });
    const call = (key: string) =>
      webhookCall(`${weir.base}/api/v1/workflows/triggers/orders`, { token, key, body: {} });
    const before = await call("before");
    assertEquals(before.status, 202);

    const stop = new AbortController();
    const decisions = decide(`${weir.base}/json`, stop.signal);
    // Where the test fails before the end, its own error is the one to tell of.
    decisions.catch(() => {});
    weir.weir.signal(signal);
    const shown = until("health to show it", async () => {
      const { status, body } = await fetch(`${weir.base}/healthcheck`);
      await body?.cancel();
      return status === 503;
    }, { deadlineMs: backMs, intervalMs: 5 });
    shown.catch(() => {});
    const refused = await until("a refusal", async () => {
      const answered = await call("while-away");
      return answered.status === 202 ? undefined : answered;
    }, { deadlineMs: backMs, intervalMs: 5 });
    assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
    await shown;

    const back = await until("the service to be back", async () => {
      const answered = await call("back");
      return answered.status === 202 ? answered : undefined;
    }, { deadlineMs: backMs });
    assertEquals((await call("before")).body.executionId, before.body.executionId);
    await until("both executions to be told of", async () => {
      return await weir.isCarriedOut() && await weir.isDelivered() && receiver.byId.size >= 2;
    }, { deadlineMs: 20_000 });
    stop.abort();
    const { count, refusals, slowestMs } = await decisions;
    assert(back.body.executionId !== before.body.executionId);
    assertEquals(refusals, []);
    assert(count > 20, `only ${count} decisions were asked for`);
    assert(slowestMs < SLOWEST_DECISION_MS, `a decision took ${Math.round(slowestMs)} ms`);
    const deliveries = await weir.all("/deliveries");
    assertEquals(deliveries.flatMap((delivery) => deliveryProblems(delivery, receiver)), []);
  });
}

/** Asks for one decision after the other until it is told to end. */
async function decide(url: string, signal: AbortSignal) {
  const refusals: number[] = [];
  let count = 0;
  let slowestMs = 0;
  while (!signal.aborted) {
    const begin = performance.now();
    const { status } = await webhookCall(url, { body: DECISION });
    slowestMs = Math.max(slowestMs, performance.now() - begin);
    if (status !== 200) refusals.push(status);
    count++;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return { count, refusals, slowestMs };
}
