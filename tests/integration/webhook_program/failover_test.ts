import { assert, assertEquals } from "#assert";
import { needing } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { SHOP_RULES } from "../../harness/webhook_calls.ts";
import { post, webhookCall } from "../../harness/webhook_client.ts";
import { deliveriesProblems } from "../../harness/delivery_problems.ts";
import { standbyPair } from "../../harness/webhook_outage.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { WebhookServed } from "../../harness/webhook_served.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();
const installed = needing("postgres");

const CALLS = 40;
const WORKFLOW = "workflow: w\nsteps:\n  - name: only\n    set: { n: 1 }\n";
installed.test("a database dies and its standby is promoted: nothing taken is lost or started twice", async () => {
  await using receiver = await WebhookReceiver.start();
  await using pair = await standbyPair();
  await using stack = new AsyncDisposableStack();
  const env = {
    WEBHOOK_STORE: pair.address,
    WEBHOOK_ENCRYPTION_KEY: new Uint8Array(32).fill(9).toBase64(),
  };
  const open = async () =>
    stack.use(await WebhookServed.open({ env: { ...env }, workflows: { "w.yaml": WORKFLOW } }));
  const members = [await open(), await open()] as const;
  const [first, second] = members;
  await Promise.all(members.map((member) => member.start({ rules: SHOP_RULES })));
  await first.endpoint(receiver, "/hook", { events: ["lane.*"] });
  const { key: token } = await first.made("/triggers", { name: "t", workflow: "w" });
  const url = (n: number) => `${(n % 2 === 0 ? first : second).base}/api/v1/workflows/triggers/t`;
  const call = (n: number) => post((tries) => url(n + tries), {}, { token, key: "one-key" });
  const parallel = () => Promise.all(Array.from({ length: CALLS }, (_, n) => call(n)));

  await first.event({ n: 0 }, "event-0", "lane.n");
  const before = parallel();
  // Where the test fails before the end, its own error is the one to tell of.
  before.catch(() => {});
  await until("one to have started it", async () => (await first.all("/executions")).length === 1);
  await pair.primary.kill();
  const meanwhile = parallel();
  meanwhile.catch(() => {});
  for (const member of members) {
    assertEquals(await member.decide(), 200);
    const url = `${member.base}/api/v1/workflows/triggers/t`;
    const refused = await webhookCall(url, { token, key: "other", body: {} });
    assertEquals([refused.status, Number(refused.headers.get("retry-after")) > 0], [503, true]);
  }
  await pair.standby.promote();

  const answers = [...await before, ...await meanwhile];
  assert(answers.some(({ tries }) => tries > 1), "some were not answered at first");
  const executions = new Set(answers.map(({ status, body }) => `${status} ${body.executionId}`));
  await second.event({ n: 1 }, "event-1", "lane.n");
  await until("all to be done", async () => await first.isCarriedOut() && await first.isDelivered());
  assertEquals(executions, new Set((await first.all("/executions")).map(({ id }) => `202 ${id}`)));
  assertEquals(executions.size, 1);
  const deliveries = await second.all("/deliveries");
  assertEquals(deliveriesProblems(deliveries, { receiver, events: 2 }), []);
  assertEquals(receiver.problems, []);
  await Promise.all(members.map((member) => member.stop()));
});
