import { assertEquals } from "#assert";
import { deliveriesProblems } from "../../harness/delivery_problems.ts";
import { needing } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { WebhookFleet } from "../../harness/webhook_fleet.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";

const installed = needing("postgres");

const RATE = { unit: "second", requestsPerUnit: 10 } as const;
const EVENTS = 50;
/** Of the clocks of the instances, which follow that of the database. */
const CLOCKS_MS = 100;

installed.test("the rate of an endpoint holds over instances that are killed and started again", async () => {
  await using receiver = await WebhookReceiver.start();
  // A shorter timeout, so that the claims of a killed instance end soon.
  await using fleet = await WebhookFleet.open({ size: 3, env: { WEBHOOK_TIMEOUT: "5s" } });
  await fleet.start();
  const fields = { rateLimit: RATE, events: ["lane.*"], enabled: false };
  const { id } = await fleet.endpoint(receiver, "/paced", fields);
  await Promise.all(Array.from({ length: EVENTS }, (_, n) => fleet.event({ n }, `event-${n}`, "lane.n")));
  await fleet.api("PATCH", `/endpoints/${id}`, { enabled: true });
  await until("deliveries to wait for the rate", async () => {
    const open = await fleet.all(`/deliveries?endpointId=${id}&state=attempting`);
    return open.some(({ why }) =>
      String(why).includes("waits for the rate limit of its endpoint, 10 per second")
    );
  });
  // The first one is asked for the lists.
  for (const n of [1, 2]) {
    await until("more to be delivered", () => receiver.receptions.length >= 12 * n);
    await fleet.member(n).kill();
    await fleet.startMember(n);
  }
  await until("all of them to be delivered", () => fleet.isDelivered());
  const deliveries = await fleet.all("/deliveries");
  assertEquals(deliveriesProblems(deliveries, { receiver, events: EVENTS }), []);
  assertEquals(receiver.problems, []);
  const attempts = deliveries.flatMap(({ attempts }) =>
    attempts as unknown as readonly { readonly startedAt: string }[]
  );
  assertEquals(beyondRate(attempts.map(({ startedAt }) => Date.parse(startedAt))), []);
});

/** Periods in which more attempts began than the bucket allows: those of a second, and those that refill it. */
function beyondRate(times: readonly number[]): readonly string[] {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted.flatMap((from, first) =>
    sorted.slice(first).flatMap((to, index) => {
      const allowed = RATE.requestsPerUnit * (1 + (to - from + CLOCKS_MS) / 1_000);
      return index + 1 > allowed ? [`${index + 1} attempts in ${to - from} ms`] : [];
    })
  );
}
