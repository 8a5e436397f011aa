import { assertEquals } from "@std/assert";
import { until } from "../../harness/until.ts";
import { type WebhookAnswered, webhookCall } from "../../harness/webhook_client.ts";
import { WebhookProcess } from "../../harness/webhook_process.ts";
import { WebhookBed } from "../../harness/webhook_service_fixture.ts";

const PARALLEL = 1_000;
const DAY_MS = 86_400_000;
const WORKFLOW = `workflow: order-intake
steps:
  - name: result
    set: { n: "{{ input.n }}" }
`;

Deno.test("1,000 parallel triggers with one key start one execution, in two processes and after a restart", async () => {
  const workflows = { "order-intake.yaml": WORKFLOW };
  await using first = await WebhookProcess.open({ workflows });
  await using second = await WebhookProcess.open({ workflows, folder: first.folder });
  await first.start();
  await second.start();
  const { key: token } = await first.made("/triggers", { name: "orders", workflow: "order-intake" });
  const call = (base: string) =>
    webhookCall(`${base}/api/v1/workflows/triggers/orders`, { token, key: "one-key", body: { n: 1 } });

  const bases = [first.base, second.base];
  const answers = await Promise.all(
    Array.from({ length: PARALLEL }, (_, n) => repeated(() => call(bases[n % 2] ?? ""))),
  );
  const ids = new Set(answers.map(({ body }) => body.executionId));
  assertEquals([ids.size, new Set(answers.map(({ status }) => status))], [1, new Set([202])]);
  const fresh = answers.filter(({ headers }) => headers.get("idempotency-replayed") === null);
  assertEquals(fresh.length >= 1, true);

  await first.kill();
  await second.kill();
  await first.start();
  const later = await call(first.base);
  assertEquals([later.status, later.headers.get("idempotency-replayed")], [202, "true"]);
  assertEquals(new Set([...ids, later.body.executionId]).size, 1);
  await until("the execution to end", () => first.isCarriedOut());
  const executions = await first.all("/executions");
  assertEquals(executions.map(({ id, status }) => [id, status]), [[later.body.executionId, "succeeded"]]);
});

Deno.test("a key stands for its answer until 23:59:59.999, and for a new one from 24:00:00 on", async () => {
  await using bed = await WebhookBed.open();
  const { key } = await bed.trigger();
  const call = () => bed.start(key, { n: 1 }, { idempotencyKey: "one-key" });
  const started = async () => (await bed.call("GET", "/executions")).body.items.length;

  const first = await call();
  bed.clock.advance(DAY_MS - 1);
  const replayed = await Promise.all(Array.from({ length: 100 }, call));
  assertEquals(new Set(replayed.map(({ body }) => body.executionId)), new Set([first.body.executionId]));
  assertEquals(await started(), 1);

  bed.clock.advance(1);
  const next = await Promise.all(Array.from({ length: 100 }, call));
  const ids = new Set(next.map(({ body }) => body.executionId));
  assertEquals([ids.size, ids.has(first.body.executionId), await started()], [1, false, 2]);

  bed.clock.advance(DAY_MS - 1);
  assertEquals([...ids], [(await call()).body.executionId]);
});

/** Until it is not refused for the moment. */
async function repeated(call: () => Promise<WebhookAnswered>): Promise<WebhookAnswered> {
  return await until("an answer", async () => {
    const answered = await call();
    return answered.status === 409 || answered.status === 503 ? undefined : answered;
  }, { deadlineMs: 180_000, intervalMs: 100 });
}
