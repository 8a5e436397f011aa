import { assert, assertEquals } from "@std/assert";
import { join } from "node:path";
import { acceptEvent, acceptExecution } from "../../../src/webhooks/store/accept.ts";
import { voidClaims } from "../../../src/webhooks/store/claims.ts";
import { listDeliveries } from "../../../src/webhooks/store/deliveries.ts";
import { listEndpoints } from "../../../src/webhooks/store/endpoints.ts";
import { commitExecution, listExecutions } from "../../../src/webhooks/store/executions.ts";
import { backupStore } from "../../../src/webhooks/store/maintenance/backup.ts";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import { SCHEMA_VERSION } from "../../../src/webhooks/store/schema.ts";
import type { WebhookStore } from "../../../src/webhooks/store/store.ts";
import {
  ACKNOWLEDGED,
  allPages,
  claim,
  claimRuns,
  event,
  execution,
  finish,
} from "../../contract/webhook_store_bed.ts";
import {
  OLD_STATEMENTS,
  OLD_STORE,
  type OldInstance,
  oldPostgresInstance,
  oldSqliteInstance,
} from "../../harness/old_instance.ts";
import { output, postgresProgram } from "../../harness/postgres_folder.ts";
import { openStoreAt, sharedPostgres } from "../../harness/postgres_fixture.ts";
import { StoreFolder } from "../../harness/sqlite_fixture.ts";
import { needs } from "../../harness/tools.ts";

const server = sharedPostgres();
const RECORDS = JSON.parse(Deno.readTextFileSync(join(OLD_STORE, "records.json")));
/** Of the schema of 0.1.0. */
const OLD_VERSION = 2;
/** When everything that the old instance left is due. */
const LATER = RECORDS.known.now + 40 * 86_400_000;
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

Deno.test("an instance of 0.1.0 goes on with a SQLite store that a new one has migrated, and nothing is lost", async () => {
  using folder = new StoreFolder();
  const path = await oldFile(folder, "weir.db");
  await using old = oldSqliteInstance(path);
  await restart(old, "sqlite", { address: path, open: () => folder.open({ path }) });
});

Deno.test({
  ...needs(
    ["postgres"],
    "an instance of 0.1.0 goes on with a PostgreSQL store that a new one has migrated, and nothing is lost",
  ),
  async fn() {
    const address = server().url(await oldDatabase());
    await using old = await oldPostgresInstance(address);
    await restart(old, "postgres", { address, open: () => openStoreAt(address) });
  },
});

Deno.test("a SQLite store of 0.1.0 is backed up while it is used; the copy is migrated, and the way back is open", async () => {
  using folder = new StoreFolder();
  const path = await oldFile(folder, "weir.db");
  const [copy, kept] = [folder.file("copy.db"), folder.file("kept.db")];
  {
    await using old = oldSqliteInstance(path);
    await old.run(OLD_STATEMENTS.sqlite.before);
    assertEquals((await backupStore(path, copy)).schemaVersion, OLD_VERSION);
    assertEquals((await backupStore(path, kept)).schemaVersion, OLD_VERSION);
  }
  const store = await folder.open({ path: copy });
  try {
    await isComplete(store, copy, Object.keys(EVENTS).slice(0, 2), EXECUTIONS.slice(0, 1));
  } finally {
    await store.close();
  }
  // The older release opens the other copy, and goes on where it was.
  await using back = oldSqliteInstance(kept);
  await back.run(OLD_STATEMENTS.sqlite.after);
  const { problems, schemaVersion } = await checkStore(kept);
  assertEquals([problems, schemaVersion], [[], OLD_VERSION]);
});

Deno.test({
  ...needs(
    ["postgres"],
    "a PostgreSQL store of 0.1.0 is dumped while it is used; the restored one is migrated",
  ),
  async fn() {
    const database = await oldDatabase();
    await using old = await oldPostgresInstance(server().url(database));
    await old.run(OLD_STATEMENTS.postgres.before);
    const dump = await output([
      postgresProgram("pg_dump"),
      "--inserts",
      "--no-owner",
      server().url(database),
    ]);
    const restored = await server().createDatabase();
    // Some releases of pg_dump write psql commands.
    await server().restore(dump.replaceAll(/^\\.*\n?/gm, ""), restored);
    const address = server().url(restored);
    const store = await openStoreAt(address);
    try {
      await isComplete(store, address, Object.keys(EVENTS).slice(0, 2), EXECUTIONS.slice(0, 1));
    } finally {
      await store.close();
    }
    await old.run(OLD_STATEMENTS.postgres.after);
  },
});

interface NewInstance {
  readonly address: string;
  open(): Promise<WebhookStore>;
}

/** Starts a new instance while an old one works, which then ends. */
async function restart(
  old: OldInstance,
  kind: "sqlite" | "postgres",
  { address, open }: NewInstance,
): Promise<void> {
  const { before, after } = OLD_STATEMENTS[kind];
  await old.run(before);
  const store = await open();
  try {
    for (const operation of after) {
      await old.run([operation]);
      // The new one sees what the old one writes.
      await store.metrics(LATER);
    }
    await isComplete(store, address, Object.keys(EVENTS), EXECUTIONS);
  } finally {
    await store.close();
  }
}

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

async function oldFile(folder: StoreFolder, name: string): Promise<string> {
  const path = folder.file(name);
  await Deno.copyFile(join(OLD_STORE, "weir.db"), path);
  return path;
}

async function oldDatabase(): Promise<string> {
  const database = await server().createDatabase();
  await server().restore(await Deno.readTextFile(join(OLD_STORE, "weir.sql")), database);
  return database;
}
