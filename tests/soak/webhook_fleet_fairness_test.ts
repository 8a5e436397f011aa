import { assert, assertEquals } from "#assert";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { WebhookFleet } from "../harness/webhook_fleet.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { onlyFull } from "./soak_options.ts";

const ENDPOINTS = 50;
const CONCURRENCY = 4;
/** More than can be under way, so that each of the dead ones has a backlog. */
const DEAD_EVENTS = 6;
/** Other work on the machine slows some rounds down: each is compared with the previous one, and the best one counts. */
const ROUNDS = [3, 15] as const;
const WORST_RATIO = 1.2;

Deno.test({
  ...onlyFull(
    needs(["postgres"], "50 endpoints that never answer do not keep 50 others of three machines waiting"),
  ),
  async fn() {
    await using receiver = await WebhookReceiver.start();
    let release = () => {};
    let released = Promise.resolve();
    receiver.react = async ({ path }) => {
      if (path.startsWith("/dead")) await released;
      return 200;
    };
    const isDead = ({ path }: { readonly path: string }) => path.startsWith("/dead");
    await using fleet = await WebhookFleet.open({ env: { LOG_LEVEL: "warning", WEBHOOK_TIMEOUT: "10m" } });
    await fleet.start();
    for (let n = 0; n < ENDPOINTS; n++) {
      for (const kind of ["live", "dead"]) {
        await fleet.endpoint(receiver, `/${kind}/${n}`, {
          events: [`${kind}.*`],
          concurrency: CONCURRENCY,
        });
      }
    }

    const without: number[] = [];
    const beside: number[] = [];
    await meanWaitMs(fleet, receiver, "warm-up");
    const ratio = () => Math.min(...beside.map((ms, round) => ms / (without[round] ?? 0)));
    const [fewest, most] = ROUNDS;
    for (let round = 0; round < most && (round < fewest || ratio() > WORST_RATIO); round++) {
      without.push(await meanWaitMs(fleet, receiver, `without-${round}`));
      const { promise, resolve } = Promise.withResolvers<void>();
      [released, release] = [promise, resolve];
      const before = receiver.receptions.filter(isDead).length;
      for (let n = 0; n < DEAD_EVENTS; n++) await fleet.event({ n }, `dead-${round}-${n}`, "dead.event");
      const held = CONCURRENCY * ENDPOINTS;
      await until("the dead ones to hold what they may", () => {
        return receiver.receptions.filter(isDead).length - before === held;
      });
      beside.push(await meanWaitMs(fleet, receiver, `with-${round}`));
      assertEquals(receiver.receptions.filter(isDead).length - before, held);
      release();
      await until("the backlog to be gone", () => fleet.isDelivered(), { deadlineMs: 120_000 });
    }
    const shown = [without, beside].map((times) => times.map((ms) => ms.toFixed(1)).join(", ")).join(" and ");
    assert(
      ratio() <= WORST_RATIO,
      `the first attempts came ${ratio().toFixed(2)} times as late: ${shown} ms`,
    );
    assertEquals(receiver.problems, []);
  },
});

/** Mean time from the posts of events, one to each machine, to their arrival at the endpoints that answer. */
async function meanWaitMs(fleet: WebhookFleet, receiver: WebhookReceiver, name: string): Promise<number> {
  const waits: number[] = [];
  for (const [n, member] of fleet.members.entries()) {
    const begun = receiver.receptions.length;
    const postedAt = performance.now();
    await member.event({ n }, `${name}-${n}`, "live.event");
    const arrived = () => receiver.receptions.slice(begun).filter(({ path }) => path.startsWith("/live"));
    await until("every live one to arrive", () => arrived().length >= ENDPOINTS, { intervalMs: 5 });
    assertEquals(arrived().length, ENDPOINTS);
    waits.push(...arrived().map(({ at }) => at - postedAt));
    await until("the results to be written", async () => await fleet.psql(CLAIMED) === "0");
  }
  return waits.reduce((sum, ms) => sum + ms, 0) / waits.length;
}

const CLAIMED = "SELECT count(*) FROM delivery WHERE event = 'live.event' AND state <> 'acknowledged'";
