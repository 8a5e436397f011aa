import { percentile } from "../harness/percentile.ts";
import { until } from "../harness/until.ts";
import type { WebhookFleet } from "../harness/webhook_fleet.ts";
import type { WebhookProcess } from "../harness/webhook_process.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";

/** How many endpoints there are, and for how long they have events. */
export interface HangingOptions {
  readonly hanging: number;
  readonly healthy: number;
  readonly seconds: number;
}

/** What the healthy endpoints got beside those that hang. */
export interface HangingReport {
  readonly deliveries: number;
  /** The part of them that had come when their events ended. */
  readonly kept: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly hangingAttempts: number;
  readonly problems: readonly string[];
}

const PACE_MS = 100;
/** More than an endpoint may have under way, so that each that hangs has a backlog. */
const BACKLOG = 6;
const KEPT = 0.95;
const P99_MS = 1_000;
const REST_MS = 60_000;

/** Ten events a second for each healthy endpoint, by the front door, from the first moment that the others hang. */
export async function deliverBesideHanging(
  weir: WebhookProcess | WebhookFleet,
  { hanging, healthy, seconds }: HangingOptions,
): Promise<HangingReport> {
  await using receiver = await WebhookReceiver.start();
  receiver.react = ({ path }) => path.startsWith("/dead") ? "hang" : 200;
  for (const [kind, count] of [["dead", hanging], ["live", healthy]] as const) {
    for (let n = 0; n < count; n++) await weir.endpoint(receiver, `/${kind}/${n}`, { events: [`${kind}.*`] });
  }
  for (let n = 0; n < BACKLOG; n++) await weir.event({ n }, `dead-${n}`, "dead.event");
  const postedAt: number[] = [];
  const posts: Promise<unknown>[] = [];
  const begin = performance.now();
  for (let n = 0; n < seconds * 1_000 / PACE_MS; n++) {
    const pauseMs = begin + n * PACE_MS - performance.now();
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    postedAt.push(performance.now());
    posts.push(weir.event({ n }, `live-${n}`, "live.event"));
  }
  await Promise.all(posts);
  const isLive = ({ path }: { readonly path: string }) => path.startsWith("/live");
  const live = () => receiver.receptions.filter(isLive);
  const deliveries = postedAt.length * healthy;
  await new Promise((resolve) => setTimeout(resolve, P99_MS));
  const kept = live().length / deliveries;
  await until("every live one to arrive", () => live().length >= deliveries, { deadlineMs: REST_MS });
  const waits = live().map(({ body, at }) => at - (postedAt[JSON.parse(body).data.n] ?? 0));
  const p99Ms = percentile(waits, 99);
  return {
    ...{ deliveries, kept, p50Ms: percentile(waits, 50), p99Ms, maxMs: Math.max(...waits) },
    hangingAttempts: receiver.receptions.length - live().length,
    problems: [
      ...receiver.problems,
      ...kept >= KEPT ? [] : [`healthy endpoints got ${kept.toFixed(3)} of their deliveries in time`],
      ...p99Ms < P99_MS ? [] : [`p99 of the healthy endpoints is ${Math.round(p99Ms)} ms`],
    ],
  };
}
