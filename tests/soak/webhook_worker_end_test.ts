import { assert, assertEquals } from "@std/assert";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { webhookCall } from "../harness/webhook_client.ts";
import { endpointsByKind, WebhookFleet } from "../harness/webhook_fleet.ts";
import { deliveriesProblems } from "../harness/webhook_kill_loop.ts";
import { ADMIN_TOKEN } from "../harness/webhook_process.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { onlyFull } from "./soak_options.ts";

/** What ends the worker of one machine after the other: an error that nobody catches, an end without a word. */
const ENDS = ["SIGUSR1", "SIGUSR2"] as const;
/** A worker that says nothing any more is given some time. */
const BACK_MS = 120_000;

Deno.test({
  ...onlyFull(
    needs(["postgres"], "a worker ends inside a process: the other machines go on, and it comes back"),
  ),
  async fn() {
    await using receiver = await WebhookReceiver.start();
    // What is sent is not answered before its worker has ended.
    let ended = Promise.withResolvers<void>();
    receiver.react = async () => {
      await ended.promise;
      return 200;
    };
    await using fleet = await WebhookFleet.open({ env: { WEBHOOK_TIMEOUT: "4s" } });
    await fleet.start({ faults: {} });
    const kinds = await endpointsByKind(fleet, receiver, 4, { concurrency: 16 });
    let events = 0;
    const post = async (base: string) => {
      const n = events++;
      const body = { event: kinds[n % kinds.length], data: { n } };
      const call = () =>
        webhookCall(`${base}/api/v1/events`, { token: ADMIN_TOKEN, key: `event-${n}`, body });
      return { call, status: (await call()).status };
    };

    for (const [n, signal] of ENDS.entries()) {
      const member = fleet.member(n);
      const others = fleet.members.filter((one) => one !== member);
      const before = receiver.receptions.length;
      ended = Promise.withResolvers<void>();
      // It has work in hand when it ends.
      await Promise.all(Array.from({ length: 12 }, () => post(member.base)));
      await until("it to be sent", () => receiver.receptions.length > before);
      member.weir.signal(signal);
      const left: (() => Promise<{ readonly status: number }>)[] = [];
      const refusal = await until("a refusal", async () => {
        const { call, status } = await post(member.base);
        if (status !== 202) left.push(call);
        return status === 202 ? undefined : status;
      }, { deadlineMs: BACK_MS });
      ended.resolve();
      assertEquals(refusal, 503);
      for (const { base } of [...others, ...others]) assertEquals((await post(base)).status, 202);
      for (const call of left) {
        await until("it to be back", async () => (await call()).status === 202, { deadlineMs: BACK_MS });
      }
    }
    // What the workers had is delivered once their claims have ended: the time that is left is let pass.
    for (const member of fleet.members) {
      await until("no more work", async () => await member.figure("attempts_in_flight") === 0);
    }
    await fleet.psql("UPDATE delivery SET lease_until = 1 WHERE lease_until IS NOT NULL");
    await until("everything to be delivered", () => fleet.isDelivered(), { deadlineMs: 180_000 });
    const deliveries = await fleet.all("/deliveries");
    assertEquals(deliveriesProblems(deliveries, { receiver, events }), []);
    assertEquals(receiver.problems, []);
    const broken = deliveries.filter(({ attempts }) =>
      attempts.some(({ result }) => result === "interrupted")
    );
    assert(broken.length > 0, "attempts broke off");
  },
});
