import { assert, assertEquals } from "#assert";
import { join } from "node:path";
import { acceptEvent, acceptExecution } from "../../../src/webhooks/store/operations/accept.ts";
import { voidClaims } from "../../../src/webhooks/store/operations/claims.ts";
import { listDeliveries } from "../../../src/webhooks/store/operations/deliveries.ts";
import { listEndpoints } from "../../../src/webhooks/store/operations/endpoints.ts";
import { commitExecution, listExecutions } from "../../../src/webhooks/store/operations/executions.ts";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import { SCHEMA_VERSION } from "../../../src/webhooks/store/schema.ts";
import { SqliteConnection } from "../../../src/webhooks/store/sqlite/connection.ts";
import type { WebhookStore } from "../../../src/webhooks/store/store.ts";
import { verify } from "../../../src/webhooks/receiver.ts";
import type { StoreSettings } from "../../../src/webhooks/service/message.ts";
import {
  ACKNOWLEDGED,
  allPages,
  claim,
  claimRuns,
  event,
  execution,
  finish,
} from "../../contract/webhook_store_bed.ts";
import { OLD_STATEMENTS, OLD_STORES, type OldRelease, oldStores } from "./old_instance.ts";
import { connectTo, NO_LIMITS } from "../../harness/postgres_fixture.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { administer, openService } from "../../harness/store_service.ts";
import { until } from "../../harness/until.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { FIXTURE_LISTS } from "./write_store_fixture.ts";

const RECORDS = recordsOf("0.1.0");
/** Of the schema of 0.1.0. */
const OLD_VERSION = 2;
/** When everything that the old instance left is due. */
const LATER = RECORDS.known.now + 40 * 86_400_000;
const HOUR = 3_600_000;
/** Keys under which the old instance accepted events, and to how many endpoints they went. */
const EVENTS = {
  "event-before-1": 1,
  "event-before-2": 1,
  "event-after-1": 1,
  "event-after-2": 1,
  "event-after-3": 1,
};
const EXECUTIONS = ["execution-before", "execution-after"];
const { id: TRIGGER } = RECORDS.triggers.find(({ name }: { name: string }) => name === "succeeds");

oldStores("0.1.0").test(
  "an instance of 0.1.0 goes on with a store that a new one has migrated, and nothing is lost",
  async (place) => {
    const { before, after } = OLD_STATEMENTS[place.kind];
    await using old = await place.instance();
    await old.run(before);
    await using store = await place.open();
    for (const operation of after) {
      await old.run([operation]);
      // The new one sees what the old one writes.
      await store.metrics(LATER);
    }
    await isComplete(store, place.address, Object.keys(EVENTS), EXECUTIONS);
  },
);

oldStores("0.1.0").test(
  "a store of 0.1.0 is backed up while it is used; the copy is migrated, and the way back is open",
  async (place) => {
    const { before, after } = OLD_STATEMENTS[place.kind];
    await using old = await place.instance();
    await old.run(before);
    const [copy, kept] = [await place.backup(), await place.backup()];
    {
      await using store = await copy.open();
      await isComplete(store, copy.address, Object.keys(EVENTS).slice(0, 2), EXECUTIONS.slice(0, 1));
    }
    // The older release opens the other copy, and goes on where it was.
    await using back = await kept.instance();
    await back.run(after);
    const { problems, schemaVersion } = await checkStore(kept.address);
    assertEquals([problems, schemaVersion], [[], OLD_VERSION]);
  },
);

/** On PostgreSQL the clock of the database counts, which is past the deadlines of executions that have begun. */
const ENDS = { sqlite: ["hangs succeeded", "waits succeeded"], postgres: ["hangs failed", "waits failed"] };

for (const release of ["0.1.0", "0.2.0"] as const) {
  oldStores(release).test(
    `a store of ${release} is read, and its work goes on`,
    async ({ kind, address }) => {
      const [hangs = "", waits = ""] = ENDS[kind];
      const store = kind === "sqlite"
        ? { kind: "file", path: address } as const
        : { kind, address, poolSize: 4, ...NO_LIMITS };
      assertEquals(
        await endedWith(store, recordsOf(release)),
        ["fails failed", hangs, "succeeds succeeded", "succeeds succeeded", "waits cancelled", waits],
      );
    },
  );

  oldStores(release).test(`a store of ${release} gets the schema of a new one`, async (place) => {
    const schemas = [];
    for (const one of [place, await place.empty()]) {
      await (await one.open()).close();
      schemas.push(one.kind === "sqlite" ? sqliteSchema(one.address) : await postgresSchema(one.address));
    }
    assert(JSON.stringify(schemas[0]).includes("delivery_next"));
    assertEquals(schemas[0], schemas[1]);
  });
}

/** The lists of the API of an older release. */
function recordsOf(release: OldRelease) {
  return JSON.parse(Deno.readTextFileSync(join(OLD_STORES[release], "records.json")));
}

function sqliteSchema(path: string): unknown {
  const connection = new SqliteConnection(path);
  const names = connection.all("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
  const tables = names.map(({ name }) =>
    ["table_list", "table_xinfo", "foreign_key_list"].map((kind) => connection.all(`PRAGMA ${kind}(${name})`))
  );
  const indexes = connection.all("SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name");
  const generated = connection.all("SELECT sql FROM sqlite_schema WHERE name IN ('delivery', 'execution')");
  const texts = [...indexes, ...generated].map(({ name, sql }) => [name, String(sql).replace(/\s+/g, "")]);
  connection.close();
  return [names, tables, texts];
}

async function postgresSchema(url: string): Promise<unknown> {
  await using connection = await connectTo(url);
  return (await connection.query(CATALOG, [], "rows")).rows;
}

const CATALOG = `
  SELECT 'column', attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull, attidentity::text,
    attgenerated::text, pg_get_expr(adbin, adrelid)
  FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE attnum > 0 AND NOT attisdropped AND attrelid IN (SELECT tablename::regclass FROM pg_tables WHERE schemaname = 'public')
  UNION ALL SELECT 'index', tablename, indexname, indexdef, NULL, NULL, NULL, NULL FROM pg_indexes WHERE schemaname = 'public'
  UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL, NULL, NULL
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2, 3`;

/** Does the work that is left, and checks that it is all there. */
async function isComplete(
  store: WebhookStore,
  address: string,
  events: readonly string[],
  executions: readonly string[],
): Promise<void> {
  const { problems, schemaVersion } = await checkStore(address);
  assertEquals([problems, schemaVersion], [[], SCHEMA_VERSION]);
  const now = RECORDS.known.now + 120_000;
  for (const key of events) {
    const idempotency = { scope: "admin", key, bodyHash: "" };
    const accepted = await store.write(acceptEvent, event(), { now, idempotency });
    assert(accepted.kind === "replayed", key);
    assertEquals([key, accepted.row.deliveries], [key, EVENTS[key as keyof typeof EVENTS]]);
  }
  for (const key of executions) {
    const idempotency = { scope: `trigger:${TRIGGER}`, key, bodyHash: "" };
    const accepted = await store.write(acceptExecution, execution({ versionId: "none" }), {
      now,
      idempotency,
    });
    assertEquals([key, accepted.kind], [key, "replayed"]);
  }
  await store.write(voidClaims, { now: LATER, which: "expired" });
  await deliverAll(store);
  await executeAll(store);
  await deliverAll(store);
  assertEquals((await checkStore(address)).problems, []);
  await checkEnds(store);
}

async function deliverAll(store: WebhookStore): Promise<void> {
  const { items: endpoints } = await store.read(listEndpoints, { limit: 200 });
  for (;;) {
    const claimed = await claim(store, endpoints, { now: LATER });
    if (claimed.length === 0) return;
    for (const one of claimed) assert(await finish(store, one, ACKNOWLEDGED));
  }
}

async function executeAll(store: WebhookStore): Promise<void> {
  for (;;) {
    const claimed = await claimRuns(store, { now: LATER });
    if (claimed.length === 0) return;
    for (const { execution: { id }, claimId } of claimed) {
      const change = { status: "succeeded", stepAttempts: 0, finishedAt: LATER, output: "{}" } as const;
      const ended = { executionId: id, claimId, now: LATER, change, keepClaim: false };
      const completed = event({ kind: "workflow.execution.completed" });
      assert(await store.write(commitExecution, { ...ended, event: completed }));
    }
  }
}

/** Nothing is open but what is paused, and everything of before is there. */
async function checkEnds(store: WebhookStore): Promise<void> {
  const deliveries = await allPages((options) => store.read(listDeliveries, options));
  const open = deliveries.filter(({ state }) => state !== "acknowledged" && state !== "failed");
  assertEquals(open.map(({ event }) => event), ["paused.order"]);
  const lost = RECORDS.deliveries.filter(({ id }: { id: string }) =>
    !deliveries.some((one) => one.id === id)
  );
  assertEquals(lost, []);
  const failed = deliveries.filter(({ state }) => state === "failed").map(({ event }) => event);
  const before = RECORDS.deliveries.filter(({ state }: { state: string }) => state === "failed");
  assertEquals(failed.toSorted(), before.map(({ event }: { event: string }) => event).toSorted());
  const executions = await allPages((options) => store.read(listExecutions, options));
  assertEquals(executions.filter(({ status }) => status === "queued" || status === "running"), []);
  const ids = new Set(executions.map(({ id }) => id));
  assertEquals(RECORDS.executions.filter(({ id }: { id: string }) => !ids.has(id)), []);
}

/** Compares the records of a store and lets a service go on with them; returns how the executions ended. */
async function endedWith(
  store: StoreSettings,
  records: ReturnType<typeof recordsOf>,
): Promise<readonly string[]> {
  const clock = FakeClock.ofMachine({ aheadMs: records.known.now + 60_000 - Date.now() });
  await using receiver = await WebhookReceiver.start();
  await using service = await openService(store, { clock });
  const listed = async (name: string): Promise<readonly Item[]> =>
    (await administer(service, "GET", `/${name}`)).items;
  for (const name of FIXTURE_LISTS) {
    const items = await listed(name);
    assertEquals([items.length, known(items, records[name])], [records[name].length, records[name]]);
  }
  const edited = await administer(service, "PATCH", `/endpoints/${records.known.endpoint}`, {
    url: receiver.url,
    rotationOverlapMs: HOUR,
    rateLimit: { unit: "hour", requestsPerUnit: 100 },
    format: "cloudevents",
  });
  assertEquals([edited.url, edited["rotationOverlapMs"]], [receiver.url, HOUR]);
  service.start();
  const [received] = await until("the delivery", () => receiver.receptions.length > 0 && receiver.receptions);
  assertEquals(JSON.parse(received?.body ?? ""), { event: "down.order", data: { order: "down.order" } });
  const headers = received?.headers ?? {};
  assertEquals(
    Object.keys(records.known.headers).map((name) => headers[name]),
    Object.values(records.known.headers),
  );
  const now = Number(headers["x-svc-timestamp"]) * 1_000;
  const signed = { body: received?.body ?? "", headers, secrets: records.known.secrets, now };
  assertEquals((await verify(signed)).ok, true);
  return await until("the ends of all executions", async () => {
    const states = (await listed("executions")).map(({ workflow, status }) => `${workflow} ${status}`);
    return !/queued|running/.test(states.join()) && states.toSorted();
  });
}

type Item = Readonly<Record<string, unknown>>;

/** The part of a value that the older release returned; a later release may add fields. */
function known(value: unknown, old: unknown): unknown {
  if (Array.isArray(old)) return old.map((item, index) => known((value as readonly unknown[])[index], item));
  if (typeof old !== "object" || old === null) return value;
  return Object.fromEntries(
    Object.entries(old).map(([name, item]) => [name, known((value as Item)[name], item)]),
  );
}
