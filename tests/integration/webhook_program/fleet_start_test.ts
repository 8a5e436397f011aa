import { assertEquals } from "@std/assert";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { post } from "../../harness/webhook_client.ts";
import { WebhookFleet } from "../../harness/webhook_fleet.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_process.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";

Deno.test({
  ...needs(
    ["postgres"],
    "three machines that start at once on an empty database make one schema, and all serve",
  ),
  async fn() {
    await using receiver = await WebhookReceiver.start();
    await using fleet = await WebhookFleet.open();
    await fleet.start({ isAwaited: false });
    await until("the store", async () => (await fleet.first.api("GET", "/endpoints")).status === 200);
    await fleet.endpoint(receiver, "/hook");
    assertEquals(await fleet.psql("SELECT count(*) FROM schema_version"), "1");

    const answers = await Promise.all(fleet.members.map(async ({ base }, n) => {
      const event = { event: "agent.reply.completed", data: { n } };
      // It waits for the store for a while, and health is good from then on.
      const { status } = await post(`${base}/api/v1/events`, event, { token: ADMIN_TOKEN });
      const health = await fetch(`${base}/healthcheck`);
      return [health.status, (await health.text()).trim(), status];
    }));
    assertEquals(answers, fleet.members.map(() => [200, "OK", 202]));
    await until("every event to be delivered", () => fleet.isDelivered());
    // Each of them sees what the others took.
    const lists = await Promise.all(fleet.members.map((member) => member.all("/deliveries")));
    const ids = lists.map((list) => list.map(({ id, state }) => [id, state]));
    assertEquals(ids.map(({ length }) => length), [3, 3, 3]);
    assertEquals(ids, [ids[0], ids[0], ids[0]]);
    assertEquals([receiver.receptions.length, receiver.problems], [3, []]);
    assertEquals(fleet.lines.filter((line) => line.includes(" level=error ")), []);
  },
});
