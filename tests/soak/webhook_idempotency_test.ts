import { assert, assertEquals } from "#assert";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { post } from "../harness/webhook_client.ts";
import { WebhookFleet } from "../harness/webhook_fleet.ts";
import { onlyFull } from "./soak_options.ts";

const PARALLEL = 1_000;
const STARTED = "SELECT count(*) FROM execution";
const WORKFLOW = `workflow: order-intake
steps:
  - name: result
    set: { n: "{{ input.n }}" }
`;

/** The processes that are killed while the triggers are called, and started again. */
const KILLED: Readonly<Record<string, (fleet: WebhookFleet) => Promise<void>>> = {
  async "one of them"({ first }) {
    await first.kill();
    await first.start();
  },
  async "their database"({ server }) {
    await server.stop("immediate");
    await server.start();
  },
};

for (const [what, killAndStart] of Object.entries(KILLED)) {
  const name =
    `1,000 parallel triggers with one key on three machines start one execution while ${what} is killed`;
  Deno.test({
    ...onlyFull(needs(["postgres"], name)),
    async fn() {
      await using fleet = await WebhookFleet.open({ workflows: { "order-intake.yaml": WORKFLOW } });
      await fleet.start();
      const { key: token } = await fleet.made("/triggers", { name: "orders", workflow: "order-intake" });
      const call = async (n: number) => {
        const url = (tries: number) => `${fleet.member(n + tries - 1).base}/api/v1/workflows/triggers/orders`;
        return await post(url, { n: 1 }, { token, key: "one-key" });
      };
      const parallel = (from: number) => {
        const calls = Promise.all(Array.from({ length: PARALLEL / 2 }, (_, n) => call(from + n)));
        // Where the test fails before the end, its own error is the one to tell of.
        calls.catch(() => {});
        return calls;
      };
      const before = parallel(0);
      await until("one to have started it", async () => await fleet.psql(STARTED) === "1");
      const started = killAndStart(fleet);
      // By now those before may all be answered; of these none can be, by what was killed.
      const meanwhile = parallel(PARALLEL / 2);
      await started;

      const answers = [...await before, ...await meanwhile];
      assert(answers.some(({ tries }) => tries > 1), "some were not answered at first");
      assertEquals(new Set(answers.map(({ status }) => status)), new Set([202]));
      const ids = [...new Set(answers.map(({ body }) => body.executionId))];
      await until("the execution to end", () => fleet.isCarriedOut());
      const executions = await fleet.all("/executions");
      assertEquals(executions.map(({ id, status }) => [id, status]), ids.map((id) => [id, "succeeded"]));
      assertEquals(ids.length, 1);
      // None is left that was not reported.
      assertEquals(await fleet.psql(STARTED), "1");
      assertEquals((await fleet.all("/events?event=workflow.execution.completed")).length, 1);
    },
  });
}
