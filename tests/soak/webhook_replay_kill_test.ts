import { assertEquals } from "#assert";
import { deliveryProblems } from "../harness/delivery_problems.ts";
import { needs, type Tool } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import type { WebhookCalls } from "../harness/webhook_calls.ts";
import type { AnswerBody } from "../harness/webhook_client.ts";
import { ATTEMPT_POINTS } from "../harness/webhook_faults.ts";
import { WebhookFleet } from "../harness/webhook_fleet.ts";
import { WebhookProcess } from "../harness/webhook_process.ts";
import { type Reception, WebhookReceiver } from "../harness/webhook_receiver.ts";
import { bySize, SOAK_SEED } from "./soak_options.ts";
import { type KilledProcesses, runKillRounds } from "./webhook_kill_rounds.ts";

const STORES = [
  { what: "a process on a file", tools: [], open: WebhookProcess.open },
  { what: "three machines on one database", tools: ["postgres"] as readonly Tool[], open: WebhookFleet.open },
];
/** Events that are replayed, events that come meanwhile, and attempts per second of each endpoint. */
const SIZE = bySize({
  short: { past: 400, live: 60, kills: 4, rate: 40 },
  full: { past: 5_000, live: 2_000, kills: 30, rate: 100 },
});
const ENDPOINTS = 3;
const CONCURRENCY = 8;
const TIMEOUT_MS = 2_000;
const DELIVERED_MS = 600_000;
const MAX_PROBLEMS = 20;

for (const { what, tools, open } of STORES) {
  Deno.test({
    ...needs(
      tools,
      `${what}, kill -9 during replays to endpoints with rates: each event comes once (seed ${SOAK_SEED})`,
    ),
    async fn() {
      await using receiver = await WebhookReceiver.start();
      await using weir = await open({ env: { LOG_LEVEL: "warning", WEBHOOK_TIMEOUT: `${TIMEOUT_MS}ms` } });
      assertEquals(await problemsOfReplays(weir, receiver), []);
    },
  });
}

/**
 * Replays past events to new endpoints while processes are killed and other events arrive, and looks whether each
 * endpoint has one delivery of each event, and no more attempts than its rate allows.
 */
async function problemsOfReplays(
  weir: KilledProcesses & WebhookCalls,
  receiver: WebhookReceiver,
): Promise<readonly string[]> {
  const { past, live, kills, rate } = SIZE;
  await Promise.all(weir.members.map((_, n) => weir.startMember(n)));
  const post = async (n: number) => {
    const { status } = await weir.event({ n }, `event-${n}`, "lane.one");
    if (status !== 202) throw new Error(`Cannot post event ${n}: ${status}`);
  };
  for (let n = 0; n < past; n += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, more) => post(n + more)));
  }
  const endpointIds: string[] = [];
  const replayIds: string[] = [];
  for (let n = 0; n < ENDPOINTS; n++) {
    const rateLimit = { unit: "second", requestsPerUnit: rate };
    const fields = { events: ["lane.*"], concurrency: CONCURRENCY, rateLimit };
    const { id } = await weir.endpoint(receiver, `/to${n}`, fields);
    endpointIds.push(id);
    const { status, body } = await weir.api("POST", `/endpoints/${id}/replay`, { since: "1h" });
    assertEquals([status, body["count"]], [202, past]);
    replayIds.push(body.id);
  }
  const killed = await runKillRounds(weir, {
    kills,
    seed: SOAK_SEED,
    works: live,
    points: ATTEMPT_POINTS,
    work: (n) => post(past + n),
  });
  const replays = async () => await weir.all("/replays");
  await until(
    "the replays to end, and everything to be delivered",
    async () => (await replays()).every(({ state }) => state !== "running") && await weir.isDelivered(),
    { deadlineMs: DELIVERED_MS, intervalMs: 200 },
  );
  const problems = [...killed.problems, ...receiver.problems];
  for (const { id, state, done } of await replays()) {
    if (state !== "finished" || done !== past) {
      problems.push(`replay ${id} is ${state} after ${done} deliveries`);
    }
  }
  for (const [n, endpointId] of endpointIds.entries()) {
    const deliveries = await weir.all(`/deliveries?endpointId=${endpointId}`);
    const replayed = deliveries.filter(({ replayId }) => replayId === replayIds[n]);
    problems.push(...onceProblems(replayed, past), ...onceProblems(deliveries, past + killed.works));
    for (const delivery of deliveries) problems.push(...deliveryProblems(delivery, receiver));
    const most = mostPerSecond(receiver.receptions.filter(({ path }) => path === `/to${n}`));
    // What waits for the receiver may come together.
    if (most > 2 * rate + CONCURRENCY) problems.push(`${most} attempts came to an endpoint in a second`);
  }
  return problems.slice(0, MAX_PROBLEMS);
}

/** The problems of deliveries of that many events, each of which has one. */
function onceProblems(deliveries: readonly AnswerBody[], events: number): string[] {
  const ids = new Set(deliveries.map(({ eventId }) => eventId));
  if (ids.size === events && deliveries.length === events) return [];
  return [`there are ${deliveries.length} deliveries of ${ids.size} events in place of ${events}`];
}

function mostPerSecond(receptions: readonly Reception[]): number {
  const times = receptions.map(({ at }) => at).toSorted((a, b) => a - b);
  let [most, start] = [0, 0];
  for (const [index, at] of times.entries()) {
    while ((times[start] ?? at) <= at - 1_000) start++;
    most = Math.max(most, index - start + 1);
  }
  return most;
}
