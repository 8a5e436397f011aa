import { LimitedKeys } from "./limited_keys.ts";
import { seededRandom } from "./seeded_random.ts";
import { until } from "./until.ts";
import type { WebhookCalls } from "./webhook_calls.ts";
import type { AnswerBody } from "./webhook_client.ts";
import { ATTEMPT_POINTS } from "./webhook_faults.ts";
import { endpointsByKind } from "./webhook_fleet.ts";
import {
  type KilledProcesses,
  type KillReport,
  killRounds,
  type KillRoundsOptions,
  runKillRounds,
} from "./webhook_kill_rounds.ts";
import { WebhookProcess, type WebhookProcessOptions } from "./webhook_process.ts";
import { type Reception, WebhookReceiver } from "./webhook_receiver.ts";

/** What was seen of events while processes were killed. */
export interface EventKillReport extends Omit<KillReport, "works"> {
  /** Attempts whose process died before their result was written. */
  readonly interruptedAttempts: number;
}

/** What a loop of kills is to do. */
export interface KillLoopOptions extends Omit<KillRoundsOptions, "points" | "works"> {
  /** Makes its processes with their store; one on a file when absent. */
  readonly open?: OpenKilled | undefined;
}

/** Makes what is killed: one process on a file, or several on a database. */
export type OpenKilled = (options: WebhookProcessOptions) => Promise<KilledWeir>;

/** What is killed, and asked meanwhile. */
export type KilledWeir = KilledProcesses & WebhookCalls & AsyncDisposable;

/** What a receiver knows of deliveries. */
export type SeenDeliveries = Pick<WebhookReceiver, "byId" | "resets" | "receptions">;

const DELIVERED_MS = 300_000;
const MAX_PROBLEMS = 20;
/** What a process leaves claimed when it dies is still counted for its endpoint, where others work on. */
const ENDPOINTS = 8;
const TIMEOUT_MS = 2_000;

/**
 * Posts that many events to Weir, which delivers them to a counting receiver and is killed again and again, and looks
 * whether each arrived, under one UUID with one body, and repeatedly only where an attempt failed or broke off. Calls
 * that are refused meanwhile are reported once for each key and window.
 */
export async function killWhileDelivering(
  options: KillLoopOptions & { readonly events: number },
): Promise<EventKillReport> {
  const { seed, open = WebhookProcess.open } = options;
  await using receiver = await WebhookReceiver.start();
  await using limited = await LimitedKeys.open();
  const env = { LOG_LEVEL: "warning", WEBHOOK_TIMEOUT: `${TIMEOUT_MS}ms`, ...limited.env };
  await using weir = await open({ env });
  const random = seededRandom(seed + 1);
  // One in fifty fails at first, so that attempts are not all the first ones.
  receiver.react = (_, count) => count === 1 && random() < 0.02 ? random() < 0.5 ? 500 : "reset" : 200;
  await startAll(weir);
  await limited.subscribe(weir);
  const kinds = await endpointsByKind(weir, receiver, ENDPOINTS, { concurrency: 16 });

  const ids: string[] = [];
  const postOne = async (n: number) => {
    const kind = kinds[n % kinds.length];
    for (const member of weir.members) await limited.ask(member, n);
    const { status, body } = await weir.event({ n }, `event-${n}`, kind);
    if (status !== 202) throw new Error(`Cannot post event ${n}: ${status} ${JSON.stringify(body)}`);
    ids[n] = body.id;
  };
  const rounds = killRounds({
    ...options,
    ...{ works: options.events, points: ATTEMPT_POINTS, processes: weir.members.length },
  });
  const { works: events, ...killed } = await runKillRounds(weir, {
    ...{ rounds, works: options.events, work: postOne },
  });
  const limitProblems = await limited.problems();
  await until("everything to be delivered", () => weir.isDelivered(), {
    ...{ deadlineMs: DELIVERED_MS, intervalMs: 100 },
  });
  const deliveries = (await weir.all("/deliveries")).filter(({ event }) => event.startsWith("lane."));
  const failures = await weir.all("/audit?event=delivery.failed");

  const problems = [...killed.problems, ...receiver.problems, ...limitProblems];
  const eventIds = new Set(ids);
  if (eventIds.size !== events) problems.push(`${eventIds.size} events were taken in place of ${events}`);
  if (failures.length > 0) problems.push(`${failures.length} deliveries failed`);
  problems.push(...deliveriesProblems(deliveries, { receiver, events }));
  const attempts = deliveries.flatMap((delivery) => delivery.attempts);
  return {
    ...killed,
    problems: problems.slice(0, MAX_PROBLEMS),
    interruptedAttempts: attempts.filter(({ result }) => result === "interrupted").length,
  };
}

/** Starts all the processes at once. */
export async function startAll(weir: KilledProcesses): Promise<void> {
  await Promise.all(weir.members.map((_, n) => weir.startMember(n)));
}

/** What is wrong with deliveries of that many events, each of which has its number as `data.n`. */
export function deliveriesProblems(
  deliveries: readonly AnswerBody[],
  { receiver, events }: { readonly receiver: SeenDeliveries; readonly events: number },
): string[] {
  const problems: string[] = [];
  if (deliveries.length !== events) problems.push(`there are ${deliveries.length} deliveries`);
  const isDelivery = ({ headers }: Pick<Reception, "headers">) => headers["x-svc-delivery"] !== undefined;
  const received = receiver.receptions.filter(isDelivery);
  const arrived = new Set(received.map(({ body }) => Number(JSON.parse(body).data.n)));
  for (let n = 0; n < events; n++) if (!arrived.has(n)) problems.push(`event ${n} did not arrive`);
  for (const delivery of deliveries) problems.push(...deliveryProblems(delivery, receiver));
  const known = new Set(deliveries.map(({ id }) => id));
  for (const { id } of received) if (!known.has(id)) problems.push(`delivery ${id} is unknown`);
  return problems;
}

/** What is wrong with one delivery, by its record and by what arrived. */
export function deliveryProblems(
  delivery: AnswerBody,
  receiver: Pick<SeenDeliveries, "byId" | "resets">,
): string[] {
  const { id, state, attempts } = delivery;
  const problem = (text: string) => `delivery ${id}: ${text}`;
  const arrived = receiver.byId.get(id) ?? [];
  const results = attempts.map(({ result }) => result);
  const problems: string[] = [];
  if (state !== "acknowledged") problems.push(problem(`it is ${state}`));
  if (new Set(arrived.map(({ body }) => body)).size !== 1) {
    problems.push(problem("it came with several bodies"));
  }
  if (arrived.length === 0) problems.push(problem("it did not come"));
  // The platform sends a request once more that met the end of a connection which had been used before.
  if (arrived.length > attempts.length + (receiver.resets.get(id) ?? 0)) {
    problems.push(problem(`it came ${arrived.length} times in ${attempts.length} attempts`));
  }
  const early = results.slice(0, -1).filter((result) => result !== "interrupted" && result !== "failed");
  if (early.length > 0 || results.at(-1) !== "acknowledged") {
    problems.push(problem(`its attempts ended as ${results.join(", ")}`));
  }
  return problems;
}
