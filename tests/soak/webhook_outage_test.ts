import { assert, assertEquals } from "#assert";
import { needs } from "../harness/tools.ts";
import { WebhookFleet } from "../harness/webhook_fleet.ts";
import {
  type OutageReport,
  outageWorkflows,
  runOutages,
  type StandbyPair,
  standbyPair,
} from "../harness/webhook_outage.ts";
import { SHOP_RULES } from "../harness/webhook_calls.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { bySize, onlyFull } from "./soak_options.ts";

/** Pieces of work before each outage. */
const WORKS = bySize({ short: 20, full: 500 });
const OUTAGES = bySize({ short: 1, full: 3 });
/** A few seconds, and what a busy machine takes besides. */
const RECOVERY_MS = 60_000;
const GROWTH_MB = bySize({ short: 60, full: 120 });
/** A decision waits for nothing of the database, which is unavailable for longer where it falls silent. */
const SLOWEST_DECISION_MS = 6_000;
const ENV = { LOG_LEVEL: "warning", WEBHOOK_TIMEOUT: "2s" };

Deno.test({
  ...needs(
    ["postgres"],
    "their database is killed again and again: nothing that was taken is lost, decisions go on",
  ),
  async fn() {
    await using receiver = await WebhookReceiver.start();
    await using fleet = await WebhookFleet.open({ env: ENV, workflows: outageWorkflows(receiver) });
    await fleet.start({ rules: SHOP_RULES });
    const { server } = fleet;
    const outage = { away: () => server.stop("immediate"), back: () => server.start() };
    const outages = Array.from({ length: OUTAGES }, () => outage);
    check(await runOutages(fleet, { receiver, outages, works: WORKS }));
  },
});

/** The ways to lose a server whose standby is promoted then. */
const LOSSES: Readonly<Record<string, (primary: StandbyPair["primary"]) => Promise<void>>> = {
  "dies": (primary) => primary.kill(),
  // Its connections stay open, and nothing comes any more.
  "falls silent": (primary) => Promise.resolve(primary.pause()),
};

for (const [what, lose] of Object.entries(LOSSES)) {
  Deno.test({
    ...onlyFull(needs(
      ["postgres"],
      `their database ${what} and its standby is promoted: nothing that was taken is lost`,
    )),
    async fn() {
      await using receiver = await WebhookReceiver.start();
      await using pair = await standbyPair();
      const workflows = outageWorkflows(receiver);
      await using fleet = await WebhookFleet.open({ env: ENV, workflows, address: pair.address });
      await fleet.start({ rules: SHOP_RULES });
      const outage = { away: () => lose(pair.primary), back: () => pair.standby.promote() };
      check(await runOutages(fleet, { receiver, outages: [outage], works: WORKS }));
    },
  });
}

function check({ problems, decisions, recoveryMs, growthMb }: OutageReport): void {
  assertEquals(problems, []);
  const { count, refused, slowestMs } = decisions;
  assertEquals([count > 0, refused], [true, 0]);
  assert(slowestMs < SLOWEST_DECISION_MS, `a decision took ${Math.round(slowestMs)} ms`);
  for (const ms of recoveryMs) assert(ms < RECOVERY_MS, `they went on after ${Math.round(ms)} ms`);
  for (const mb of growthMb) assert(mb < GROWTH_MB, `memory grew by ${Math.round(mb)} MB`);
}
