import { PostgresServer } from "./postgres_server.ts";
import { until } from "./until.ts";
import { type WebhookAnswered, webhookCall } from "./webhook_client.ts";
import { endpointsByKind, type WebhookFleet } from "./webhook_fleet.ts";
import { deliveriesProblems } from "./delivery_problems.ts";
import { ADMIN_TOKEN } from "./webhook_calls.ts";
import { type WebhookProcess } from "./webhook_process.ts";
import { WebhookReceiver } from "./webhook_receiver.ts";

/** An outage of a database. */
interface Outage {
  readonly away: () => Promise<void>;
  readonly back: () => Promise<void>;
}

/** Observations of a fleet during outages of its database. */
export interface OutageReport {
  /** From the return of the database until all had taken something again, for each outage. */
  readonly recoveryMs: readonly number[];
  readonly decisions: { readonly count: number; readonly refused: number; readonly slowestMs: number };
  /** Growth of the memory of each member from before the first outage to the end, in megabytes. */
  readonly growthMb: readonly number[];
  readonly problems: readonly string[];
}

const WORKFLOW = "order-intake";
const LANES = 6;
const ENDPOINTS = 4;
/** Decisions that each has to make while the database is unavailable, so that their times say something. */
const DECISIONS = 10;
const CALLS_MS = 120_000;
const RECOVERY_MS = 120_000;
const DONE_MS = 300_000;

/** The workflow of the executions. */
export function outageWorkflows(receiver: WebhookReceiver): Readonly<Record<string, string>> {
  const request = `{ method: POST, url: "${receiver.url}/step", body: { n: "{{ input.n }}" } }`;
  return { "order-intake.yaml": `workflow: ${WORKFLOW}\nsteps:\n  - name: only\n    request: ${request}\n` };
}

/**
 * Posts events and starts executions at all members while their database goes away and comes back, again and again;
 * `works` pieces of work are taken before each outage.
 */
export async function runOutages(
  fleet: WebhookFleet,
  { receiver, outages, works }: {
    readonly receiver: WebhookReceiver;
    readonly outages: readonly Outage[];
    readonly works: number;
  },
): Promise<OutageReport> {
  await using load = await OutageLoad.start(fleet, receiver);
  const problems: string[] = [];
  const recoveryMs: number[] = [];
  await until("work before the first outage", () => load.taken >= works, { deadlineMs: CALLS_MS });
  const before = load.residentMb();
  for (const [index, { away, back }] of outages.entries()) {
    const taken = load.taken;
    await until("work between outages", () => load.taken >= taken + works, { deadlineMs: CALLS_MS });
    await away();
    await load.decided(DECISIONS);
    for (const member of fleet.members) problems.push(...await load.refusalProblems(member, index));
    await back();
    const begin = performance.now();
    await Promise.all(fleet.members.map((member) => load.takenAgain(member)));
    recoveryMs.push(performance.now() - begin);
  }
  const { decisions, events, executionIds } = await load.end();
  await until("everything to be done", async () => {
    return await fleet.isCarriedOut() && await fleet.isDelivered();
  }, { deadlineMs: DONE_MS });
  const after = load.residentMb();

  problems.push(...receiver.problems.filter((text) => !text.includes("time stamp")));
  const isOurs = ({ event }: { readonly event: string }) => event.startsWith("lane.");
  const deliveries = (await fleet.all("/deliveries")).filter(isOurs);
  problems.push(...deliveriesProblems(deliveries, { receiver, events }));
  const executions = await fleet.all("/executions");
  const ends = new Map(executions.map(({ id, status }) => [id, status]));
  if (executions.length !== executionIds.length) problems.push(`there are ${executions.length} executions`);
  for (const id of executionIds) {
    if (ends.get(id) !== "succeeded") problems.push(`execution ${id}: it is ${ends.get(id)}`);
  }
  return {
    recoveryMs,
    decisions,
    growthMb: after.map((mb, n) => mb - (before[n] ?? 0)),
    problems,
  };
}

/** A server and one that follows it: what is committed has been carried out by both. */
export interface StandbyPair extends AsyncDisposable {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** Of a database, with both servers; the one that takes writes is to be used. */
  readonly address: string;
}

/** Starts both. */
export async function standbyPair(): Promise<StandbyPair> {
  await using stack = new AsyncDisposableStack();
  const settings = { fsync: "on", synchronous_commit: "remote_apply" };
  const primary = stack.use(
    await PostgresServer.start({ settings: { ...settings, synchronous_standby_names: "*" } }),
  );
  const standby = stack.use(await PostgresServer.start({ settings, standbyOf: primary }));
  const url = new URL(primary.url(await primary.createDatabase(), "target_session_attrs=read-write"));
  const hosts = `127.0.0.1:${standby.port},127.0.0.1:${primary.port}`;
  const owned = stack.move();
  return {
    primary,
    standby,
    address: url.href.replace(url.host, hosts),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Work and decisions that are asked for all the time. */
class OutageLoad implements AsyncDisposable {
  /** Number of pieces of work that were answered with 202. */
  taken = 0;
  readonly #fleet: WebhookFleet;
  readonly #kinds: readonly string[];
  readonly #token: string;
  readonly #decisions = { count: 0, refused: 0, slowestMs: 0 };
  readonly #decided = new Map<WebhookProcess, number>();
  readonly #executionIds: string[] = [];
  #events = 0;
  #executions = 0;
  #probes = 0;
  #isOver = false;
  #working: Promise<unknown> = Promise.resolve();

  private constructor(fleet: WebhookFleet, kinds: readonly string[], token: string) {
    this.#fleet = fleet;
    this.#kinds = kinds;
    this.#token = token;
  }

  static async start(fleet: WebhookFleet, receiver: WebhookReceiver): Promise<OutageLoad> {
    const kinds = await endpointsByKind(fleet, receiver, ENDPOINTS, { concurrency: 16 });
    const { key } = await fleet.made("/triggers", { name: "orders", workflow: WORKFLOW });
    const load = new OutageLoad(fleet, kinds, key);
    const lanes = Array.from({ length: LANES }, (_, n) => load.#work(n % 2 === 0));
    load.#working = Promise.all([...lanes, ...fleet.members.map((member) => load.#decide(member))]);
    // Where the test fails before the end, its own error is the one to tell of.
    load.#working.catch(() => {});
    return load;
  }

  async refusalProblems({ base }: WebhookProcess, outage: number): Promise<string[]> {
    const calls: readonly (readonly [string, string, unknown])[] = [
      ["/events", ADMIN_TOKEN, { event: "other.kind", data: {} }],
      ["/workflows/triggers/orders", this.#token, { n: 0 }],
    ];
    const asked = calls.map(async ([path, token, body]) => {
      const begin = performance.now();
      const key = `refused-${this.#probes++}`;
      const { status, headers } = await webhookCall(`${base}/api/v1${path}`, { token, key, body });
      const wait = Number(headers.get("retry-after"));
      if (status === 503 && wait > 0) return [];
      const shown = `${status} after ${Math.round(performance.now() - begin)} ms`;
      return [`outage ${outage + 1}: ${base} answered ${path} with ${shown}, come back in ${wait} s`];
    });
    return (await Promise.all(asked)).flat();
  }

  /** Settles when each member has made so many more decisions. */
  async decided(more: number): Promise<void> {
    const before = new Map(this.#decided);
    await Promise.all(this.#fleet.members.map((member) => {
      const goal = (before.get(member) ?? 0) + more;
      return until("more decisions", () => (this.#decided.get(member) ?? 0) >= goal, {
        deadlineMs: CALLS_MS,
      });
    }));
  }

  /** Settles when a member takes an event again. */
  async takenAgain({ base }: WebhookProcess): Promise<void> {
    const n = this.#events++;
    await until("an event to be taken again", async () => {
      const { status } = await this.#post(`${base}/api/v1/events`, n);
      return status === 202;
    }, { deadlineMs: RECOVERY_MS });
  }

  residentMb(): readonly number[] {
    return this.#fleet.members.map((member) => member.residentMb());
  }

  /** Asks for nothing more; answers what was asked for, all of which was taken in the end. */
  async end() {
    this.#isOver = true;
    await this.#working;
    return { decisions: this.#decisions, events: this.#events, executionIds: this.#executionIds };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#working.catch(() => {});
  }

  async #work(isEvent: boolean): Promise<void> {
    while (!this.#isOver) {
      const n = isEvent ? this.#events++ : this.#executions++;
      const { status, body } = isEvent
        ? await this.#fleet.event({ n }, `event-${n}`, this.#kind(n))
        : await this.#fleet.trigger("orders", this.#token, { n }, `execution-${n}`);
      if (status !== 202) throw new Error(`Cannot go on: ${status} ${JSON.stringify(body)}`);
      if (!isEvent) this.#executionIds.push(body.executionId);
      this.taken++;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async #post(url: string, n: number): Promise<WebhookAnswered> {
    const body = { event: this.#kind(n), data: { n } };
    return await webhookCall(url, { token: ADMIN_TOKEN, key: `event-${n}`, body });
  }

  #kind(n: number): string {
    return this.#kinds[n % this.#kinds.length] ?? "";
  }

  /** One decision after the other. */
  async #decide(member: WebhookProcess): Promise<void> {
    while (!this.#isOver) {
      const begin = performance.now();
      const status = await member.decide();
      this.#decisions.count++;
      this.#decided.set(member, (this.#decided.get(member) ?? 0) + 1);
      this.#decisions.slowestMs = Math.max(this.#decisions.slowestMs, performance.now() - begin);
      if (status !== 200) this.#decisions.refused++;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
