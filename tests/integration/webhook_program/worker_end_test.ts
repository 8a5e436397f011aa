import { assert, assertEquals } from "@std/assert";
import { until } from "../../harness/until.ts";
import { webhookCall } from "../../harness/webhook_client.ts";
import { deliveryProblems } from "../../harness/webhook_kill_loop.ts";
import { WebhookProcess } from "../../harness/webhook_process.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";

const RULES = {
  "shop.yaml": `domain: shop
descriptors:
- key: user
  rate_limit: { unit: day, requests_per_unit: 1000000000 }
`,
};
const DECISION = { domain: "shop", descriptors: [{ entries: [{ key: "user", value: "bob" }] }] };
const WORKFLOW = "workflow: order-intake\nsteps:\n  - name: result\n    set: { n: 1 }\n";
/** A decision waits for nothing of the webhook service, which is silent for 15 s; a busy machine is allowed for. */
const SLOWEST_DECISION_MS = 6_000;
const DECISIONS = 20;

/** What ends the worker. */
const ENDS = { "an error that nobody catches": "SIGUSR1", "an end without a word": "SIGUSR2" } as const;
/** How long it may take until calls are refused, and until they are taken again: one that says nothing is given some time. */
const BACK_MS = 120_000;

for (const [what, signal] of Object.entries(ENDS)) {
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
    const seen: Decisions = { refusals: [], count: 0, slowestMs: 0 };
    const decisions = decide(`${weir.base}/json`, seen, stop.signal);
    // Where the test fails before the end, its own error is the one to tell of.
    decisions.catch(() => {});
    weir.weir.signal(signal);
    const shown = until("health to show it", async () => {
      const { status, body } = await fetch(`${weir.base}/healthcheck`);
      await body?.cancel();
      return status === 503;
    }, { deadlineMs: BACK_MS, intervalMs: 5 });
    shown.catch(() => {});
    const refused = await until("a refusal", async () => {
      const answered = await call("while-away");
      return answered.status === 202 ? undefined : answered;
    }, { deadlineMs: BACK_MS, intervalMs: 5 });
    assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
    await shown;

    const back = await until("the service to be back", async () => {
      const answered = await call("back");
      return answered.status === 202 ? answered : undefined;
    }, { deadlineMs: BACK_MS });
    assertEquals((await call("before")).body.executionId, before.body.executionId);
    await until("both executions to be told of", async () => {
      return await weir.isCarriedOut() && await weir.isDelivered() && receiver.byId.size >= 2;
    }, { deadlineMs: BACK_MS });
    await until("decisions", () => seen.count > DECISIONS);
    stop.abort();
    await decisions;
    const { refusals, slowestMs } = seen;
    assert(back.body.executionId !== before.body.executionId);
    assertEquals(refusals, []);
    assert(slowestMs < SLOWEST_DECISION_MS, `a decision took ${Math.round(slowestMs)} ms`);
    const deliveries = await weir.all("/deliveries");
    assertEquals(deliveries.flatMap((delivery) => deliveryProblems(delivery, receiver)), []);
  });
}

interface Decisions {
  readonly refusals: number[];
  count: number;
  slowestMs: number;
}

/** Asks for one decision after the other until it is told to end. */
async function decide(url: string, seen: Decisions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const begin = performance.now();
    const { status } = await webhookCall(url, { body: DECISION });
    seen.slowestMs = Math.max(seen.slowestMs, performance.now() - begin);
    if (status !== 200) seen.refusals.push(status);
    seen.count++;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
