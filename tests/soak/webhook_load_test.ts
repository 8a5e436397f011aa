import { assert, assertEquals } from "#assert";
import { percentile } from "../harness/percentile.ts";
import { seededRandom } from "../harness/seeded_random.ts";
import { needing, needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { WebhookFleet } from "../harness/webhook_fleet.ts";
import { deliveriesProblems } from "../harness/delivery_problems.ts";
import { WebhookProcess } from "../harness/webhook_process.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { bySize, onlyFull } from "./soak_options.ts";

const EVENTS = bySize({ short: 200, full: 2_500 });
const CONCURRENCY = 4;
const LANES = 16;
const ANSWER_MS = [20, 50] as const;
/** So long the first requests wait for as many as there may be: a busy machine is slow to send them. */
const TOGETHER_MS = 30_000;
const QUIET = { LOG_LEVEL: "warning" };
const postgres = needing("postgres");

/** Posts to three machines in turn; the one endpoint is opened when each has more than enough for it. */
postgres.test("with a concurrency of 4 a receiver never sees a fifth request of three machines, and sees 4", async () => {
  await using receiver = await WebhookReceiver.start();
  await using fleet = await WebhookFleet.open({ env: { ...QUIET, WEBHOOK_TIMEOUT: "60s" } });
  await fleet.start();
  const { id } = await fleet.endpoint(receiver, "/hook", { concurrency: CONCURRENCY, enabled: false });
  const random = seededRandom(20_261_125);
  const [low, high] = ANSWER_MS;
  let [running, most] = [0, 0];
  const together = Promise.withResolvers<void>();
  let alone: ReturnType<typeof setTimeout> | undefined;
  receiver.react = async () => {
    most = Math.max(most, ++running);
    alone ??= setTimeout(together.resolve, TOGETHER_MS);
    if (most >= CONCURRENCY) together.resolve();
    await together.promise;
    await new Promise((resolve) => setTimeout(resolve, low + random() * (high - low)));
    running--;
    return 200;
  };
  const left = Array.from({ length: EVENTS }, (_, n) => n);
  await Promise.all(Array.from({ length: LANES }, async () => {
    for (let n = left.shift(); n !== undefined; n = left.shift()) {
      await fleet.event({ n }, `event-${n}`);
      if (n === Math.floor(EVENTS / 2)) {
        await fleet.first.api("PATCH", `/endpoints/${id}`, { enabled: true });
      }
    }
  }));
  await until("everything to be delivered", () => receiver.byId.size >= EVENTS, { deadlineMs: 300_000 });
  clearTimeout(alone);
  await until("every result to be written", () => fleet.isDelivered());
  assertEquals(deliveriesProblems(await fleet.all("/deliveries"), { receiver, events: EVENTS }), []);
  assertEquals([most, receiver.problems, receiver.repeated], [CONCURRENCY, [], []]);
});

const HANGING = 130;
const PACE_MS = 100;
const SECONDS = 40;
/** More than an endpoint may have under way, so that each that hangs has a backlog. */
const BACKLOG = 6;
/** The part of the healthy deliveries that came when their events ended, and how long they took. */
const [KEPT, P99_MS] = [0.95, 1_000];

const WEIRS = [
  { what: "", test: { name: "" }, open: WebhookProcess.open },
  { what: ", on three machines", test: needs(["postgres"], ""), open: WebhookFleet.open },
];

for (const { what, test, open } of WEIRS) {
  Deno.test({
    ...onlyFull({
      ...test,
      name: `${HANGING} endpoints that hang leave the one that answers its rate${what}`,
    }),
    async fn() {
      await using weir = await open({ env: QUIET });
      await weir.start();
      await deliverBesideHanging(weir);
    },
  });
}

/** Ten events a second for the healthy endpoint, by the front door, from the first moment that the others hang. */
async function deliverBesideHanging(weir: WebhookProcess | WebhookFleet): Promise<void> {
  await using receiver = await WebhookReceiver.start();
  receiver.react = ({ path }) => path.startsWith("/dead") ? "hang" : 200;
  for (let n = 0; n < HANGING; n++) await weir.endpoint(receiver, `/dead/${n}`, { events: ["dead.*"] });
  await weir.endpoint(receiver, "/live", { events: ["live.*"] });
  for (let n = 0; n < BACKLOG; n++) await weir.event({ n }, `dead-${n}`, "dead.event");
  const postedAt: number[] = [];
  const posts: Promise<unknown>[] = [];
  const begin = performance.now();
  for (let n = 0; n < SECONDS * 1_000 / PACE_MS; n++) {
    const pauseMs = begin + n * PACE_MS - performance.now();
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    postedAt.push(performance.now());
    posts.push(weir.event({ n }, `live-${n}`, "live.event"));
  }
  await Promise.all(posts);
  const live = () => receiver.receptions.filter(({ path }) => path === "/live");
  await new Promise((resolve) => setTimeout(resolve, P99_MS));
  const kept = live().length / postedAt.length;
  await until("every live one to arrive", () => live().length >= postedAt.length);
  const waits = live().map(({ body, at }) => at - (postedAt[JSON.parse(body).data.n] ?? 0));
  assertEquals(receiver.problems, []);
  assert(kept >= KEPT, `the healthy endpoint got ${kept.toFixed(3)} of its deliveries in time`);
  assert(
    percentile(waits, 99) < P99_MS,
    `p99 of the healthy endpoint is ${Math.round(percentile(waits, 99))} ms`,
  );
}

const RUNS = 1_500;
const WITHIN_MS = 45_000;
const HEALTHY = "workflow: healthy\nsteps:\n- { name: done, set: { done: true } }\n";

Deno.test({
  ...onlyFull({ name: "1,500 runs of a workflow that hangs keep no other waiting" }),
  async fn() {
    await using upstream = new HangingUpstream();
    await using weir = await upstream.weir();
    const healthy = await weir.made("/triggers", { name: "healthy", workflow: "healthy" });
    const hanging = await weir.made("/triggers", { name: "hanging", workflow: "hanging" });
    await inTurn(RUNS, () => weir.trigger("hanging", hanging.key, {}));
    await until("the upstream to hang", () => upstream.requests > 0);
    await inTurn(5, () => weir.trigger("healthy", healthy.key, {}));
    const done = async () => (await weir.api("GET", "/executions?state=succeeded&limit=9")).body.items.length;
    await until("five runs", async () => await done() === 5, { deadlineMs: WITHIN_MS, intervalMs: 100 });
  },
});

/** `{"x":[{},{},…]}` of just under 1 MiB. */
const LARGE_INPUT = `{"x":[${Array(349_520).fill("{}").join(",")}]}`;
const LARGE_INPUTS = 220;
const PRESSED_MS = 30_000;
const MOST_MB = 1_000;

Deno.test({
  ...onlyFull({ name: "inputs of 1 MiB that wait take no more memory than they may" }),
  async fn() {
    await using upstream = new HangingUpstream();
    await using weir = await upstream.weir();
    const { key } = await weir.made("/triggers", { name: "hanging", workflow: "hanging" });
    const before = weir.residentMb();
    let most = before;
    const watch = setInterval(() => most = Math.max(most, weir.residentMb()), 100);
    try {
      await inTurn(LARGE_INPUTS, () => weir.trigger("hanging", key, LARGE_INPUT));
      await new Promise((resolve) => setTimeout(resolve, PRESSED_MS));
    } finally {
      clearInterval(watch);
    }
    const failed = await until("the administration", () => weir.all("/executions?state=failed"));
    assertEquals(failed.map(({ error }) => error), []);
    assert(most - before <= MOST_MB, `it grew by ${(most - before).toFixed(0)} MB`);
  },
});

/** Answers no request. */
class HangingUpstream implements AsyncDisposable {
  requests = 0;
  readonly #gate = Promise.withResolvers<void>();
  readonly #server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    this.requests++;
    await request.body?.cancel();
    await this.#gate.promise;
    return new Response();
  });

  /** Starts a Weir with a workflow that calls it, and one that does not. */
  async weir(): Promise<WebhookProcess> {
    const request =
      `{ method: POST, url: "http://127.0.0.1:${this.#server.addr.port}/", body: "{{ input }}", timeout: 10s }`;
    const hanging =
      `workflow: hanging\nsteps:\n- name: call\n  request: ${request}\n  retry: { attempts: 100, backoff: 1s }\n`;
    await using stack = new AsyncDisposableStack();
    const workflows = { "hanging.yaml": hanging, "healthy.yaml": HEALTHY };
    const weir = stack.use(await WebhookProcess.open({ env: QUIET, workflows }));
    await weir.start();
    stack.move();
    return weir;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#gate.resolve();
    await this.#server.shutdown();
  }
}

/** Calls a trigger so often, a few at a time. */
async function inTurn(count: number, call: () => Promise<{ readonly status: number }>): Promise<void> {
  let begun = 0;
  await Promise.all(Array.from({ length: Math.min(20, count) }, async () => {
    while (begun++ < count) assertEquals((await call()).status, 202);
  }));
}
