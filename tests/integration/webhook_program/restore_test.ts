import { assert, assertEquals } from "#assert";
import { join } from "node:path";
import { runCommand } from "../../../src/cli/commands.ts";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import { until } from "../../harness/until.ts";
import { deliveryProblems } from "../../harness/delivery_problems.ts";
import { WebhookServed } from "../../harness/webhook_served.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const EVENTS = 150;
const BEFORE = 60;

Deno.test("a backup that is made while events flow is opened elsewhere, and delivers what was open", async () => {
  await using receiver = await WebhookReceiver.start();
  // Every other delivery is never answered: it is under way, or waits behind such ones, when the copy is made.
  receiver.react = ({ body }) => JSON.parse(body).data.n % 2 === 0 ? "hang" : 200;
  await using old = await WebhookServed.open();
  await using restored = await WebhookServed.open();
  await old.start({ faults: {} });
  await old.endpoint(receiver, "/hook", { concurrency: 8, timeoutMs: 600_000 });
  let taken = 0;
  const posting = (async () => {
    for (let n = 0; n < EVENTS; n++) {
      await old.event({ n }, `event-${n}`);
      taken++;
    }
  })();
  // Where the test fails before the end, its own error is the one to tell of.
  posting.catch(() => {});
  await until("events to flow", () => taken >= BEFORE);
  const sure = taken;

  await Deno.mkdir(join(restored.folder.store, ".."), { recursive: true });
  const said: string[] = [];
  const code = await runCommand(["store", "backup", restored.folder.store], {
    environment: { WEBHOOK_STORE: old.folder.store },
    output: { stdout: (text) => void said.push(text), stderr: () => {} },
  });
  assertEquals([code, said.length, sure < EVENTS], [0, 1, true]);
  assertEquals(((await Deno.stat(restored.folder.store)).mode ?? 0) & 0o777, 0o600);
  await posting;
  await old.kill();

  assertEquals((await checkStore(restored.folder.store)).problems, []);
  // The key is kept apart from the copy, and brought along.
  await Deno.copyFile(`${old.folder.store}.key`, `${restored.folder.store}.key`);
  receiver.react = () => 200;
  const seenBefore = new Set(receiver.byId.keys());
  await restored.start();
  await until("everything to be delivered", () => restored.isDelivered());
  const deliveries = await restored.all("/deliveries");
  assert(deliveries.length >= sure && deliveries.length <= EVENTS, `the copy has ${deliveries.length}`);
  assertEquals(deliveries.flatMap((delivery) => deliveryProblems(delivery, receiver)), []);
  assertEquals(receiver.problems, []);
  const fromThere = deliveries.filter(({ id }) => !seenBefore.has(id));
  assert(fromThere.length > 0, "some were delivered from there alone");
  // A post that is in the copy is known there, too.
  const again = await restored.event({ n: 0 }, "event-0");
  assertEquals([again.status, again.headers.get("idempotency-replayed")], [202, "true"]);
});
