import { assert, assertEquals } from "#assert";
import { DatabaseSync } from "node:sqlite";
import { until } from "../../harness/until.ts";
import { type WebhookAnswered, webhookCall } from "../../harness/webhook_client.ts";
import { deliveryProblems } from "../../harness/delivery_problems.ts";
import { ADMIN_TOKEN, SHOP_RULES } from "../../harness/webhook_calls.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { WebhookServed } from "../../harness/webhook_served.ts";

const WORKFLOW = "workflow: order-intake\nsteps:\n  - name: result\n    set: { done: true }\n";
const WORKS_AGAIN = 'level=warning msg="Webhook store works again"';
/** Pages beyond those that the store has already. */
const ROOM = 40;

Deno.test("a full disk: triggers answer 503, decisions go on, and nothing that was accepted is lost", async () => {
  await using bed = await TroubleBed.open();
  const { weir, receiver } = bed;
  await weir.stop();
  const database = new DatabaseSync(weir.folder.store);
  const pages = Number(database.prepare("PRAGMA page_count").get()?.["page_count"]);
  database.close();
  await weir.start({ rules: SHOP_RULES, faults: { pragmas: [`max_page_count = ${pages + ROOM}`] } });

  const accepted: string[] = [];
  const decisions = weir.decideSteadily();
  let refused: WebhookAnswered | undefined;
  for (let n = 0; n < 500 && refused === undefined; n++) {
    const answered = await bed.call(`full-${n}`, { text: "x".repeat(4_000) });
    if (answered.status === 202) accepted.push(answered.body.executionId);
    else refused = answered;
  }
  assertEquals([refused?.status, refused?.body.code], [503, "store_unavailable"]);
  assert(Number(refused?.headers.get("retry-after")) > 0, "it says when to come back");
  assert(accepted.length > 0, "some fitted");
  const event = await webhookCall(`${weir.base}/api/v1/events`, {
    token: ADMIN_TOKEN,
    body: { event: "a.b", data: { text: "x".repeat(100_000) } },
  });
  assertEquals([event.status, event.body.code], [503, "store_unavailable"]);
  await until("health to show it", async () => (await weir.health()).status === 503);
  await until("the metric to count it", async () => await weir.metric("store_errors") > 0);
  assertEquals(await decisions.end(), []);

  // There is room again.
  await weir.kill();
  await weir.start({ rules: SHOP_RULES });
  assertEquals((await bed.call("later", {})).status, 202);
  await until("everything to be carried out and reported", () => bed.isDone());
  await bed.checkAll(accepted);
  assertEquals(receiver.problems, []);
});

Deno.test("a store that another one keeps locked: triggers answer 503, decisions go on, all goes on after", async () => {
  await using bed = await TroubleBed.open();
  const { weir, receiver } = bed;
  const accepted: string[] = [];
  for (let n = 0; n < 20; n++) accepted.push((await bed.call(`before-${n}`, {})).body.executionId);

  const other = new DatabaseSync(weir.folder.store, { timeout: 5_000 });
  const decisions = weir.decideSteadily();
  other.exec("BEGIN EXCLUSIVE");
  const refused = await Promise.all(["a", "b", "c"].map((key) => bed.call(key, {})));
  await until("health to show it", async () => (await weir.health()).status === 503);
  other.exec("ROLLBACK");
  other.close();
  for (const { status, body, headers } of refused) {
    assertEquals(status, 503);
    // The second where others stood before it, each of which waited for the lock.
    assert(["store_unavailable", "webhooks_unavailable"].includes(body.code), body.code);
    assert(Number(headers.get("retry-after")) > 0, "it says when to come back");
  }
  assertEquals(await decisions.end(), []);

  for (const key of ["a", "b", "c"]) {
    accepted.push((await bed.call(key, {}, { isRepeated: true })).body.executionId);
  }
  // What could not even be given back while the store was locked is due at the end of its lease.
  weir.hurryWork(60_000);
  await until("everything to be carried out and reported", () => bed.isDone());
  await bed.checkAll(accepted);
  assertEquals((await weir.all("/executions")).length, accepted.length);
  await until("health to be well again", async () => (await weir.health()).status === 200);
  await until("the log to report it", () => weir.lines.some((line) => line.includes(WORKS_AGAIN)));
  assertEquals(receiver.problems, []);
});

/** A Weir that decides, starts workflows, and tells a receiver of their ends. */
class TroubleBed implements AsyncDisposable {
  readonly weir: WebhookServed;
  readonly receiver: WebhookReceiver;
  readonly #token: string;

  private constructor(weir: WebhookServed, receiver: WebhookReceiver, token: string) {
    this.weir = weir;
    this.receiver = receiver;
    this.#token = token;
  }

  static async open(): Promise<TroubleBed> {
    const receiver = await WebhookReceiver.start();
    const weir = await WebhookServed.open({ workflows: { "order-intake.yaml": WORKFLOW } });
    await weir.start({ rules: SHOP_RULES, faults: { isHurried: true } });
    await weir.endpoint(receiver, "/hook");
    const { key } = await weir.made("/triggers", { name: "orders", workflow: "order-intake" });
    return new TroubleBed(weir, receiver, key);
  }

  async call(key: string, body: unknown, { isRepeated = false } = {}): Promise<WebhookAnswered> {
    if (isRepeated) return await this.weir.trigger("orders", this.#token, body, key);
    const url = `${this.weir.base}/api/v1/workflows/triggers/orders`;
    return await webhookCall(url, { token: this.#token, key, body });
  }

  async isDone(): Promise<boolean> {
    return await this.weir.isCarriedOut() && await this.weir.isDelivered();
  }

  /** Every execution that was accepted succeeded, and was reported once. */
  async checkAll(accepted: readonly string[]): Promise<void> {
    const executions = new Map((await this.weir.all("/executions")).map(({ id, status }) => [id, status]));
    assertEquals(accepted.filter((id) => executions.get(id) !== "succeeded"), []);
    const deliveries = await this.weir.all("/deliveries");
    assertEquals(deliveries.length, executions.size);
    assertEquals(deliveries.flatMap((delivery) => deliveryProblems(delivery, this.receiver)), []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.weir[Symbol.asyncDispose]();
    await this.receiver[Symbol.asyncDispose]();
  }
}
