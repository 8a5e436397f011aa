import { assert, assertEquals } from "@std/assert";
import { systemClock } from "../../src/base/clock.ts";
import { Cidrs } from "../../src/webhooks/model/address_ranges.ts";
import { createSender } from "../../src/webhooks/deliveries/sender.ts";
import { until } from "../harness/until.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { DispatcherBed, SECRET } from "../harness/dispatcher_fixture.ts";
import { onlyFull } from "./soak_options.ts";

const ENDPOINTS = 50;
const EVENTS = 10;
const PAUSE_MS = 100;
/**
 * Other work on the machine slows some rounds down: each is compared with the one before it, and the best one counts; more
 * of them are run while that does not show yet.
 */
const ROUNDS = 4;
const MOST_ROUNDS = 15;
const WORST_RATIO = 1.2;

Deno.test({
  ...onlyFull({ name: "50 endpoints that never answer do not keep 50 others waiting" }),
  fn: compareRounds,
});

async function compareRounds(): Promise<void> {
  const without: number[] = [];
  const beside: number[] = [];
  await meanWaitMs({ isBesideDead: false });
  let ratio = Infinity;
  for (let round = 0; round < ROUNDS || (round < MOST_ROUNDS && ratio > WORST_RATIO); round++) {
    without.push(await meanWaitMs({ isBesideDead: false }));
    beside.push(await meanWaitMs({ isBesideDead: true }));
    ratio = Math.min(...beside.map((ms, index) => ms / (without[index] ?? 0)));
  }
  const shown = [without, beside].map((times) => times.map((ms) => ms.toFixed(1)).join(", ")).join(" and ");
  assert(ratio <= WORST_RATIO, `the first attempts came ${ratio.toFixed(2)} times as late: ${shown} ms`);
}

/** Mean time from the commit of an event to its arrival at the endpoints that answer, by real clock and sockets. */
async function meanWaitMs({ isBesideDead }: { readonly isBesideDead: boolean }): Promise<number> {
  await using receiver = await WebhookReceiver.start();
  receiver.react = ({ path }) => path.startsWith("/dead") ? "hang" : 200;
  const sender = createSender({
    ...{
      allow: new Cidrs(["127.0.0.0/8"]),
      connectTimeoutMs: 5_000,
      userAgent: "Weir/test",
      clock: systemClock,
    },
  });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => sender.close());
  await using bed = await DispatcherBed.open();
  for (let n = 0; n < ENDPOINTS; n++) {
    for (const kind of ["live", "dead"]) {
      const path = `/${kind}/${n}`;
      receiver.secrets.set(path, SECRET);
      await bed.endpoint({ url: `${receiver.url}${path}`, events: [`${kind}.*`] });
    }
  }
  const dispatcher = bed.start({ clock: systemClock, sender });
  if (isBesideDead) {
    // More than can be under way, so that each of them has a backlog.
    for (let n = 0; n < 10; n++) await bed.event("dead.event");
    dispatcher.wake();
    await until("the dead ones to hold what they may", () => receiver.receptions.length === 4 * ENDPOINTS);
  }
  const acceptedAt = new Map<string, number>();
  for (let n = 0; n < EVENTS; n++) {
    const id = await bed.event("live.event");
    acceptedAt.set(id, performance.now());
    dispatcher.wake();
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  const live = () => receiver.receptions.filter(({ path }) => path.startsWith("/live"));
  await until("every live one to arrive", () => live().length >= ENDPOINTS * EVENTS);
  assertEquals([live().length, receiver.problems], [ENDPOINTS * EVENTS, []]);
  const waits = live().map(({ body, at }) => at - (acceptedAt.get(JSON.parse(body).data.id) ?? 0));
  return waits.reduce((sum, ms) => sum + ms, 0) / waits.length;
}
