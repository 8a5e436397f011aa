import { assert, assertEquals } from "#assert";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { endpointsByKind, WebhookFleet } from "../harness/webhook_fleet.ts";
import { deliveriesProblems } from "../harness/delivery_problems.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { onlyFull } from "./soak_options.ts";

/** Somebody has to look what is claimed by whom. */
const TAKEN_OVER_MS = 180_000;
/** The number of times that one of several is stopped at any moment, and the time of each stop. */
const FREEZES = { count: 2, ms: 11_000 };
/** A transaction that rests is ended by the server after three seconds; a busy machine is allowed for. */
const LONGEST_GAP_MS = 9_000;

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
