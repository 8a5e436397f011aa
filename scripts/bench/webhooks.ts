import type { LoadsSetup } from "./bench_loads.ts";
import { median } from "../../tests/harness/percentile.ts";
import { runGenerator } from "./round.ts";
import { WebhookBench } from "./webhook_service.ts";
import { bareCommits, barePosts } from "./webhook_yardsticks.ts";

/** Number of endpoints. */
export const ENDPOINTS = 50;
/** Attempts of an endpoint that run at the same time, the default, over all endpoints. */
const PARALLEL = 4 * ENDPOINTS;
const TRIGGERS = 5_000;
const QUICK_TRIGGERS = 200;
/** Triggers that are sent at the same time. */
const CALLERS = 64;
const EVENTS = 100;
const QUICK_EVENTS = 4;
/** Deliveries a second next to the decisions. */
const DELIVERIES_PER_SECOND = 500;
const DECISIONS_PER_SECOND = 5_000;
const BODY = JSON.stringify({
  event: "bench.happened",
  data: { id: crypto.randomUUID(), text: "x".repeat(100) },
});

/** Speed of the webhook service; medians of the rounds. */
export interface WebhookOutcome {
  /** Commits a second of bare `node:sqlite` in the same folder. */
  readonly bareCommits: number;
  /** Triggers a second that were accepted. */
  readonly triggers: number;
  /** Requests a second of a bare client to the same receiver. */
  readonly barePosts: number;
  /** Deliveries a second that arrived. */
  readonly deliveries: number;
  /** p99 of decisions at a constant rate, without deliveries and with them, and the median of the ratios. */
  readonly decisionP99Ms: number;
  readonly decisionP99WithDeliveriesMs: number;
  readonly decisionP99Ratio: number;
}

type Round = Omit<WebhookOutcome, "decisionP99Ratio">;

/** Measures triggers, deliveries and what deliveries do to decisions, with a yardstick next to each. */
export async function measureWebhooks(setup: LoadsSetup): Promise<WebhookOutcome> {
  const rounds: Round[] = [];
  for (let number = 1; number <= setup.options.rounds; number++) {
    const round = await measureOnce(setup);
    rounds.push(round);
    setup.say(`webhooks ${number}: ${JSON.stringify(round)}`);
  }
  const of = (name: keyof Round) => median(rounds.map((round) => round[name]));
  return {
    bareCommits: of("bareCommits"),
    triggers: of("triggers"),
    barePosts: of("barePosts"),
    deliveries: of("deliveries"),
    decisionP99Ms: of("decisionP99Ms"),
    decisionP99WithDeliveriesMs: of("decisionP99WithDeliveriesMs"),
    decisionP99Ratio: median(
      rounds.map(({ decisionP99Ms, decisionP99WithDeliveriesMs }) =>
        decisionP99WithDeliveriesMs / decisionP99Ms
      ),
    ),
  };
}

async function measureOnce({ options, signal }: LoadsSetup): Promise<Round> {
  await using owned = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "weir-bench-" });
  owned.defer(() => Deno.remove(folder, { recursive: true }));
  const bench = owned.use(await WebhookBench.start({ folder, engine: options.engine }));
  const triggers = await triggersPerSecond(bench, {
    name: "bench",
    count: options.isQuick ? QUICK_TRIGGERS : TRIGGERS,
  });
  const bare = bareCommits(folder, options.seconds);
  const urls = bench.receiverUrls(ENDPOINTS);
  await bench.addEndpoints(urls);
  const events = options.isQuick ? QUICK_EVENTS : EVENTS;
  const posts = await barePosts({ urls, requests: events * ENDPOINTS, parallel: PARALLEL, body: BODY });
  const deliveries = await deliveriesPerSecond(bench, events, signal);
  const paced = async () => {
    const flags = {
      port: bench.grpcPort,
      perSecond: DECISIONS_PER_SECOND,
      seconds: 2 * options.seconds,
      warmUpSeconds: options.warmUpSeconds,
      inFlight: 256,
    };
    return (await runGenerator("load.ts", flags, { what: "decisions next to deliveries", signal })).p99Ms;
  };
  const decisionP99Ms = await paced();
  const stop = new AbortController();
  const beside = steadyEvents(bench, AbortSignal.any([stop.signal, signal]));
  const decisionP99WithDeliveriesMs = await paced();
  stop.abort();
  await bench.received(await beside, signal);
  return {
    bareCommits: bare,
    triggers,
    barePosts: posts,
    deliveries,
    decisionP99Ms,
    decisionP99WithDeliveriesMs,
  };
}

/** Makes a trigger and calls it so often, with its own key each time; answers how many were accepted a second. */
export async function triggersPerSecond(
  bench: WebhookBench,
  { name, count }: { readonly name: string; readonly count: number },
): Promise<number> {
  const key = await bench.addTrigger(name);
  let left = count;
  const call = async () => {
    while (left-- > 0) await bench.trigger(name, key, crypto.randomUUID());
  };
  const begin = performance.now();
  await Promise.all(Array.from({ length: CALLERS }, call));
  return count / (performance.now() - begin) * 1_000;
}

/** Posts so many events; answers how many deliveries a second arrived, each once. */
export async function deliveriesPerSecond(
  bench: WebhookBench,
  events: number,
  signal: AbortSignal,
): Promise<number> {
  await bench.forget();
  const begin = performance.now();
  let expected = 0;
  for (let number = 0; number < events; number++) expected += await bench.event();
  const { count, distinct } = await bench.received(expected, signal);
  const perSecond = expected / (performance.now() - begin) * 1_000;
  if (count === expected && distinct === expected && expected === events * ENDPOINTS) return perSecond;
  throw new Error(
    `Cannot trust bench of deliveries: ${count} arrived (${distinct} different), not ${expected}`,
  );
}

/** Posts events at a constant rate until the signal; answers how many deliveries were made of them. */
async function steadyEvents(bench: WebhookBench, signal: AbortSignal): Promise<number> {
  await bench.forget();
  let deliveries = 0;
  const everyMs = 1_000 * ENDPOINTS / DELIVERIES_PER_SECOND;
  for (let due = performance.now(); !signal.aborted; due += everyMs) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    deliveries += await bench.event();
  }
  return deliveries;
}
