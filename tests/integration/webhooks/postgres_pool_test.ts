import { assertEquals, assertMatch, assertRejects } from "#assert";
import { parsePostgresAddress } from "../../../src/base/postgres_address.ts";
import { Credential } from "../../../src/net/credential.ts";
import { PostgresPool, type PostgresPoolOptions } from "../../../src/webhooks/store/postgres/pool.ts";
import type { PostgresConnection } from "../../../src/webhooks/store/postgres/connection.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { handled } from "../../harness/handled.ts";
import { POSTGRES_USER } from "../../harness/postgres_folder.ts";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { NO_LIMITS, ownPostgres, postgresServer, refusal } from "../../harness/postgres_fixture.ts";
import { needing } from "../../harness/tools.ts";
import { eventually, type Truthy, until } from "../../harness/until.ts";

postgresServer.test("a pool lends each connection to one after the other, in the order of who asked", async (server) => {
  await using pool = poolOf(server.url("postgres", "application_name=lender"), { size: 3 });
  const lent = new Set<PostgresConnection>();
  const order: number[] = [];
  const { promise: allLent, resolve: letGo } = Promise.withResolvers<void>();
  let most = 0;
  const jobs = Array.from({ length: 60 }, (_, index) =>
    pool.use(async (connection) => {
      assertEquals(lent.has(connection), false);
      lent.add(connection);
      most = Math.max(most, lent.size);
      order.push(index);
      await connection.query("SELECT pg_sleep(0.005)", [], "rows");
      await allLent;
      lent.delete(connection);
    }));
  const done = handled(Promise.all(jobs));
  await until("all to be lent", () => most === 3);
  letGo();
  await done;
  assertEquals(order, order.toSorted((a, b) => a - b));
  assertEquals([most, pool.metrics], [3, { open: 3, idle: 3, waiting: 0 }]);
  await pool.close();
  await eventually("0", () => server.psql(SESSIONS));
  assertEquals(await refusal(pool.use(ask)), "closed Cannot use the store: it is closed");
});

postgresServer.test("a pool has a bound for those who wait, and for how long", async (server) => {
  const clock = new FakeClock();
  await using pool = poolOf(server.url(), { clock, size: 1, maxWaiting: 2, waitMs: 150 });
  await pool.use(ask);
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  const holding = handled(pool.use(() => held));
  const late = [refusal(pool.use(ask)), refusal(pool.use(ask))];
  assertEquals(
    await refusal(pool.use(ask)),
    "busy Cannot use the store: 2 operations wait for a connection",
  );
  clock.advance(149);
  assertEquals(pool.metrics.waiting, 2);
  clock.advance(1);
  const text = "busy Cannot use the store: no connection was free within 150 ms";
  assertEquals(await Promise.all(late), [text, text]);
  const next = pool.use(ask);
  letGo();
  await Promise.all([holding, next]);
  assertEquals(pool.metrics, { open: 1, idle: 1, waiting: 0 });
});

postgresServer.test("what is urgent comes before all that waits, also where no more may wait", async (server) => {
  await using pool = poolOf(server.url(), { size: 1, maxWaiting: 2 });
  await pool.use(ask);
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  const holding = handled(pool.use(() => held));
  const order: string[] = [];
  const asked = (name: string, isUrgent: boolean) =>
    pool.use((connection) => {
      order.push(name);
      return ask(connection);
    }, { isUrgent });
  const jobs = [asked("a", false), asked("b", false), asked("first", true), asked("second", true)];
  const done = handled(Promise.all(jobs));
  assertMatch(await refusal(pool.use(ask)), /4 operations wait/);
  letGo();
  await Promise.all([holding, done]);
  assertEquals(order, ["first", "second", "a", "b"]);
  assertEquals(pool.metrics, { open: 1, idle: 1, waiting: 0 });
});

postgresServer.test("a connection that broke or was left in a transaction is never lent again", async (server) => {
  await using pool = poolOf(server.url(), { size: 1 });
  const pids: (number | undefined)[] = [await pool.use(pidOf)];
  await assertRejects(() =>
    pool.use(async (connection) => {
      await connection.begin("write");
      throw new Error("left");
    })
  );
  pids.push(await pool.use(pidOf));
  await server.breakConnections();
  await empty(pool);
  pids.push(await pool.use(pidOf));
  await pool.use(async (connection) => await Promise.resolve(connection.destroy()));
  pids.push(await pool.use(pidOf));
  assertEquals(new Set(pids).size, 4);
});

ownPostgres.test("a pool that lost its last connection after another could not be opened serves who asks next", async (server) => {
  const clock = new FakeClock();
  const login = new Credential(parsePostgresAddress(server.url()));
  await using pool = poolOf(server.url(), { login, clock, size: 2 });
  await pool.use(ask);
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  const holding = handled(pool.use(() => held));
  await server.psql(`ALTER ROLE ${POSTGRES_USER.name} NOLOGIN`);
  const waiting = handled(pool.use(ask));
  await until("a refused attempt", () => login.refused > 0);
  letGo();
  await Promise.all([holding, waiting]);
  // The next attempt has nothing to do.
  clock.advance(60_000);
  await server.breakConnections();
  await until("the end of the connections", () => pool.metrics.open === 0);
  await server.psql(`ALTER ROLE ${POSTGRES_USER.name} LOGIN`);
  let asked: Promise<void> | undefined;
  let isServed = false;
  await soon(clock, "a connection for who asks", () => {
    asked ??= pool.use(ask).then(() => void (isServed = true), () => void (asked = undefined));
    return isServed;
  });
});

ownPostgres.test("while the database is unavailable who asks is refused immediately, and soon after it is back it is found", async (server) => {
  let reached = 0;
  const clock = new FakeClock();
  await using pool = poolOf(server.url(), { clock, size: 4, onConnected: () => reached++ });
  for (const end of [() => server.kill(), () => server.stop(), () => server.stop("immediate")]) {
    await filled(pool, 4);
    await end();
    await empty(pool);
    assertMatch(
      await refusal(pool.use(ask)),
      /^busy Cannot connect to PostgreSQL at "127\.0\.0\.1:\d+": /,
    );
    const asking = Array.from({ length: 500 }, () => refusal(pool.use(ask)));
    assertEquals(pool.metrics.waiting, 0);
    const asked = await Promise.all(asking);
    assertEquals(new Set(asked).size, 1);
    await soon(clock, "another attempt", () => pool.failure?.includes("REFUSED"));
    assertEquals(pool.metrics, { open: 0, idle: 0, waiting: 0 });
    await server.start();
    await soon(clock, "the database", () => pool.failure === undefined);
    await pool.use(ask);
  }
  assertEquals(reached, 4);
});

postgresServer.test("a database that stops in its tracks costs those who wait their time, and no later call", async (server) => {
  const clock = new FakeClock();
  const limits = { statementTimeoutMs: 60_000, connectTimeoutMs: 60_000 };
  await using pool = poolOf(server.url(), { clock, size: 2, ...limits });
  await filled(pool, 2);
  server.pause();
  const asked: string[] = [];
  const asking = Array.from({ length: 10 }, () => refusal(pool.use(ask)).then((text) => asked.push(text)));
  const done = handled(Promise.all(asking));
  clock.advance(62_000);
  await until("two to be given up", () => asked.length === 2);
  await until("an attempt for the others", () => clock.waiting === 8 + 1);
  clock.advance(60_000);
  await done;
  assertEquals([...new Set(asked.map((text) => text.replace(/\d+/g, "0")))].toSorted(), [
    'busy Cannot connect to PostgreSQL at "0.0.0.0:0": timeout',
    "busy Cannot use the store: no answer within 0 ms",
  ]);
  const refused = refusal(pool.use(ask));
  assertEquals(pool.metrics.waiting, 0);
  assertMatch(await refused, /timeout/);
  server.resume();
  await soon(clock, "the database", () => pool.failure === undefined);
  await pool.use(ask);
});

needing("postgres").test(
  "of several hosts the one is used that takes writes, also when another takes over",
  async () => {
    await using first = await PostgresServer.start();
    await using second = await PostgresServer.start({ standbyOf: first });
    const hosts = `127.0.0.1:1,127.0.0.1:${second.port},127.0.0.1:${first.port}`;
    let reached = 0;
    const clock = new FakeClock();
    const options = { clock, size: 2, onConnected: () => reached++ };
    const pool = poolOf(first.url().replace(/127[^/]*/, hosts), options);
    assertEquals(await pool.use(portOf), first.port);
    await filled(pool, 2);
    await first.kill();
    await empty(pool);
    const text = await refusal(pool.use(ask));
    assertMatch(text, /^busy .*:1": .*REFUSED.*; .*is read-only|^busy .*REFUSED.*is read-only/);
    await second.promote();
    await soon(clock, "the other", () => pool.failure === undefined);
    assertEquals([await pool.use(portOf), reached], [second.port, 2]);
    await pool.close();
  },
);

postgresServer.test("connections to a server that stops taking writes are all given up", async (server) => {
  const database = await server.createDatabase();
  const clock = new FakeClock();
  await using pool = poolOf(server.url(database), { clock, size: 3 });
  await filled(pool, 3);
  await server.psql(`ALTER DATABASE ${database} SET default_transaction_read_only = on`);
  // As it is for a session that was there before its server became a standby.
  const readOnly = pool.use(async (connection) => {
    await connection.query("SET default_transaction_read_only = on", [], "changes");
    await connection.query("CREATE TABLE ones (id INTEGER)", [], "changes");
  });
  assertMatch(await refusal(readOnly), /^read_only .*\(25006\)$/);
  await empty(pool);
  assertMatch(await refusal(pool.use(ask)), /^busy .*is read-only/);
  await server.psql(`ALTER DATABASE ${database} RESET default_transaction_read_only`);
  await soon(clock, "the database", () => pool.failure === undefined);
  await pool.use(ask);
});

needing("postgres").test("a server that has too few connections is used with those that it has", async () => {
  await using server = await PostgresServer.start({
    // Three for the pool. Each attempt that is refused takes a place for a moment, of which one is left for `psql`.
    settings: { max_connections: "20", superuser_reserved_connections: "17", max_wal_senders: "0" },
  });
  const clock = new FakeClock();
  await using pool = poolOf(server.url(), { clock, size: 8 });
  const { promise: allLent, resolve: letGo } = Promise.withResolvers<void>();
  const jobs = Array.from({ length: 100 }, () =>
    pool.use(async (connection) => {
      await ask(connection);
      await allLent;
    }));
  const done = handled(Promise.all(jobs));
  await soon(clock, "all that it has", () => pool.metrics.open === 3);
  letGo();
  assertEquals((await done).length, 100);
  assertEquals(pool.metrics, { open: 3, idle: 3, waiting: 0 });
  // An attempt that was on its way to be refused may find a free place now.
  await until("the ends of all", async () => {
    await server.breakConnections();
    return pool.metrics.open === 0;
  });
  let isAnswered = false;
  await soon(clock, "an answer", () => {
    pool.use(ask).then(() => isAnswered = true, () => {});
    return isAnswered;
  });
});

postgresServer.test("at the end who waits is refused, work under way ends, and what takes too long is ended", async (server) => {
  for (const expected of ["done", "busy"] as const) {
    const clock = new FakeClock();
    const pool = poolOf(server.url(), { clock, size: 1 });
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const working = pool.use(async (connection): Promise<unknown> =>
      expected === "done"
        ? await ask(connection).then(() => held)
        : await connection.query("SELECT pg_sleep(600)", [], "rows")
    ).then(() => "done", (error) => error.code);
    await until("the work", () => pool.metrics.open === 1);
    const waiting = refusal(pool.use(ask));
    const closed = pool.close();
    if (expected === "busy") {
      // Its query has a timer as well.
      await until("the end to be waited for", () => clock.waiting === 2);
      clock.advance(4_999);
      await new Promise((resolve) => setTimeout(resolve));
      assertEquals(pool.metrics.open, 1);
      clock.advance(1);
    }
    letGo();
    await closed;
    assertEquals([await working, await waiting], [expected, "closed Cannot use the store: it is closed"]);
    assertEquals(pool.metrics, { open: 0, idle: 0, waiting: 0 });
  }
  // While it comes in.
  server.pause();
  using _resumed = { [Symbol.dispose]: () => server.resume() };
  await using pool = poolOf(server.url());
  const asked = refusal(pool.use(ask));
  // No time passes here.
  await pool.close();
  assertMatch(await asked, /^closed /);
});

/** Not those of other tests: a session whose client is gone ends with its statement, which may take minutes. */
const SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lender'";

/** Has so many connections made; at the end none is on its way. */
async function filled(pool: PostgresPool, count: number): Promise<void> {
  const { promise: allLent, resolve: letGo } = Promise.withResolvers<void>();
  const use = () => pool.use((connection) => ask(connection).then(() => allLent));
  const uses = handled(Promise.all(Array.from({ length: count }, use)));
  await until("all connections", () => pool.metrics.open === count);
  letGo();
  await uses;
}

/** Waits until all connections have ended. */
async function empty(pool: PostgresPool): Promise<void> {
  await until("the ends of all", () => pool.metrics.open === 0);
}

/** Waits for what comes when some time has passed, of which more and more does. */
function soon<T>(clock: FakeClock, what: string, condition: () => T | Promise<T>): Promise<Truthy<T>> {
  return until(what, () => {
    clock.advance(100);
    return condition();
  }, { intervalMs: 5 });
}

/** A pool for which no time passes unless it is given a clock; it does at the end, so that a failed test ends too. */
function poolOf(
  url: string,
  { clock = new FakeClock(), ...options }: PoolOptions = {},
): PostgresPool & AsyncDisposable {
  const limits = { size: 2, maxWaiting: 1_000, waitMs: 600_000, ...NO_LIMITS };
  const login = new Credential(parsePostgresAddress(url));
  const pool = new PostgresPool({ login, clock, random: Math.random, ...limits, ...options });
  const dispose = async () => {
    let isClosed = false;
    const closed = pool.close().finally(() => isClosed = true);
    await soon(clock, "the end of the pool", () => isClosed);
    await closed;
  };
  return Object.assign(pool, { [Symbol.asyncDispose]: dispose });
}

type PoolOptions = Partial<PostgresPoolOptions> & { readonly clock?: FakeClock };

async function ask(connection: PostgresConnection): Promise<void> {
  await connection.query("SELECT 1", [], "rows");
}

/** Reads a number of the server. */
async function numberOf(connection: PostgresConnection, expression: string): Promise<number> {
  const { rows } = await connection.query(`SELECT ${expression} AS number`, [], "rows");
  return Number(rows[0]?.["number"]);
}

const pidOf = (connection: PostgresConnection) => numberOf(connection, "pg_backend_pid()");
const portOf = (connection: PostgresConnection) => numberOf(connection, "inet_server_port()");
