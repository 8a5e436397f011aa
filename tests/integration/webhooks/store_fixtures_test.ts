import { ADMINISTRATOR } from "../../harness/administrators.ts";
import { assert, assertEquals } from "@std/assert";
import { join } from "node:path";
import { FakeClock } from "../../harness/fake_clock.ts";
import { verify } from "../../../src/webhooks/receiver.ts";
import type { StoreSettings } from "../../../src/webhooks/service/message.ts";
import { SqliteConnection } from "../../../src/webhooks/store/sqlite/connection.ts";
import { migrate } from "../../../src/webhooks/store/sqlite/migration.ts";
import { openWebhookService } from "../../../src/webhooks/service/opening.ts";
import type { WebhookService } from "../../../src/webhooks/service/service.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { WebhookReceiver } from "../../harness/webhook_weir.ts";
import { FIXTURE_LISTS, FIXTURE_OPTIONS } from "../../harness/write_store_fixture.ts";
import { NO_LIMITS, openStoreAt, sharedPostgres } from "../../harness/postgres_fixture.ts";
import { QUIET, StoreFolder } from "../../harness/sqlite_fixture.ts";

/** Written by `write_store_fixture.ts` at that release. */
const OLD = join(import.meta.dirname ?? "", "../../testdata/store-0.1.0");
const RECORDS = JSON.parse(Deno.readTextFileSync(join(OLD, "records.json")));
const KNOWN = RECORDS.known;
const server = sharedPostgres();

Deno.test("a SQLite store of 0.1.0 is read, and its work goes on", async () => {
  using folder = new StoreFolder();
  const path = folder.file("weir.db");
  await Deno.copyFile(join(OLD, "weir.db"), path);
  assertEquals(await endedWith({ kind: "file", path }), [
    ...["fails failed", "hangs succeeded", "succeeds succeeded", "succeeds succeeded"],
    ...["waits cancelled", "waits succeeded"],
  ]);
});

Deno.test({
  ...needs(["postgres"], "a PostgreSQL store of 0.1.0 is read, and its work goes on"),
  async fn() {
    const database = await server().createDatabase();
    await server().restore(await Deno.readTextFile(join(OLD, "weir.sql")), database);
    const store = { kind: "postgres", address: server().url(database), poolSize: 4, ...NO_LIMITS } as const;
    // The service uses the clock of the database, which is past the deadlines of started executions.
    assertEquals(await endedWith(store), [
      ...["fails failed", "hangs failed", "succeeds succeeded", "succeeds succeeded"],
      ...["waits cancelled", "waits failed"],
    ]);
  },
});

Deno.test("a SQLite store of 0.1.0 gets the schema of a new one", async () => {
  using folder = new StoreFolder();
  await Deno.copyFile(join(OLD, "weir.db"), folder.file("old.db"));
  const [old, created] = [folder.file("old.db"), folder.path].map((path) => {
    const connection = new SqliteConnection(path);
    migrate(connection);
    const names = connection.all("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
    const schema = names.map(({ name }) =>
      ["table_list", "table_xinfo", "foreign_key_list"].map((kind) =>
        connection.all(`PRAGMA ${kind}(${name})`)
      )
    );
    const indexes = connection.all("SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name");
    const generated = connection.all("SELECT sql FROM sqlite_schema WHERE name IN ('delivery', 'execution')");
    const texts = [...indexes, ...generated].map(({ name, sql }) => [name, String(sql).replace(/\s+/g, "")]);
    connection.close();
    return [names, schema, texts];
  });
  assertEquals(old, created);
});

Deno.test({
  ...needs(["postgres"], "a PostgreSQL store of 0.1.0 gets the schema of a new one"),
  async fn() {
    const schemas = await Promise.all(
      [await Deno.readTextFile(join(OLD, "weir.sql")), ""].map(async (dump) => {
        const database = await server().createDatabase();
        if (dump !== "") await server().restore(dump, database);
        await (await openStoreAt(server().url(database))).close();
        return await server().psql(CATALOG, database);
      }),
    );
    assert(schemas[0]?.includes("delivery_next"));
    assertEquals(schemas[0], schemas[1]);
  },
});

const CATALOG = `
  SELECT 'column', attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull, attidentity::text,
    attgenerated::text, pg_get_expr(adbin, adrelid)
  FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE attnum > 0 AND NOT attisdropped AND attrelid IN (SELECT tablename::regclass FROM pg_tables WHERE schemaname = 'public')
  UNION ALL SELECT 'index', tablename, indexname, indexdef, NULL, NULL, NULL, NULL FROM pg_indexes WHERE schemaname = 'public'
  UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL, NULL, NULL
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2, 3`;

/** Compares the records of a store and lets a service go on with them; returns how the executions ended. */
async function endedWith(store: StoreSettings): Promise<readonly string[]> {
  const clock = FakeClock.ofMachine({ aheadMs: KNOWN.now + 60_000 - Date.now() });
  const service = await openWebhookService({
    options: { ...FIXTURE_OPTIONS, store },
    limit: () => Promise.resolve({ code: "OK" }),
    clock,
    logger: QUIET,
  });
  await using receiver = new WebhookReceiver();
  try {
    for (const name of FIXTURE_LISTS) {
      const items = await listed(service, name);
      assertEquals([items.length, known(items, RECORDS[name])], [RECORDS[name].length, RECORDS[name]]);
    }
    const edit = {
      requestId: "r",
      administrator: ADMINISTRATOR,
      method: "PATCH",
      path: `/endpoints/${KNOWN.endpoint}`,
      query: "",
    };
    const { status, body } = await service.administer({
      ...edit,
      body: JSON.stringify({ url: receiver.url }),
    });
    assertEquals(status, 200, body);
    service.start();
    const [received] = await until("the delivery", () => receiver.received.length > 0 && receiver.received);
    assertEquals(JSON.parse(received?.body ?? ""), { event: "down.order", data: { order: "down.order" } });
    const headers = Object.fromEntries(received?.headers ?? []);
    assertEquals(Object.keys(KNOWN.headers).map((name) => headers[name]), Object.values(KNOWN.headers));
    const now = Number(headers["x-svc-timestamp"]) * 1_000;
    const verified = await verify({ body: received?.body ?? "", headers, secrets: KNOWN.secrets, now });
    assert(verified.ok, JSON.stringify(verified));
    return await until("the ends of all executions", async () => {
      const items = await listed(service, "executions");
      const states = items.map(({ workflow, status }) => `${workflow} ${status}`);
      return !/queued|running/.test(states.join()) && states.toSorted();
    });
  } finally {
    await service.stop(0);
  }
}

type Item = Readonly<Record<string, unknown>>;

async function listed(service: WebhookService, name: string): Promise<readonly Item[]> {
  const { body } = await service.administer({
    requestId: "r",
    administrator: ADMINISTRATOR,
    method: "GET",
    path: `/${name}`,
    query: "",
  });
  return JSON.parse(body).items;
}

/** The part of a value that the older release returned; a later release may add fields. */
function known(value: unknown, old: unknown): unknown {
  if (Array.isArray(old)) return old.map((item, index) => known((value as readonly unknown[])[index], item));
  if (typeof old !== "object" || old === null) return value;
  return Object.fromEntries(
    Object.entries(old).map(([name, item]) => [name, known((value as Item)[name], item)]),
  );
}
