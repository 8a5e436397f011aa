import { assert, assertEquals } from "#assert";
import { until } from "../../harness/until.ts";
import { deliveryProblems } from "../../harness/delivery_problems.ts";
import { post as postAgain, webhookCall } from "../../harness/webhook_client.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { WebhookProcess } from "../../harness/webhook_process.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";

const EVENTS = 120;
const TRIGGERS = 200;
/** The lock of the store is looked for four times a second; by leases it would be half a minute. */
const TAKEN_OVER_MS = 25_000;
const WORKFLOW = "workflow: w\nsteps:\n  - name: only\n    set: { n: 1 }\n";
const WORKING = "Delivering and running workflows";

Deno.test("of two processes on one store both accept and one delivers; the other takes over immediately", async () => {
  await using receiver = await WebhookReceiver.start();
  receiver.react = () => new Promise((resolve) => setTimeout(() => resolve(200), 20));
  await using first = await WebhookProcess.open({ workflows: { "w.yaml": WORKFLOW } });
  await using second = await WebhookProcess.open({ folder: first.folder });
  await first.start();
  const isWorking = ({ lines }: WebhookProcess) => lines.some((line) => line.includes(WORKING));
  await until("the first to work", () => isWorking(first));
  await second.start();
  await first.endpoint(receiver, "/hook", { events: ["agent.*"], concurrency: 8 });
  const { key: token } = await first.made("/triggers", { name: "t", workflow: "w" });
  const trigger = ({ base }: WebhookProcess) =>
    postAgain(`${base}/api/v1/workflows/triggers/t`, {}, { token, key: "one-key" });
  const triggered = await Promise.all(
    Array.from({ length: TRIGGERS }, (_, n) => trigger(n % 2 === 0 ? first : second)),
  );
  const executions = new Set(triggered.map(({ status, body }) => `${status} ${body.executionId}`));
  assertEquals(executions.size, 1);

  // Half of the events go to each; what the one that is killed leaves unanswered is asked of the other.
  const statuses: number[] = [];
  let isGone = false;
  const post = async (n: number) => {
    const url = () => `${(n % 2 === 0 && !isGone ? first : second).base}/api/v1/events`;
    const answered = await until("an answer", async () => {
      const body = { event: "agent.reply.completed", data: { n } };
      const answer = await webhookCall(url(), { token: ADMIN_TOKEN, key: `event-${n}`, body });
      // Where two write, one may have to come again.
      return answer.status === 503 ? undefined : answer;
    });
    statuses.push(answered.status);
  };
  const numbers = Array.from({ length: EVENTS }, (_, n) => n);
  const posting = (async () => {
    while (numbers.length > 0) await Promise.all(numbers.splice(0, 8).map(post));
  })();
  // Where the test fails before the end, its own error is the one to tell of.
  posting.catch(() => {});
  await until("a part of them to arrive", () => receiver.receptions.length > EVENTS / 4);
  assertEquals([isWorking(first), isWorking(second)], [true, false]);

  isGone = true;
  first.weir.signal("SIGKILL");
  const killedAt = performance.now();
  await first.ended();
  await until("the second to take over", () => isWorking(second), { intervalMs: 5 });
  const tookOverMs = performance.now() - killedAt;
  assert(tookOverMs < TAKEN_OVER_MS, `it took over after ${Math.round(tookOverMs)} ms`);

  const again = await trigger(second);
  assertEquals(executions, new Set([`202 ${again.body.executionId}`]));
  assertEquals(again.headers.get("idempotency-replayed"), "true");
  await posting;
  assertEquals(new Set(statuses), new Set([202]));
  await until("everything to be done", async () => await second.isDelivered() && await second.isCarriedOut());
  assertEquals((await second.all("/executions")).length, 1);
  const deliveries = await second.all("/deliveries");
  assertEquals(deliveries.length, EVENTS);
  assertEquals(deliveries.flatMap((delivery) => deliveryProblems(delivery, receiver)), []);
  assertEquals(receiver.problems, []);
  const broken = deliveries.filter(({ attempts }) => attempts.some(({ result }) => result === "interrupted"));
  assert(broken.length <= 8, `no more broke off than were in flight, not ${broken.length}`);
  const known = new Set(broken.map(({ id }) => id));
  assertEquals(receiver.repeated.filter(([one]) => !known.has(one?.id ?? "")), []);
});
