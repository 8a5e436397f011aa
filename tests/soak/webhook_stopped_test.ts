import { assert, assertEquals } from "@std/assert";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import type { AnswerBody, WebhookAnswered } from "../harness/webhook_client.ts";
import type { KillPoint } from "../harness/webhook_faults.ts";
import { endpointsByKind, WebhookFleet } from "../harness/webhook_fleet.ts";
import { deliveriesProblems } from "../harness/webhook_kill_loop.ts";
import type { WebhookProcess } from "../harness/webhook_process.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { onlyFull } from "./soak_options.ts";

const WORKFLOW = (url: string) =>
  `workflow: order-intake
steps:
  - name: only
    request: { method: POST, url: "${url}/step", body: { by: "{{ env.GENERATION }}" } }
`;
/** Where each of the first processes stops; the last one goes on. */
const STOPS: readonly KillPoint[] = [
  "execution after_step",
  "before send",
  "before write_back",
];
/** Somebody has to look what is claimed by whom. */
const TAKEN_OVER_MS = 180_000;
/** How often one of several is stopped, wherever it is at the moment, and for how long. */
const FREEZES = { count: 2, ms: 11_000 };
/** A transaction that rests is ended by the server after three seconds; a busy machine is allowed for. */
const LONGEST_GAP_MS = 9_000;

Deno.test({
  ...onlyFull(needs(["postgres"], "a process that is stopped past its lease and goes on changes nothing")),
  async fn() {
    await using receiver = await WebhookReceiver.start();
    // What was signed before the stop may leave after it.
    receiver.maxAgeMs = 2 * TAKEN_OVER_MS;
    receiver.answer = ({ path, body }) => path === "/step" ? body : "{}";
    await using fleet = await WebhookFleet.open({
      ...{ size: STOPS.length + 1, env: { WEBHOOK_TIMEOUT: "3s" } },
      workflows: { "order-intake.yaml": WORKFLOW(receiver.url) },
    });
    const last = fleet.member(STOPS.length);
    await last.start();
    const { key } = await last.made("/triggers", { name: "orders", workflow: "order-intake" });
    for (const n of STOPS.keys()) await last.endpoint(receiver, `/n${n}`, { events: [`lane.n${n}`] });
    await last.stop();
    // What the process that is stopped sees would be a failure; whoever comes after it sees a success.
    const failing = STOPS.indexOf("before write_back");
    receiver.react = ({ path }, count) => path === `/n${failing}` && count === 1 ? 500 : 200;

    // All are there before the first has work, and held, so that the leases of the first last while the others get theirs.
    await Promise.all(fleet.members.map(async (member, n) => {
      const at = STOPS[n];
      await fleet.startMember(n, at === undefined ? {} : { faults: { stop: { at, nth: 1 } } });
      await stopped(member);
    }));
    const answers: Promise<WebhookAnswered>[] = [];
    for (const [n, at] of STOPS.entries()) {
      const member = fleet.member(n);
      member.weir.signal("SIGCONT");
      // It may stop before it has answered, and answers then when it goes on.
      const answer = at.startsWith("execution")
        ? member.trigger("orders", key, {}, "one-key")
        : member.event({ n }, `event-${n}`, `lane.n${n}`);
      answer.catch(() => {});
      answers.push(answer);
      await until(`the process to stop at "${at}"`, () => member.isStopped());
    }
    // Nobody else has claimed anything: the time that their leases have left is let pass.
    for (const table of ["delivery", "execution"]) {
      await fleet.psql(`UPDATE ${table} SET lease_until = 1 WHERE lease_until IS NOT NULL`);
    }
    last.weir.signal("SIGCONT");
    await until("the other to end all of it", async () => {
      return await last.isCarriedOut() && await last.isDelivered();
    }, { deadlineMs: TAKEN_OVER_MS });
    const [deliveries, executions] = await records(last);
    assertEquals(deliveries.map(resultsOf), [
      ["acknowledged", "interrupted", "acknowledged"],
      ["acknowledged", "interrupted", "acknowledged"],
    ]);
    assertEquals(executions.map(({ status }) => status), ["succeeded"]);
    assert(JSON.stringify(executions).includes(`"by":"${STOPS.length}.`), "the step is the other one's");

    for (const n of STOPS.keys()) fleet.member(n).weir.signal("SIGCONT");
    assertEquals((await Promise.all(answers)).map(({ status }) => status), STOPS.map(() => 202));
    await givenUp(fleet);
    assertEquals(await records(last), [deliveries, executions]);
    const counts = STOPS.map((_, n) => receiver.receptions.filter(({ path }) => path === `/n${n}`).length);
    // It may send what it was about to send, under the same UUID.
    assert([1, 2].includes(counts[STOPS.indexOf("before send")] ?? 0), counts.join(", "));
    assertEquals(counts.toSpliced(STOPS.indexOf("before send"), 1), [0, 2]);
    assertEquals(receiver.receptions.filter(({ path }) => path === "/step").length, 2);
    assertEquals(receiver.problems, []);
  },
});

Deno.test({
  ...onlyFull(needs(
    ["postgres"],
    "a process that is stopped in the middle of its work does not hold the others up for long",
  )),
  async fn() {
    await using receiver = await WebhookReceiver.start();
    receiver.maxAgeMs = TAKEN_OVER_MS;
    await using fleet = await WebhookFleet.open({ env: { LOG_LEVEL: "warning", WEBHOOK_TIMEOUT: "2s" } });
    await fleet.start();
    const kinds = await endpointsByKind(fleet, receiver, 4, { concurrency: 16 });
    let events = 0;
    let isOver = false;
    const lanes = [0, 1, 2, 3].map(async (lane) => {
      while (!isOver) {
        const n = events++;
        // The one that is stopped gets work as well, and what it leaves unanswered is posted anew when it goes on.
        const member = fleet.member(lane === 0 ? 0 : 1 + n % 2);
        assertEquals((await member.event({ n }, `event-${n}`, kinds[n % kinds.length])).status, 202);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    });
    const posting = Promise.all(lanes);
    // Where the test fails before the end, its own error is the one to tell of.
    posting.catch(() => {});

    const gaps: number[] = [];
    for (let freeze = 0; freeze < FREEZES.count; freeze++) {
      const before = receiver.receptions.length;
      await until("work to be done", () => receiver.receptions.length > before + 100, {
        deadlineMs: 180_000,
      });
      fleet.first.weir.signal("SIGSTOP");
      const [begin, first] = [performance.now(), receiver.receptions.length];
      await new Promise((resolve) => setTimeout(resolve, FREEZES.ms));
      const times = [begin, ...receiver.receptions.slice(first).map(({ at }) => at), performance.now()];
      gaps.push(Math.max(...times.slice(1).map((at, n) => at - (times[n] ?? 0))));
      fleet.first.weir.signal("SIGCONT");
    }
    isOver = true;
    await posting;
    await until("everything to be delivered", () => fleet.isDelivered(), { deadlineMs: TAKEN_OVER_MS });
    assertEquals(deliveriesProblems(await fleet.all("/deliveries"), { receiver, events }), []);
    assertEquals(receiver.problems, []);
    assert(Math.max(...gaps) < LONGEST_GAP_MS, `nothing came for ${gaps.map(Math.round).join(", ")} ms`);
  },
});

/** Each that was stopped has noticed that its work is another's. */
async function givenUp(fleet: WebhookFleet): Promise<void> {
  for (const [n, at] of STOPS.entries()) {
    const member = fleet.member(n);
    await until(
      `the one that stopped at "${at}" to go on`,
      async () => (await member.health()).status === 200,
    );
    await until(`it to give up at "${at}"`, async () => {
      if (!at.startsWith("execution")) return await member.figure("lost_claims") >= 1;
      return await member.figure("executions_in_flight") === 0;
    });
  }
}

/** Holds a process, which has no work. */
async function stopped(member: WebhookProcess): Promise<void> {
  member.weir.signal("SIGSTOP");
  await until("the process to be held", () => member.isStopped());
}

/** All deliveries in the order of their events, and all executions, with everything that is shown of them. */
async function records(of: WebhookFleet["first"]): Promise<readonly [AnswerBody[], AnswerBody[]]> {
  const whole = async (list: string) => {
    const ids = (await of.all(`/${list}`)).map(({ id }) => id);
    return await Promise.all(ids.map(async (id) => (await of.api("GET", `/${list}/${id}`)).body));
  };
  const deliveries = await whole("deliveries");
  return [
    deliveries.toSorted((a, b) => a.event.localeCompare(b.event)),
    await whole("executions"),
  ];
}

function resultsOf({ state, attempts }: AnswerBody): unknown[] {
  return [state, ...attempts.map(({ result }) => result)];
}
