import { assert, assertEquals } from "#assert";
import { postgres } from "../../harness/postgres_fixture.ts";
import { until } from "../../harness/until.ts";
import type { KillPoint } from "../../harness/webhook_faults.ts";
import { WebhookFleet } from "../../harness/webhook_fleet.ts";
import { deliveriesProblems } from "../../harness/delivery_problems.ts";
import { WebhookProcess } from "../../harness/webhook_process.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";

const WORKFLOW = (url: string) =>
  `workflow: w\nsteps:\n- { name: only, request: { method: POST, url: "${url}/step" } }\n`;
/** In milliseconds since the epoch, far from now. */
const NEVER = 2 ** 52;
const kill = (at: KillPoint) => ({ faults: { kill: { at, nth: 1 } } });

Deno.test("kill -9 after a delivery and a step were sent: the next process repeats them, and nothing else", async () => {
  await using receiver = await WebhookReceiver.start();
  await using weir = await WebhookProcess.open({ workflows: { "w.yaml": WORKFLOW(receiver.url) } });
  const started = async (at: KillPoint) => {
    await weir.start(kill(at));
    await until("the service", async () => (await weir.api("GET", "/triggers?limit=1")).status === 200);
  };
  await started("after send");
  await weir.endpoint(receiver, "/hook", { events: ["agent.*"] });
  const { key } = await weir.made("/triggers", { name: "t", workflow: "w" });
  weir.event({ n: 0 }, "event-0").catch(() => {});
  assertEquals(await weir.ended(), "SIGKILL");
  await started("execution after_step");
  await until("the delivery", () => weir.isDelivered());
  weir.trigger("t", key, {}, "one-key").catch(() => {});
  assertEquals(await weir.ended(), "SIGKILL");
  await weir.start();
  await until("the execution", () => weir.isCarriedOut());

  assertEquals((await weir.all("/executions")).map(({ status }) => status), ["succeeded"]);
  const deliveries = await weir.all("/deliveries");
  assertEquals(deliveries.map(({ attempts }) => attempts.map(({ result }) => result)), [
    ["interrupted", "acknowledged"],
  ]);
  assertEquals(deliveriesProblems(deliveries, { receiver, events: 1 }), []);
  const counts = [...receiver.byId.values()].map((same) => [same[0]?.path, same.length]);
  assertEquals([counts, receiver.problems], [[["/hook", 2], ["/step", 2]], []]);
});

postgres.test("one process is killed and another one stopped: a third does their work, once", async (database) => {
  await using receiver = await WebhookReceiver.start();
  receiver.maxAgeMs = 600_000;
  await using fleet = await WebhookFleet.open({ address: database.url() });
  const [killed, stopped, third] = [fleet.member(0), fleet.member(1), fleet.member(2)];
  await fleet.startMember(0, kill("after send"));
  await until("the service", async () => (await killed.api("GET", "/triggers?limit=1")).status === 200);
  for (const n of [0, 1]) await killed.endpoint(receiver, `/n${n}`, { events: [`lane.n${n}`] });
  killed.event({ n: 0 }, "event-0", "lane.n0").catch(() => {});
  assertEquals(await killed.ended(), "SIGKILL");

  // The next process stops at the delivery of its event, however long it takes to start.
  await database.psql(`UPDATE delivery SET lease_until = ${NEVER} WHERE lease_until IS NOT NULL`);
  await fleet.startMember(1, { faults: { stop: { at: "before write_back", nth: 1 } } });
  const answer = stopped.event({ n: 1 }, "event-1", "lane.n1");
  answer.catch(() => {});
  await until("the process to stop", () => stopped.isStopped());
  // The time that their leases have left is skipped.
  await database.psql("UPDATE delivery SET lease_until = 1 WHERE lease_until IS NOT NULL");
  await fleet.startMember(2);
  await until("the third to end all of it", () => third.isDelivered());
  const shown = async () => {
    const deliveries = await third.all("/deliveries");
    return await Promise.all(
      deliveries.map(async ({ id }) => (await third.api("GET", `/deliveries/${id}`)).body),
    );
  };
  const before = await shown();
  const results = before.map(({ state, attempts }) => [state, ...attempts.map(({ result }) => result)]);
  assertEquals(results, Array(2).fill(["acknowledged", "interrupted", "acknowledged"]));

  stopped.weir.signal("SIGCONT");
  assertEquals((await answer).status, 202);
  await until("it to give up", async () => await stopped.metric("lost_claims") >= 1);
  assertEquals(await shown(), before);
  assertEquals(deliveriesProblems(before, { receiver, events: 2 }), []);
  assertEquals([...receiver.byId.values()].map(({ length }) => length), [2, 2]);
  assert(receiver.problems.length === 0, receiver.problems.join());
});
