import { seededRandom } from "./seeded_random.ts";
import { until } from "./until.ts";
import { WebhookFleet } from "./webhook_fleet.ts";
import { deliveriesProblems } from "./webhook_kill_loop.ts";
import { WebhookReceiver } from "./webhook_receiver.ts";

/** What a receiver saw of a fleet. */
export interface ConcurrencyReport {
  /** Most requests at once. */
  readonly most: number;
  /** How many requests there were at once, on an average of the time in which there were any. */
  readonly mean: number;
  readonly problems: readonly string[];
  readonly tookMs: number;
}

const LANES = 16;
const ANSWER_MS = [20, 50] as const;
/** So long the first requests wait for as many as there may be: a busy machine is slow to send them. */
const TOGETHER_MS = 30_000;
const SEED = 20_261_125;

/**
 * Posts events to three machines in turn, whose one endpoint takes so many at once and its time to answer. It is opened
 * when half of them are there, so that each machine has more than enough for it.
 */
export async function concurrencyOverFleet(
  { events, concurrency }: { readonly events: number; readonly concurrency: number },
): Promise<ConcurrencyReport> {
  await using receiver = await WebhookReceiver.start();
  await using fleet = await WebhookFleet.open({ env: { LOG_LEVEL: "warning", WEBHOOK_TIMEOUT: "60s" } });
  await fleet.start();
  const { id } = await fleet.endpoint(receiver, "/hook", { concurrency, enabled: false });
  const random = seededRandom(SEED);
  const [low, high] = ANSWER_MS;
  let running = 0;
  let most = 0;
  let busyMs = 0;
  const together = Promise.withResolvers<void>();
  let alone: ReturnType<typeof setTimeout> | undefined;
  receiver.react = async () => {
    most = Math.max(most, ++running);
    const begin = performance.now();
    alone ??= setTimeout(together.resolve, TOGETHER_MS);
    if (most >= concurrency) together.resolve();
    await together.promise;
    await new Promise((resolve) => setTimeout(resolve, low + random() * (high - low)));
    running--;
    busyMs += performance.now() - begin;
    return 200;
  };
  let begin = Infinity;
  const left = Array.from({ length: events }, (_, n) => n);
  await Promise.all(Array.from({ length: LANES }, async () => {
    for (let n = left.shift(); n !== undefined; n = left.shift()) {
      await fleet.event({ n }, `event-${n}`);
      if (n !== Math.floor(events / 2)) continue;
      begin = performance.now();
      await fleet.first.api("PATCH", `/endpoints/${id}`, { enabled: true });
    }
  }));
  await until("everything to be delivered", () => receiver.byId.size >= events, { deadlineMs: 300_000 });
  const tookMs = performance.now() - begin;
  clearTimeout(alone);
  await until("every result to be written", () => fleet.isDelivered());
  const deliveries = await fleet.all("/deliveries");
  const problems = [...receiver.problems, ...deliveriesProblems(deliveries, { receiver, events })];
  if (receiver.repeated.length > 0) problems.push(`${receiver.repeated.length} occurs more than once`);
  return { most, mean: busyMs / tookMs, problems, tookMs };
}
