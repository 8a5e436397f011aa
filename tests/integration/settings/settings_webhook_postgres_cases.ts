import { assertEquals } from "@std/assert";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { type Env, type SettingCases, Shared } from "./settings_case.ts";

const SHORT = "100ms";
/** Longer than the service waits for an answer to a call. */
const PATIENT = { WEBHOOK_STORE_STATEMENT_TIMEOUT: "60s", WEBHOOK_STORE_LOCK_TIMEOUT: "60s" };
const KEY = new Uint8Array(32).fill(7).toBase64();
/** How long another session keeps all others from writing events, unless it is ended before. */
const LOCKED_S = 60;
const EVENT = { body: { event: "a", data: {} } };
const LOCKS = "FROM pg_locks WHERE mode = 'ExclusiveLock' AND granted " +
  "AND relation = CAST('event' AS regclass)";

/** A server, and a service on a database of it that is patient. */
interface PostgresBaseline {
  readonly server: PostgresServer;
  readonly plain: StoreLook;
}

/** A service on a database of its own. */
interface StoreLook {
  readonly http: string;
  readonly database: string;
}

/** What the tests of these settings share. */
export const POSTGRES_BASELINE = new Shared<PostgresBaseline>(["postgres"], async (stack) => {
  const server = stack.use(await PostgresServer.start());
  return { server, plain: await startOn(server, {}, stack) };
});

/** Tests of the settings that say how a PostgreSQL is used. */
export const WEBHOOK_POSTGRES_CASES: SettingCases = {
  WEBHOOK_STORE_POOL_SIZE: {
    sees: "how many connections there are at most",
    tools: ["postgres"],
    run: () => compareStores({ WEBHOOK_STORE_POOL_SIZE: "1" }, hasSeveralConnections, [true, false]),
  },
  WEBHOOK_STORE_CONNECT_TIMEOUT: {
    sees: "a silent database given up earlier",
    async run() {
      const givenUp: string[] = [];
      await using stack = new AsyncDisposableStack();
      const ends = [];
      for (const [name, WEBHOOK_STORE_CONNECT_TIMEOUT] of [["unset", ""], ["set", SHORT]] as const) {
        const silent = stack.use(Deno.listen({ hostname: "127.0.0.1", port: 0 }));
        const WEBHOOK_STORE = `postgres://weir:password@127.0.0.1:${silent.addr.port}/weir`;
        ends.push(connectionEnd(silent).then(() => void givenUp.push(name)));
        const env = { WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY: KEY, WEBHOOK_STORE_CONNECT_TIMEOUT };
        stack.use(await ServeFixture.start({ env }));
      }
      await Promise.race(ends);
      assertEquals(givenUp, ["set"]);
      await stack.disposeAsync();
      await Promise.all(ends);
    },
  },
  WEBHOOK_STORE_STATEMENT_TIMEOUT: {
    sees: "a statement given up earlier",
    tools: ["postgres"],
    run: () =>
      compareStores({ WEBHOOK_STORE_STATEMENT_TIMEOUT: SHORT }, answerWhileLocked, [
        202,
        "store_unavailable",
      ]),
  },
  WEBHOOK_STORE_LOCK_TIMEOUT: {
    sees: "the wait for a lock given up earlier",
    tools: ["postgres"],
    run: () =>
      compareStores({ WEBHOOK_STORE_LOCK_TIMEOUT: SHORT }, answerWhileLocked, [202, "store_unavailable"]),
  },
};

/** Settles when the first connection, on which nothing is answered, was closed. */
async function connectionEnd(silent: Deno.Listener): Promise<void> {
  using connection = await silent.accept();
  const bytes = new Uint8Array(1_024);
  while (await connection.read(bytes).catch(() => null) !== null);
}

async function startOn(server: PostgresServer, more: Env, stack: AsyncDisposableStack): Promise<StoreLook> {
  const folder = stack.use(await WebhookFolder.make());
  const database = await server.createDatabase();
  const own = { WEBHOOK_STORE: server.url(database), WEBHOOK_ENCRYPTION_KEY: KEY };
  const env = { ...folder.env, ...own, ...PATIENT, ...more };
  const { running: { addresses: { http } } } = stack.use(await ServeFixture.start({ env }));
  await until("the service", async () => (await api(http, "/endpoints")).status === 200);
  return { http, database };
}

/** Looks at the service that all share and at one with the changed settings. */
async function compareStores(
  changed: Env,
  look: (service: StoreLook, isPatient: boolean) => Promise<unknown>,
  expected: readonly [unset: unknown, set: unknown],
): Promise<void> {
  const { server, plain } = POSTGRES_BASELINE.value;
  await using stack = new AsyncDisposableStack();
  const unset = await look(plain, true);
  assertEquals([unset, await look(await startOn(server, changed, stack), false)], [...expected]);
}

async function hasSeveralConnections({ http, database }: StoreLook): Promise<boolean> {
  const posted = await Promise.all(Array.from({ length: 12 }, () => api(http, "/events", EVENT)));
  assertEquals(new Set(posted.map(({ status }) => status)), new Set([202]));
  const whose = `datname = '${database}' AND usename <> 'postgres'`;
  const { server } = POSTGRES_BASELINE.value;
  return Number(await server.psql(`SELECT count(*) FROM pg_stat_activity WHERE ${whose}`)) > 1;
}

/** Posts an event while another session keeps everybody from writing any, which ends soon or after the answer. */
async function answerWhileLocked({ http, database }: StoreLook, isPatient: boolean): Promise<unknown> {
  const { server } = POSTGRES_BASELINE.value;
  const sql = `BEGIN; LOCK TABLE event IN EXCLUSIVE MODE; SELECT pg_sleep(${LOCKED_S}); COMMIT`;
  const locked = server.psql(sql, database);
  locked.catch(() => {});
  const count = `SELECT count(*) ${LOCKS}`;
  await until("the lock", async () => (await server.psql(count, database)).trim() === "1");
  const answer = api(http, "/events", EVENT);
  answer.catch(() => {});
  if (!isPatient) await answer;
  await server.psql(`SELECT pg_terminate_backend(pid) ${LOCKS}`, database);
  await locked.catch(() => {});
  const { status, body } = await answer;
  return body.code ?? status;
}
