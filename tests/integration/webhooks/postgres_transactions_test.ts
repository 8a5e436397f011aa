import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { systemClock } from "../../../src/base/clock.ts";
import { parsePostgresAddress } from "../../../src/base/postgres_address.ts";
import { PostgresPool } from "../../../src/webhooks/store/postgres/pool.ts";
import { PostgresTransactions } from "../../../src/webhooks/store/postgres/transactions.ts";
import { StoreError } from "../../../src/webhooks/store/store.ts";
import {
  all,
  alone,
  ConflictError,
  get,
  postgresOnly,
  run,
  sql,
  sqliteOnly,
  type Work,
} from "../../../src/webhooks/store/work.ts";
import { handled } from "../../harness/handled.ts";
import { PostgresServer } from "../../harness/postgres_server.ts";
import type { SharedPostgresServer } from "../../harness/shared_servers.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { HeldCommits, sharedPostgres } from "../../harness/postgres_fixture.ts";

const shared = sharedPostgres();
const ADD = "UPDATE counts SET count = count + ? WHERE name = ?";
const LOCKED = sql((d) => `SELECT count FROM counts WHERE name = ? ${d.lock()}`);

Deno.test({
  ...needs(["postgres"], "an operation is one transaction, whole or not at all"),
  async fn() {
    await using bed = await makeBed();
    const { transactions } = bed;
    const answer = await transactions.perform(function* (): Work<readonly [number, number, unknown, number]> {
      const none = yield* run(sqliteOnly("VACUUM"));
      const changed = yield* run(ADD, 2, "a");
      const row = yield* get(LOCKED, "a");
      return [none, changed, row?.["count"], (yield* all(postgresOnly("SELECT 1 AS one"))).length];
    });
    assertEquals(answer, [0, 1, 2, 1]);
    const failing: readonly (readonly [RegExp, () => Work<unknown>])[] = [
      [/^our own$/, function* () {
        yield* run(ADD, 2, "a");
        throw new Error("our own");
      }],
      [/does not exist \(42703\)$/, function* () {
        yield* run(ADD, 2, "a");
        yield* get("SELECT nothing");
      }],
      [/not a safe integer/, function* () {
        yield* run(ADD, 2, "a");
        yield* get("SELECT 9007199254740993");
      }],
    ];
    for (const [expected, work] of failing) {
      assertMatch((await assertRejects(() => transactions.perform(work))).message, expected);
    }
    assertEquals(await bed.counts(), [2, 0]);
    const { elapsedMs, ...figures } = transactions.metrics;
    assertEquals(figures, { commits: 1, operations: 1, retries: 0 });
    assert(elapsedMs > 0);
    assertEquals(bed.told, [elapsedMs]);
  },
});

Deno.test({
  ...needs(["postgres"], "what only reads sees one state, and cannot write"),
  async fn() {
    await using bed = await makeBed();
    const { transactions } = bed;
    let added: Promise<unknown> | undefined;
    let isAdded = false;
    const seen = await transactions.read(function* (): Work<readonly unknown[]> {
      const before = (yield* get("SELECT count FROM counts WHERE name = ?", "a"))?.["count"];
      added ??= handled(transactions.perform(() => run(ADD, 1, "a")).then(() => void (isAdded = true)));
      while (!isAdded) yield* get("SELECT 1");
      return [before, (yield* get("SELECT count FROM counts WHERE name = ?", "a"))?.["count"]];
    });
    await added;
    assertEquals([seen, await bed.counts()], [[0, 0], [1, 0]]);
    assertEquals((await refusal(transactions.read(() => run(ADD, 1, "a")))).code, "read_only");
  },
});

Deno.test({
  ...needs(["postgres"], "a statement that is alone is a transaction by itself, whatever the role has set"),
  async fn() {
    await using bed = await makeBed();
    const { server, database, transactions } = bed;
    await server.psql(
      `ALTER ROLE weir IN DATABASE ${database} SET default_transaction_isolation = 'serializable'`,
    );
    const level = "SELECT current_setting('transaction_isolation') AS level";
    const levels = [
      await transactions.read(() => alone(all(level))),
      await transactions.read(() => all(level)),
      await transactions.perform(() => alone(all(level))),
      await transactions.perform(() => all(level)),
    ];
    // The second one was begun for reading alone.
    assertEquals(levels.map(([row]) => row?.["level"]), [
      ...["read committed", "repeatable read", "read committed", "read committed"],
    ]);
    const changed = await transactions.perform(function* (): Work<number> {
      yield* run(sqliteOnly("VACUUM"));
      const count = yield* alone(run(ADD, 2, "a"));
      return count + (yield* run(sqliteOnly("VACUUM")));
    });
    assertEquals([changed, transactions.metrics.commits, bed.told.length], [1, 3, 3]);
    assertEquals(await bed.counts(), [2, 0]);
    const failing = () => alone(run("UPDATE counts SET count = count + 1 WHERE 1 / count > 0"));
    assertMatch((await assertRejects(() => transactions.perform(failing))).message, /division by zero/);
    const followed = function* (): Work<void> {
      yield* alone(run(ADD, 0, "a"));
      yield* run(ADD, 2, "a");
    };
    assertMatch(
      (await assertRejects(() => transactions.perform(followed))).message,
      /is followed by another$/,
    );
    assertEquals(await bed.counts(), [2, 0]);
  },
});

Deno.test({
  ...needs(["postgres"], "operations that are in each other's way are done anew until each is done once"),
  async fn() {
    await using bed = await makeBed();
    const { server, database, transactions } = bed;
    await server.psql(MEETING, database);
    // Each locks two rows in another order than its neighbour. The first two lock each other out: both have a row before
    // they ask for the other one.
    const works = Array.from({ length: 10 }, (_, index) =>
      transactions.perform(function* (): Work<void> {
        const names = index % 2 === 0 ? ["a", "b"] : ["b", "a"];
        for (const name of names) {
          yield* run(ADD, 1, name);
          yield* get("SELECT meet()");
        }
      }));
    await Promise.all(works);
    assertEquals(await bed.counts(), [10, 10]);
    assertEquals(transactions.metrics.commits, 10);
    assert(transactions.metrics.retries > 0);
  },
});

Deno.test({
  ...needs(
    ["postgres"],
    "an operation that saw another come before it is undone and done anew, ten times at most",
  ),
  async fn() {
    await using bed = await makeBed();
    const { transactions } = bed;
    const conflicting = (times: number) => {
      let tries = 0;
      return function* (): Work<number> {
        tries++;
        yield* run(ADD, 1, "a");
        if (tries <= times) throw new ConflictError();
        return tries;
      };
    };
    assertEquals(await transactions.perform(conflicting(9)), 10);
    assertEquals([await bed.counts(), transactions.metrics.retries], [[1, 0], 9]);
    const { code, message } = await refusal(transactions.perform(conflicting(10)));
    assertEquals([code, await bed.counts()], ["busy", [1, 0]]);
    assertMatch(message, /^Cannot use the store: 10 conflicts with others/);
  },
});

Deno.test({
  ...needs(["postgres"], "an operation whose connection breaks is busy, and is done once or not at all"),
  async fn() {
    await using server = await PostgresServer.start();
    await using bed = await makeBed(server);
    const { transactions } = bed;
    const work = function* (): Work<void> {
      yield* run(ADD, 1, "a");
      yield* get("SELECT pg_sleep(60)");
    };
    for (
      const end of [() => server.breakConnections(), () => server.stop("immediate"), () => server.kill()]
    ) {
      const asked = refusal(transactions.perform(work));
      await until("the query", async () => await server.psql(SLEEPING) === "1");
      await end();
      assertEquals((await asked).code, "busy");
      if (!server.isRunning) await server.start();
      await until("the database", async () => (await bed.counts())[0] === 0);
    }
  },
});

Deno.test({
  ...needs(["postgres"], "an operation whose commit is not answered is busy, and is never done twice"),
  async fn() {
    await using bed = await makeBed();
    // The commit is held up, while the client is cut off.
    await using held = await HeldCommits.prepare(bed.server, bed.database);
    await held.hold("counts");
    let tries = 0;
    const asked = refusal(bed.transactions.perform(function* (): Work<void> {
      tries++;
      yield* run(ADD, 1, "a");
    }));
    await held.caught();
    bed.cut();
    assertEquals([(await asked).code, tries], ["busy", 1]);
    await held.letGo();
    // The server has carried it out all the same; the caller, who does not know, has a key to ask again.
    await until("the row", async () => (await bed.counts())[0] === 1);
  },
});

const SLEEPING =
  "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND usename = 'weir'";
/** Who calls `meet` goes on when another one has called it as well. */
const MEETING = `
  CREATE SEQUENCE met;
  CREATE FUNCTION meet() RETURNS void LANGUAGE plpgsql AS 'BEGIN
    PERFORM nextval(''met'');
    WHILE (SELECT last_value FROM met) < 2 LOOP PERFORM pg_sleep(0.002); END LOOP;
  END';
  GRANT ALL ON SEQUENCE met TO weir`;

interface Bed extends AsyncDisposable {
  readonly server: SharedPostgresServer;
  readonly database: string;
  readonly transactions: PostgresTransactions;
  /** What was told of each commit. */
  readonly told: readonly number[];
  /** Breaks all connections between here and the server. */
  cut(): void;
  counts(): Promise<readonly unknown[]>;
}

async function makeBed(server: SharedPostgresServer = shared()): Promise<Bed> {
  const database = await server.createDatabase();
  await server.psql(
    "CREATE TABLE counts (name TEXT PRIMARY KEY, count BIGINT); ALTER TABLE counts OWNER TO weir; " +
      "INSERT INTO counts VALUES ('a', 0), ('b', 0)",
    database,
  );
  const relay = await startTcpRelay(server.port);
  const pool = new PostgresPool({
    address: parsePostgresAddress(server.url(database).replace(`:${server.port}`, `:${relay.port}`)),
    clock: systemClock,
    random: Math.random,
    size: 8,
    maxWaiting: 1_000,
    waitMs: 300_000,
    connectTimeoutMs: 60_000,
    statementTimeoutMs: 300_000,
    lockTimeoutMs: 300_000,
  });
  const told: number[] = [];
  const transactions = new PostgresTransactions(pool, {
    clock: systemClock,
    random: Math.random,
    onCommit: (elapsedMs) => told.push(elapsedMs),
  });
  return {
    server,
    database,
    transactions,
    told,
    cut: () => relay.dropAll({ reset: true }),
    counts: async () =>
      (await transactions.read(() => all("SELECT count FROM counts ORDER BY name"))).map((row) =>
        row["count"]
      ),
    async [Symbol.asyncDispose]() {
      await pool.close();
      await relay[Symbol.asyncDispose]();
    },
  };
}

function refusal(promise: Promise<unknown>): Promise<StoreError> {
  return handled(
    assertRejects(() => promise).then((error) => {
      assert(error instanceof StoreError, error.stack);
      return error;
    }),
  );
}
