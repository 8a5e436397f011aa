import { assert, assertEquals } from "#assert";
import { join } from "node:path";
import { deliveriesProblems } from "../harness/delivery_problems.ts";
import { PROVIDER_HEADERS } from "../harness/provider_signatures.ts";
import { seededRandom } from "../harness/seeded_random.ts";
import { needs, type Tool } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import type { WebhookCalls } from "../harness/webhook_calls.ts";
import type { AnswerBody } from "../harness/webhook_client.ts";
import { ATTEMPT_POINTS, EXECUTION_POINTS, type KillPoint } from "../harness/webhook_faults.ts";
import { endpointsByKind, WebhookFleet } from "../harness/webhook_fleet.ts";
import { type KilledProcesses, type KillReport, runKillRounds } from "./webhook_kill_rounds.ts";
import { WebhookProcess, type WebhookProcessOptions } from "../harness/webhook_process.ts";
import { type Reception, WebhookReceiver } from "../harness/webhook_receiver.ts";
import { bySize, onlyFull, SOAK_SEED, SOAK_SIZE } from "./soak_options.ts";

const STORES = [
  { what: "a process on a file", tools: [], open: WebhookProcess.open },
  { what: "three machines on one database", tools: ["postgres"] as readonly Tool[], open: WebhookFleet.open },
];
const EVENTS = bySize({ short: { events: 150, kills: 3 }, full: { events: 10_000, kills: 50 } });
const EXECUTIONS = bySize({ short: { executions: 60, kills: 3 }, full: { executions: 1_000, kills: 20 } });

for (const { what, tools, open } of STORES) {
  Deno.test({
    ...needs(
      tools,
      `${what}, kill -9 at every step of an attempt: no event is lost or doubled (seed ${SOAK_SEED})`,
    ),
    async fn() {
      const report = await killWhileDelivering({ ...EVENTS, seed: SOAK_SEED, open });
      assertEquals(report.problems, []);
      checkKills(report.killsAt, ATTEMPT_POINTS, EVENTS.kills);
      if (SOAK_SIZE === "full") assert(report.interruptedAttempts > 0, "an attempt broke off");
    },
  });

  const isOfFile = tools.length === 0;
  const test = needs(tools, `${what}, kill -9 in the work on executions: each ends once (seed ${SOAK_SEED})`);
  Deno.test({
    ...isOfFile ? test : onlyFull(test),
    async fn() {
      const report = await killWhileExecuting({ ...EXECUTIONS, seed: SOAK_SEED, open });
      assertEquals(report.problems, []);
      checkKills(report.killsAt, EXECUTION_POINTS, EXECUTIONS.kills);
      if (SOAK_SIZE === "full") assert(report.repeatedSteps > 0, "a step was sent again");
    },
  });
}

/** A full run comes to each place. */
function checkKills(
  killsAt: Readonly<Record<string, number>>,
  points: readonly KillPoint[],
  kills: number,
): void {
  assertEquals(Object.values(killsAt).reduce((sum, count) => sum + count, 0), kills);
  if (SOAK_SIZE === "short") return;
  for (const point of points) assert((killsAt[point] ?? 0) > 0, `it died at "${point}"`);
}

/** The processes to kill: one on a file, or several on a database. */
type OpenKilled = (
  options: WebhookProcessOptions,
) => Promise<KilledProcesses & WebhookCalls & AsyncDisposable>;

interface KillOptions {
  readonly kills: number;
  readonly seed: number;
  readonly open: OpenKilled;
}

/** Observations of events while processes were killed. */
interface EventKillReport {
  readonly killsAt: KillReport["killsAt"];
  readonly problems: readonly string[];
  /** Attempts whose process died before their result was written. */
  readonly interruptedAttempts: number;
}

const DELIVERED_MS = 300_000;
const MAX_PROBLEMS = 20;
/** Claims of a dead process still count for its endpoint, where others work on. */
const ENDPOINTS = 8;
const TIMEOUT_MS = 2_000;

/**
 * Posts that many events to Weir, which delivers them to a counting receiver and is killed again and again, and looks
 * whether each arrived, under one UUID with one body, and repeatedly only where an attempt failed or broke off. Calls
 * that are refused meanwhile are reported once for each key and window.
 */
async function killWhileDelivering(
  options: KillOptions & { readonly events: number },
): Promise<EventKillReport> {
  const { kills, seed, open } = options;
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
  const { works: events, ...killed } = await runKillRounds(weir, {
    kills,
    seed,
    works: options.events,
    points: ATTEMPT_POINTS,
    work: postOne,
  });
  const limitProblems = await limited.problems();
  await until("everything to be delivered", () => weir.isDelivered(), {
    deadlineMs: DELIVERED_MS,
    intervalMs: 100,
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

/** Starts all the processes at the same time. */
async function startAll(weir: KilledProcesses): Promise<void> {
  await Promise.all(weir.members.map((_, n) => weir.startMember(n)));
}

/** Observations of executions while processes were killed. */
interface ExecutionKillReport {
  readonly killsAt: KillReport["killsAt"];
  readonly problems: readonly string[];
  readonly repeatedSteps: number;
}

const SECRET = "It's a Secret to Everybody";
const STEPS = ["one", "two", "three"];
const CARRIED_OUT_MS = 300_000;

/**
 * Starts that many executions of three steps in a Weir that is killed again and again, half of them by signed calls,
 * and looks whether each ends once and well, and whether a step was sent again only by another process and under the same key.
 */
async function killWhileExecuting(
  options: KillOptions & { readonly executions: number },
): Promise<ExecutionKillReport> {
  const { kills, seed, open } = options;
  await using receiver = await WebhookReceiver.start();
  receiver.answer = ({ body }) => JSON.stringify({ n: JSON.parse(body).n });
  await using weir = await open({
    env: { LOG_LEVEL: "warning" },
    workflows: { "three-steps.yaml": workflowText(receiver.url) },
  });
  await startAll(weir);
  const { key: token } = await weir.made("/triggers", { name: "three-steps", workflow: "three-steps" });

  const ids: string[] = [];
  const verify = { scheme: "github", secret: SECRET };
  await weir.made("/triggers", { name: "signed", workflow: "three-steps", verify });
  const call = (n: number) => {
    const id = `execution-${n}`;
    if (n % 2 === 0) return weir.trigger("three-steps", token, { n }, id);
    const text = JSON.stringify({ n });
    return weir.signedTrigger("signed", PROVIDER_HEADERS.github({ secret: SECRET, body: text, id }), text);
  };
  const startOne = async (n: number) => {
    const { status, body } = await call(n);
    if (status !== 202) throw new Error(`Cannot start execution ${n}: ${status} ${JSON.stringify(body)}`);
    ids[n] = body.executionId;
  };
  const { works: executions, ...killed } = await runKillRounds(weir, {
    kills,
    seed,
    works: options.executions,
    points: EXECUTION_POINTS,
    work: startOne,
  });
  await until("every execution to end", () => weir.isCarriedOut(), {
    deadlineMs: CARRIED_OUT_MS,
    intervalMs: 100,
  });
  const records = await weir.all("/executions");
  const events = await weir.all("/events?event=workflow.execution.completed");

  const problems = [...killed.problems];
  if (new Set(ids).size !== executions) problems.push(`${new Set(ids).size} executions were started`);
  if (records.length !== executions) problems.push(`there are ${records.length} executions`);
  if (events.length !== executions) problems.push(`there are ${events.length} events of their ends`);
  for (const record of records) problems.push(...executionProblems(record, receiver));
  for (const same of receiver.repeated) problems.push(...repetitionProblems(same));
  const wanted = executions * STEPS.length;
  if (receiver.byId.size !== wanted) {
    problems.push(`${receiver.byId.size} steps were sent in place of ${wanted}`);
  }
  return { ...killed, repeatedSteps: receiver.repeated.length, problems: problems.slice(0, MAX_PROBLEMS) };
}

function workflowText(url: string): string {
  const step = (name: string, n: string) =>
    `  - name: ${name}
    request:
      method: POST
      url: ${url}/${name}
      headers: { x-generation: "{{ env.GENERATION }}" }
      body: { n: "${n}" }
`;
  const [one = "", two = "", three = ""] = STEPS;
  return `workflow: three-steps
steps:
${step(one, "{{ input.n }}")}${step(two, "{{ steps.one.body.n }}")}${step(three, "{{ steps.two.body.n }}")}`;
}

function executionProblems(
  { id, status, steps }: AnswerBody,
  { byId }: Pick<WebhookReceiver, "byId">,
): string[] {
  const problems: string[] = [];
  const done = steps.map((step) => `${step.name} ${step.status}`).join(", ");
  const wanted = STEPS.map((name) => `${name} succeeded`).join(", ");
  if (status !== "succeeded" || done !== wanted) {
    problems.push(`execution ${id}: it is ${status} after ${done}`);
  }
  const sent = STEPS.map((name) => byId.get(`${id}:${name}`) ?? []);
  const bodies = sent.flat().map(({ body }) => body);
  if (new Set(bodies).size !== 1) problems.push(`execution ${id}: its steps had different values`);
  // A step begins when the previous one it is committed, which is then never sent again.
  const isInOrder = sent.slice(1).every((later, index) =>
    Math.max(...(sent[index] ?? []).map(({ at }) => at)) <= Math.min(...later.map(({ at }) => at))
  );
  if (!isInOrder) problems.push(`execution ${id}: a step was sent again after the next one`);
  return problems;
}

/** One process sends a step once: a second time is another process's. */
function repetitionProblems(same: readonly Reception[]): string[] {
  const by = same.map(({ headers }) => String(headers["x-generation"]));
  return new Set(by).size === by.length
    ? []
    : [`step ${same[0]?.id}: sent by the processes ${by.join(", ")}`];
}

const RULES = `domain: killed
descriptors:
- key: user
  events: [over_limit]
  rate_limit: { unit: second, unit_multiplier: 5, requests_per_unit: 0 }
`;
/** Keys that are refused. */
const KEYS = 10;

/** An event as it came, and under which delivery. */
interface LimitEvent {
  readonly delivery: string;
  readonly kind: string;
  readonly episode: string;
  readonly key: string;
  readonly freeAt: string | undefined;
  readonly refusedHits: number | undefined;
}

/** Keys whose every call is refused, in a Weir whose processes are killed, and what is reported of them. */
class LimitedKeys implements AsyncDisposable {
  readonly #receiver: WebhookReceiver;
  readonly #folder: string;
  /** Calls by key. */
  readonly #calls = new Map<string, number>();

  private constructor(receiver: WebhookReceiver, folder: string) {
    this.#receiver = receiver;
    this.#folder = folder;
  }

  /** Starts what receives the events, and writes the rules. */
  static async open(): Promise<LimitedKeys> {
    const folder = await Deno.makeTempDir({ prefix: "weir_limits_" });
    await Deno.mkdir(join(folder, "root", "config"), { recursive: true });
    await Deno.writeTextFile(join(folder, "root", "config", "killed.yaml"), RULES);
    return new LimitedKeys(await WebhookReceiver.start(), folder);
  }

  /** The settings of a process that has the rules. */
  get env(): Readonly<Record<string, string>> {
    return { RUNTIME_ROOT: join(this.#folder, "root"), RATE_LIMIT_EVENTS_MAX_PER_SECOND: "1000" };
  }

  /** Lets the events go to the receiver. */
  async subscribe(weir: Pick<WebhookProcess, "endpoint">): Promise<void> {
    await weir.endpoint(this.#receiver, "/limits", { events: ["ratelimit.*"] });
  }

  /** Makes a call that is refused, unless the process is gone. */
  async ask({ base }: Pick<WebhookProcess, "base">, n: number): Promise<void> {
    const key = `user${n % KEYS}`;
    this.#calls.set(key, (this.#calls.get(key) ?? 0) + 1);
    const body = JSON.stringify({
      domain: "killed",
      descriptors: [{ entries: [{ key: "user", value: key }] }],
    });
    const response = await fetch(`${base}/json`, { method: "POST", body }).catch(() => undefined);
    await response?.body?.cancel().catch(() => {});
  }

  /** Waits until each episode that was reported has ended; answers what is wrong. */
  async problems(): Promise<string[]> {
    const of = (kind: string) =>
      new Set(this.#events.filter((one) => one.kind === kind).map(({ episode }) => episode));
    const begun = () => of("ratelimit.over_limit");
    await until(
      "every episode to end",
      () => begun().size > 0 && begun().size === of("ratelimit.over_limit.ended").size,
      { deadlineMs: 120_000, intervalMs: 100 },
    );
    const problems = [...this.#receiver.problems];
    const once = (what: string, events: readonly LimitEvent[], identity: (event: LimitEvent) => string) => {
      for (const [name, same] of Map.groupBy(events, identity)) {
        const deliveries = new Set(same.map(({ delivery }) => delivery)).size;
        if (deliveries !== 1) problems.push(`${what} ${name} was reported ${deliveries} times`);
      }
    };
    const begins = this.#events.filter(({ kind }) => kind === "ratelimit.over_limit");
    const ends = this.#events.filter(({ kind }) => kind === "ratelimit.over_limit.ended");
    once("the window", begins, ({ key, freeAt }) => `${key} ${freeAt}`);
    once("the end", ends, ({ episode }) => episode);
    const unique = [...new Map(ends.map((event) => [event.episode, event])).values()];
    for (const [key, own] of Map.groupBy(unique, (event) => event.key)) {
      const refused = own.reduce((sum, { refusedHits = 0 }) => sum + refusedHits, 0);
      const calls = this.#calls.get(key) ?? 0;
      if (refused > calls) problems.push(`${key} was refused ${refused} times in ${calls} calls`);
      if (own.some(({ refusedHits = 0 }) => refusedHits < 1)) problems.push(`${key} was refused no time`);
    }
    return problems;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#receiver[Symbol.asyncDispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }

  get #events(): readonly LimitEvent[] {
    return this.#receiver.receptions.map(({ id, body }) => {
      const { event, data } = JSON.parse(body);
      const { episode, entries, freeAt, refusedHits } = data;
      return { delivery: id, kind: event, episode, key: entries?.[0]?.value, freeAt, refusedHits };
    });
  }
}
