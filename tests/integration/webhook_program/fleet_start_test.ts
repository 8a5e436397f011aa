import { assertEquals } from "@std/assert";
import { sharedPostgres } from "../../harness/postgres_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { post } from "../../harness/webhook_client.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { WebhookServed } from "../../harness/webhook_served.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const server = sharedPostgres();

Deno.test({
  ...needs(["postgres"], "three that start at once on an empty database make one schema, and all serve"),
  async fn() {
    const database = await server().createDatabase();
    const env = {
      WEBHOOK_STORE: server().url(database),
      WEBHOOK_ENCRYPTION_KEY: new Uint8Array(32).fill(9).toBase64(),
    };
    await using receiver = await WebhookReceiver.start();
    await using stack = new AsyncDisposableStack();
    const open = async () => stack.use(await WebhookServed.open({ env }));
    const first = await open();
    const members = [first, await open(), await open()];
    await Promise.all(members.map((member) => member.start({ isAwaited: false })));
    await until("the store", async () => (await first.api("GET", "/endpoints")).status === 200);
    await first.endpoint(receiver, "/hook");
    assertEquals(await server().psql("SELECT count(*) FROM schema_version", database), "1");

    const answers = await Promise.all(members.map(async (member, n) => {
      const event = { event: "agent.reply.completed", data: { n } };
      // It waits for the store for a while, and health is good from then on.
      const { status } = await post(`${member.base}/api/v1/events`, event, { token: ADMIN_TOKEN });
      const health = await member.health();
      return [health.status, health.text.trim(), status];
    }));
    assertEquals(answers, members.map(() => [200, "OK", 202]));
    await until("every event to be delivered", () => first.isDelivered());
    // Each of them sees what the others took.
    const lists = await Promise.all(members.map((member) => member.all("/deliveries")));
    const ids = lists.map((list) => list.map(({ id, state }) => [id, state]));
    assertEquals(ids.map(({ length }) => length), [3, 3, 3]);
    assertEquals(ids, [ids[0], ids[0], ids[0]]);
    assertEquals([receiver.receptions.length, receiver.problems], [3, []]);
    const lines = members.flatMap((member) => member.lines);
    assertEquals(lines.filter((line) => line.includes(" level=error ")), []);
    // Or it would wait at the end for what still uses its database.
    await Promise.all(members.map((member) => member.stop()));
  },
});
