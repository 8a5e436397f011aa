import { assertEquals } from "@std/assert";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { until } from "../../harness/until.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import type { Env, SettingCases } from "./settings_case.ts";
import { lookAt, type WebhookLook } from "./settings_webhook_bed.ts";

const SHORT = "300ms";
/** Longer than the service waits for an answer to a call. */
const PATIENT = { WEBHOOK_STORE_STATEMENT_TIMEOUT: "60s", WEBHOOK_STORE_LOCK_TIMEOUT: "60s" };
const KEY = new Uint8Array(32).fill(7).toBase64();
/** How long another session keeps all others from writing events, unless it is ended before. */
const LOCKED_S = 60;
const EVENT = { body: { event: "a", data: {} } };

/** Tests of the settings that say how a PostgreSQL is used. */
export const WEBHOOK_POSTGRES_CASES: SettingCases = {
  WEBHOOK_STORE_POOL_SIZE: {
    sees: "how many connections there are at most",
    tools: ["postgres"],
    run: () =>
      compareStores({ WEBHOOK_STORE_POOL_SIZE: "1" }, {
        async look({ http, server, database }) {
          await until("the service", async () => (await api(http, "/endpoints")).status === 200);
          const posted = await Promise.all(Array.from({ length: 12 }, () => api(http, "/events", EVENT)));
          assertEquals(new Set(posted.map(({ status }) => status)), new Set([202]));
          const whose = `datname = '${database}' AND usename <> 'postgres'`;
          return Number(await server.psql(`SELECT count(*) FROM pg_stat_activity WHERE ${whose}`)) > 1;
        },
        unset: true,
        set: false,
      }),
  },
  WEBHOOK_STORE_CONNECT_TIMEOUT: {
    sees: "a silent database given up earlier",
    async run() {
      const isShort: boolean[] = [];
      for (const WEBHOOK_STORE_CONNECT_TIMEOUT of ["", SHORT]) {
        using silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
        await using folder = await WebhookFolder.make();
        const WEBHOOK_STORE = `postgres://weir:password@127.0.0.1:${silent.addr.port}/weir`;
        const env = { WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY: KEY, WEBHOOK_STORE_CONNECT_TIMEOUT };
        const borne = borneMs(silent);
        borne.catch(() => {});
        isShort.push(await lookAt(folder, env, async () => await borne < 4_500));
      }
      assertEquals(isShort, [false, true]);
    },
  },
  WEBHOOK_STORE_STATEMENT_TIMEOUT: {
    sees: "a statement given up earlier",
    tools: ["postgres"],
    run: () => comparesLocked({ WEBHOOK_STORE_STATEMENT_TIMEOUT: SHORT }),
  },
  WEBHOOK_STORE_LOCK_TIMEOUT: {
    sees: "the wait for a lock given up earlier",
    tools: ["postgres"],
    run: () => comparesLocked({ WEBHOOK_STORE_LOCK_TIMEOUT: SHORT }),
  },
};

interface StoreLook extends WebhookLook {
  readonly server: PostgresServer;
  readonly database: string;
}

/** For how long the first connection is borne, of which nothing is answered. */
async function borneMs(silent: Deno.Listener): Promise<number> {
  using connection = await silent.accept();
  const begin = performance.now();
  const octets = new Uint8Array(1_024);
  while (await connection.read(octets).catch(() => null) !== null);
  return performance.now() - begin;
}

/** Looks at a service without the changed settings and at one with them, each with a database of its own. */
async function compareStores(
  changed: Env,
  { env: both = {}, look, unset, set }: {
    readonly env?: Env;
    look(look: StoreLook): Promise<unknown>;
    readonly unset: unknown;
    readonly set: unknown;
  },
): Promise<void> {
  await using server = await PostgresServer.start();
  const seen: unknown[] = [];
  for (const extra of [{}, changed]) {
    await using folder = await WebhookFolder.make();
    const database = await server.createDatabase();
    const env = { WEBHOOK_STORE: server.url(database), WEBHOOK_ENCRYPTION_KEY: KEY, ...both, ...extra };
    seen.push(await lookAt(folder, env, (given) => look({ ...given, server, database })));
  }
  assertEquals(seen, [unset, set]);
}

/** Posts an event while another session keeps everybody from writing any, which ends soon or after the answer. */
async function comparesLocked(changed: Env): Promise<void> {
  let isPatient = true;
  await compareStores(changed, {
    async look({ http, server, database }) {
      const sql = `BEGIN; LOCK TABLE event IN EXCLUSIVE MODE; SELECT pg_sleep(${LOCKED_S}); COMMIT`;
      await until("the service", async () => (await api(http, "/endpoints")).status === 200);
      const locked = server.psql(sql, database);
      locked.catch(() => {});
      const from = "FROM pg_locks WHERE mode = 'ExclusiveLock' AND granted " +
        "AND relation = CAST('event' AS regclass)";
      const count = `SELECT count(*) ${from}`;
      await until("the lock", async () => (await server.psql(count, database)).trim() === "1");
      const answer = api(http, "/events", EVENT);
      answer.catch(() => {});
      if (!isPatient) await answer;
      await server.psql(`SELECT pg_terminate_backend(pid) ${from}`, database);
      await locked.catch(() => {});
      isPatient = false;
      const { status, body } = await answer;
      return body.code ?? status;
    },
    env: PATIENT,
    unset: 202,
    set: "store_unavailable",
  });
}
