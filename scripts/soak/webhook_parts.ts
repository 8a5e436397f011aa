import { WebhookFleet } from "../../tests/harness/webhook_fleet.ts";
import { concurrencyOverFleet } from "../../tests/harness/webhook_fleet_concurrency.ts";
import {
  OUTAGE_RULES,
  type OutageReport,
  outageWorkflows,
  runOutages,
  standbyPair,
} from "../../tests/harness/webhook_fleet_outage.ts";
import { deliverBesideHanging } from "../../tests/harness/webhook_hanging.ts";
import { killWhileDelivering } from "../../tests/harness/webhook_kill_loop.ts";
import { WebhookProcess } from "../../tests/harness/webhook_process.ts";
import { WebhookReceiver } from "../../tests/harness/webhook_receiver.ts";
import { killWhileExecuting } from "../../tests/harness/workflow_kill_loop.ts";
import { pressByLargeInputs, starveByHanging } from "../../tests/harness/workflow_pressure.ts";
import type { WebhookSoakOptions, WebhookSoakPart } from "./webhook_options.ts";

/** What came of a part: what is printed of it, and what was not as it has to be. */
export interface SoakFindings {
  readonly problems: readonly string[];
  readonly counts: Readonly<Record<string, unknown>>;
}

const LOG = { LOG_LEVEL: "warning", WEBHOOK_TIMEOUT: "2s" };
const CONCURRENCY = 4;
const HANGING_RUNS = 1_500;
const PRESSURE = { calls: 220, seconds: 30, mostMb: 1_000 };

/** How each part is run. */
export const RUN_PART: Readonly<
  Record<
    WebhookSoakPart,
    (options: WebhookSoakOptions, say: (line: string) => void) => Promise<SoakFindings>
  >
> = {
  async events(options, say) {
    const { events, eventKills: kills, seed } = options;
    const report = await killWhileDelivering({ events, kills, seed, say, open: openedBy(options) });
    return found(report);
  },
  async executions(options, say) {
    const { executions, executionKills: kills, seed } = options;
    const report = await killWhileExecuting({ executions, kills, seed, say, open: openedBy(options) });
    return found(report);
  },
  async starvation() {
    const { problems, ...counts } = await starveByHanging({ runs: HANGING_RUNS, withinSeconds: 45 });
    return { problems, counts };
  },
  async pressure() {
    const { problems, errors, ...counts } = await pressByLargeInputs(PRESSURE);
    return { problems: [...problems, ...Object.keys(errors)], counts };
  },
  async hanging(options) {
    await using weir = await openedBy(options)({ env: { LOG_LEVEL: "warning" } });
    await weir.start();
    const { problems, ...counts } = await deliverBesideHanging(weir, options);
    return { problems, counts };
  },
  async outages({ outages, works }) {
    await using receiver = await WebhookReceiver.start();
    await using fleet = await WebhookFleet.open({ env: LOG, workflows: outageWorkflows(receiver) });
    await fleet.start({ rules: OUTAGE_RULES });
    const { server } = fleet;
    const outage = { away: () => server.stop("immediate"), back: () => server.start() };
    const all = Array.from({ length: outages }, () => outage);
    return foundOutages(await runOutages(fleet, { receiver, outages: all, works }));
  },
  async failover({ works }) {
    await using receiver = await WebhookReceiver.start();
    await using pair = await standbyPair();
    const workflows = outageWorkflows(receiver);
    await using fleet = await WebhookFleet.open({ env: LOG, workflows, address: pair.address });
    await fleet.start({ rules: OUTAGE_RULES });
    const outage = { away: () => pair.primary.kill(), back: () => pair.standby.promote() };
    return foundOutages(await runOutages(fleet, { receiver, outages: [outage], works }));
  },
  async concurrency({ works }) {
    const { most, problems, ...counts } = await concurrencyOverFleet({
      ...{ events: 5 * works, concurrency: CONCURRENCY },
    });
    const wrong = most === CONCURRENCY ? [] : [`the receiver saw ${most} at once, not ${CONCURRENCY}`];
    return { problems: [...problems, ...wrong], counts: { most, ...counts } };
  },
};

function openedBy({ store }: WebhookSoakOptions): typeof WebhookProcess.open | typeof WebhookFleet.open {
  return store === "file" ? WebhookProcess.open : WebhookFleet.open;
}

function found(
  { problems, killsAt, ...counts }: {
    readonly problems: readonly string[];
    readonly killsAt: Readonly<Record<string, number>>;
  },
): SoakFindings {
  const kills = Object.entries(killsAt).map(([at, count]) => [`killed ${at}`, count]);
  return { problems, counts: { ...counts, ...Object.fromEntries(kills) } };
}

function foundOutages({ problems, decisions, ...counts }: OutageReport): SoakFindings {
  const refused = decisions.refused === 0 ? [] : [`${decisions.refused} decisions were refused`];
  return { problems: [...problems, ...refused], counts: { ...counts, ...decisions } };
}
