/**
 * Writes a store with records of every kind and state, as a killed process leaves it: a SQLite file, the same store as a
 * PostgreSQL dump, and the lists of its API. Run it for each release; `store_fixtures_test.ts` opens what it wrote:
 * `deno run -A tests/integration/webhooks/write_store_fixture.ts tests/testdata/store-<version>`.
 */
import { ADMINISTRATOR } from "../../harness/administrators.ts";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { backupStore } from "../../../src/webhooks/store/maintenance/backup.ts";
import { moveStore } from "../../../src/webhooks/store/maintenance/move.ts";
import type { WebhookAnswer } from "../../../src/webhooks/api/calls.ts";
import { openWebhookService } from "../../../src/webhooks/service/opening.ts";
import type { WebhookService } from "../../../src/webhooks/service/service.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { output, postgresProgram } from "../../harness/postgres_folder.ts";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { SERVICE_OPTIONS } from "../../harness/store_service.ts";
import { until } from "../../harness/until.ts";

/** The lists of the API that are in `records.json`. */
export const FIXTURE_LISTS = ["endpoints", "triggers", "event-keys", "deliveries", "executions", "audit"];

/** Fields that depend on the time of the call. */
const OF_THE_CLOCK = ["why", "signs"];
const START = Date.UTC(2026, 0, 1, 12);
const HOUR_MS = 3_600_000;

const limitStep = (workflow: string, domain: string, onOver: string) =>
  `workflow: ${workflow}\ntimeout: 30d\nsteps:\n` +
  `  - name: begin\n    set: { order: "{{ input.order }}" }\n` +
  `  - name: ask\n    limit: { domain: ${domain}, descriptors: [{ order: "{{ input.order }}" }], onOver: ${onOver} }\n`;

const WORKFLOWS = {
  "waits.yaml": limitStep("waits", "over", "wait"),
  "fails.yaml": limitStep("fails", "over", "fail"),
  "succeeds.yaml": limitStep("succeeds", "free", "fail"),
  "hangs.yaml": limitStep("hangs", "silent", "fail"),
};

/** Decisions by domain and responses by path; every other call hangs until the process ends. */
const DECISIONS: Readonly<Record<string, "OK" | "OVER_LIMIT">> = { over: "OVER_LIMIT", free: "OK" };
const STATUSES: Readonly<Record<string, number>> = { "/well": 200, "/down": 500, "/exhausted": 404 };
const never = <T>() => new Promise<T>(() => {});

async function openFixture(folder: string, clock: FakeClock) {
  const workflowDirectory = join(folder, "workflows");
  await Deno.mkdir(workflowDirectory);
  for (const [name, text] of Object.entries(WORKFLOWS)) {
    await Deno.writeTextFile(join(workflowDirectory, name), text);
  }
  const silent = () => {};
  return await openWebhookService({
    options: {
      ...SERVICE_OPTIONS,
      maxRunning: 1,
      store: { kind: "file", path: join(folder, "weir.db") },
      workflowDirectory,
    },
    limit: (domain) => {
      const code = DECISIONS[domain];
      return code === undefined ? never() : Promise.resolve({ code, resetMs: 60_000 });
    },
    clock,
    logger: { debug: silent, info: silent, warning: silent, error: silent },
    parts: {
      sender: {
        send: ({ url }) => {
          const status = STATUSES[new URL(url).pathname];
          if (status === undefined) return never();
          return Promise.resolve(status === 200 ? { status } : { status, errorKind: "status" });
        },
      },
    },
  });
}

/** Calls a service that runs on a fake clock. */
class FixtureCalls {
  readonly #service: WebhookService;
  readonly #clock: FakeClock;

  constructor(service: WebhookService, clock: FakeClock) {
    this.#service = service;
    this.#clock = clock;
  }

  async administer(method: string, path: string, sent?: object) {
    const body = sent === undefined ? {} : { body: JSON.stringify(sent) };
    const call = { requestId: "r", administrator: ADMINISTRATOR, method, path, query: "", ...body };
    const answer = await this.#service.administer(call);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
    return answer.body === "" ? undefined : JSON.parse(answer.body);
  }

  endpoint(name: string, fields: object = {}) {
    const endpoint = { url: `http://127.0.0.1:9/${name}`, events: [`${name}.*`], ...fields };
    return this.administer("POST", "/endpoints", endpoint);
  }

  trigger(workflow: string, fields: object = {}) {
    return this.administer("POST", "/triggers", { name: workflow, workflow, ...fields });
  }

  async post(event: string, idempotencyKey?: string): Promise<string> {
    const body = JSON.stringify({ event, data: { order: event } });
    return idOf(await this.#service.acceptEvent({ requestId: "r", idempotencyKey, body }));
  }

  async run({ name, key }: { name: string; key: string }, idempotencyKey?: string): Promise<string> {
    const keyHash = createHash("sha256").update(key).digest("hex");
    const call = { requestId: "r", name, keyHash, idempotencyKey, body: '{"order":12345678901234567890}' };
    return idOf(await this.#service.acceptTrigger(call));
  }

  /** Advances the clock until a list holds these records, each as its event or workflow and its state. */
  async reach(list: "deliveries" | "executions", records: readonly string[]): Promise<void> {
    const expected = records.toSorted().join();
    await until(expected, async () => {
      this.#clock.advance(250);
      const { items } = await this.administer("GET", `/${list}`);
      const found = items.map((item: Record<string, string>) =>
        `${item["event"] ?? item["workflow"]} ${item["state"] ?? item["status"]}`
      );
      return found.toSorted().join() === expected;
    });
  }
}

function idOf({ status, body }: WebhookAnswer): string {
  if (status !== 202) throw new Error(`Cannot fill the store: ${status} ${body}`);
  const { id, executionId } = JSON.parse(body);
  return id ?? executionId;
}

/** Creates deliveries in each state; returns the facts that no list shows. */
async function fillDeliveries(calls: FixtureCalls, clock: FakeClock) {
  await calls.endpoint("exhausted");
  await calls.post("exhausted.order");
  await calls.reach("deliveries", ["exhausted.order retrying"]);
  clock.advance(25 * HOUR_MS);
  await calls.reach("deliveries", ["exhausted.order failed"]);
  const headers = { authorization: "Bearer the-token-of-the-receiver", "x-shop": "1" };
  const down = await calls.endpoint("down", { headers, standardWebhooks: true, description: "Orders" });
  const rotated = await calls.administer("POST", `/endpoints/${down.id}/rotate`);
  await calls.endpoint("well", { standardWebhooks: false, timeoutMs: 5_000, concurrency: 1 });
  await calls.endpoint("paused", { enabled: false });
  await calls.endpoint("hangs");
  const gone = await calls.endpoint("gone", { enabled: false });
  await calls.administer("POST", "/event-keys", { name: "shop", kinds: ["order.*"] });
  await calls.post("down.order", "event-1");
  for (const name of ["well", "paused", "gone", "hangs"]) await calls.post(`${name}.order`);
  const erased = await calls.post("paused.erased");
  await calls.administer("DELETE", `/events/${erased}/payload`);
  await calls.administer("DELETE", `/endpoints/${gone.id}`);
  await calls.reach("deliveries", [
    ...["exhausted.order failed", "down.order retrying", "well.order acknowledged"],
    ...["paused.order attempting", "hangs.order attempting", "gone.order failed", "paused.erased failed"],
  ]);
  return { endpoint: down.id, secrets: [down.secret, rotated.secret], headers };
}

/** Creates executions in each state; the last two are running and queued. */
async function fillExecutions(calls: FixtureCalls) {
  const limit = { domain: "free", descriptors: [{ order: "{{ input.order }}" }] };
  const waits = await calls.trigger("waits", { limit, requireIdempotencyKey: true });
  await calls.administer("POST", `/triggers/${waits.id}/rotate`);
  const cancelled = await calls.run(waits, "execution-1");
  await calls.reach("executions", ["waits running"]);
  await calls.administer("POST", `/executions/${cancelled}/cancel`);
  await calls.run(waits, "execution-2");
  const [fails, succeeds] = [await calls.trigger("fails"), await calls.trigger("succeeds")];
  await calls.run(fails);
  await calls.run(succeeds);
  const ended = ["waits cancelled", "waits running", "fails failed", "succeeds succeeded"];
  await calls.reach("executions", ended);
  await calls.run(await calls.trigger("hangs"));
  await calls.reach("executions", [...ended, "hangs running"]);
  await calls.run(succeeds);
  await calls.reach("executions", [...ended, "hangs running", "succeeds queued"]);
}

async function dumped(path: string): Promise<string> {
  await using server = await PostgresServer.start();
  const database = await server.createDatabase();
  await moveStore({ from: path, to: server.url(database), clock: systemClock, tell: () => {} });
  const place = ["-h", server.folder, "-p", String(server.port), "-U", "postgres", "-d", database];
  const dump = await output([
    postgresProgram("pg_dump"),
    "--no-owner",
    "--no-privileges",
    "--inserts",
    ...place,
  ]);
  // Some releases of pg_dump write psql commands.
  return dump.replaceAll(/^(?:\\|--).*\n?|^\n/gm, "");
}

if (import.meta.main) {
  const [target = ""] = Deno.args;
  const folder = await Deno.makeTempDir({ prefix: "weir_store_fixture_" });
  const clock = new FakeClock(START);
  const service = await openFixture(folder, clock);
  service.start();
  const calls = new FixtureCalls(service, clock);
  const known = await fillDeliveries(calls, clock);
  await fillExecutions(calls);
  const lists = await Promise.all(FIXTURE_LISTS.map(async (name) => {
    return [name, (await calls.administer("GET", `/${name}`)).items];
  }));
  await Deno.mkdir(target, { recursive: true });
  const copy = join(target, "weir.db");
  await backupStore(join(folder, "weir.db"), copy);
  await Deno.writeTextFile(join(target, "weir.sql"), await dumped(copy));
  const records = { known: { ...known, now: clock.now() }, ...Object.fromEntries(lists) };
  const text = JSON.stringify(records, (name, value) => OF_THE_CLOCK.includes(name) ? undefined : value, 1);
  await Deno.writeTextFile(join(target, "records.json"), `${text}\n`);
  await Promise.all([".lock", "-shm", "-wal"].map((ending) => Deno.remove(`${copy}${ending}`)));
  await Deno.remove(folder, { recursive: true });
  // Calls still hang; a clean stop would wait for them and change the claims.
  Deno.exit(0);
}
