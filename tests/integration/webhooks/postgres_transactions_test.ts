import { assert, assertEquals, assertMatch, assertRejects } from "#assert";
import { systemClock } from "../../../src/base/clock.ts";
import { parsePostgresAddress } from "../../../src/base/postgres_address.ts";
import { Credential } from "../../../src/net/credential.ts";
import { PostgresPool } from "../../../src/webhooks/store/postgres/pool.ts";
import { PostgresTransactions } from "../../../src/webhooks/store/postgres/transactions.ts";
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
import type { SharedPostgresServer } from "../../harness/postgres_server.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { eventually } from "../../harness/until.ts";
import {
  HeldCommits,
  NO_LIMITS,
  ownPostgres,
  postgres,
  refusal,
  sleeping,
} from "../../harness/postgres_fixture.ts";

const ADD = "UPDATE counts SET count = count + ? WHERE name = ?";
const LOCKED = sql((d) => `SELECT count FROM counts WHERE name = ? ${d.lock()}`);

postgres.test("an operation is one transaction, whole or not at all", async ({ server, name }) => {
  await using bed = await makeBed(server, name);
  const { transactions } = bed;
  const answer = await transactions.write(function* (): Work<readonly [number, number, unknown, number]> {
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
    assertMatch((await assertRejects(() => transactions.write(work))).message, expected);
  }
  assertEquals(await bed.counts(), [2, 0]);
  const [elapsedMs = 0] = bed.told;
  assertEquals([bed.told.length, elapsedMs > 0, transactions.retries], [1, true, 0]);
});

postgres.test("what only reads sees one state, and cannot write", async ({ server, name }) => {
  await using bed = await makeBed(server, name);
  const { transactions } = bed;
  let added: Promise<unknown> | undefined;
  let isAdded = false;
  const seen = await transactions.read(function* (): Work<readonly unknown[]> {
    const before = (yield* get("SELECT count FROM counts WHERE name = ?", "a"))?.["count"];
    added ??= handled(transactions.write(() => run(ADD, 1, "a")).finally(() => void (isAdded = true)));
    while (!isAdded) yield* get("SELECT 1");
    return [before, (yield* get("SELECT count FROM counts WHERE name = ?", "a"))?.["count"]];
  });
  await added;
  assertEquals([seen, await bed.counts()], [[0, 0], [1, 0]]);
  assertMatch(await refusal(transactions.read(() => run(ADD, 1, "a"))), /^read_only /);
});

postgres.test("a statement that is alone is a transaction by itself, whatever the role has set", async (database) => {
  await using bed = await makeBed(database.server, database.name);
  const { transactions } = bed;
  await database.psql(
    `ALTER ROLE weir IN DATABASE ${database.name} SET default_transaction_isolation = 'serializable'`,
  );
  const level = "SELECT current_setting('transaction_isolation') AS level";
  const levels = [
    await transactions.read(() => alone(all(level))),
    await transactions.read(() => all(level)),
    await transactions.write(() => alone(all(level))),
    await transactions.write(() => all(level)),
  ];
  // The second one was begun for reading alone.
  assertEquals(levels.map(([row]) => row?.["level"]), [
    ...["read committed", "repeatable read", "read committed", "read committed"],
  ]);
  const changed = await transactions.write(function* (): Work<number> {
    yield* run(sqliteOnly("VACUUM"));
    const count = yield* alone(run(ADD, 2, "a"));
    return count + (yield* run(sqliteOnly("VACUUM")));
  });
  assertEquals([changed, bed.told.length], [1, 3]);
  assertEquals(await bed.counts(), [2, 0]);
  const failing = () => alone(run("UPDATE counts SET count = count + 1 WHERE 1 / count > 0"));
  assertMatch((await assertRejects(() => transactions.write(failing))).message, /division by zero/);
  const followed = function* (): Work<void> {
    yield* alone(run(ADD, 0, "a"));
    yield* run(ADD, 2, "a");
  };
  assertMatch(
    (await assertRejects(() => transactions.write(followed))).message,
    /is followed by another$/,
  );
  assertEquals(await bed.counts(), [2, 0]);
});

postgres.test("operations that are in each other's way are done anew until each is done once", async (database) => {
  await using bed = await makeBed(database.server, database.name);
  const { transactions } = bed;
  await database.psql(MEETING);
  // Each locks two rows in another order than its neighbour. The first two lock each other out: both have a row before
  // they ask for the other one.
  const works = Array.from({ length: 10 }, (_, index) =>
    transactions.write(function* (): Work<void> {
      const names = index % 2 === 0 ? ["a", "b"] : ["b", "a"];
      for (const name of names) {
        yield* run(ADD, 1, name);
        yield* get("SELECT meet()");
      }
    }));
  await Promise.all(works);
  assertEquals(await bed.counts(), [10, 10]);
  assertEquals(bed.told.length, 10);
  assert(transactions.retries > 0);
});

postgres.test("an operation that saw another come before it is undone and done anew, ten times at most", async ({ server, name }) => {
  await using bed = await makeBed(server, name);
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
  assertEquals(await transactions.write(conflicting(9)), 10);
  assertEquals([await bed.counts(), transactions.retries], [[1, 0], 9]);
  assertMatch(
    await refusal(transactions.write(conflicting(10))),
    /^busy Cannot use the store: 10 conflicts with others/,
  );
  assertEquals(await bed.counts(), [1, 0]);
});

ownPostgres.test("an operation whose connection breaks is busy, and is done once or not at all", async (server) => {
  await using bed = await makeBed(server, await server.createDatabase());
  const work = function* (): Work<void> {
    yield* run(ADD, 1, "a");
    yield* get("SELECT pg_sleep(60)");
  };
  for (const end of [() => server.breakConnections(), () => server.stop("immediate"), () => server.kill()]) {
    const asked = refusal(bed.transactions.write(work));
    await sleeping(server);
    await end();
    assertMatch(await asked, /^busy /);
    if (!server.isRunning) await server.start();
    await eventually([0, 0], () => bed.counts());
  }
});

postgres.test("an operation whose commit is not answered is busy, and is never done twice", async (database) => {
  await using bed = await makeBed(database.server, database.name);
  // The commit is held up, while the client is cut off.
  await using held = await HeldCommits.prepare(database);
  await held.hold("counts");
  let tries = 0;
  const asked = refusal(bed.transactions.write(function* (): Work<void> {
    tries++;
    yield* run(ADD, 1, "a");
  }));
  await held.caught();
  bed.cut();
  assertMatch(await asked, /^busy /);
  assertEquals(tries, 1);
  await held.letGo();
  // The server has carried it out all the same; the caller, who does not know, has a key to ask again.
  await eventually([1, 0], () => bed.counts());
});

/** Who calls `meet` goes on when another one has called it as well. */
const MEETING = `
  CREATE SEQUENCE met;
  CREATE FUNCTION meet() RETURNS void LANGUAGE plpgsql AS 'BEGIN
    PERFORM nextval(''met'');
    WHILE (SELECT last_value FROM met) < 2 LOOP PERFORM pg_sleep(0.002); END LOOP;
  END';
  GRANT ALL ON SEQUENCE met TO weir`;

/** Transactions on a database with two counts, over connections that can be cut. */
async function makeBed(server: SharedPostgresServer, database: string) {
  const counts =
    "CREATE TABLE counts (name TEXT PRIMARY KEY, count BIGINT); ALTER TABLE counts OWNER TO weir; " +
    "INSERT INTO counts VALUES ('a', 0), ('b', 0)";
  await server.psql(counts, database);
  const relay = await startTcpRelay(server.port);
  const pool = new PostgresPool({
    login: new Credential(
      parsePostgresAddress(server.url(database).replace(`:${server.port}`, `:${relay.port}`)),
    ),
    clock: systemClock,
    random: Math.random,
    size: 8,
    maxWaiting: 1_000,
    waitMs: 300_000,
    ...NO_LIMITS,
  });
  const told: number[] = [];
  const transactions = new PostgresTransactions(pool, {
    clock: systemClock,
    random: Math.random,
    onCommit: (elapsedMs) => told.push(elapsedMs),
  });
  return {
    transactions,
    /** The durations that were reported, one for each commit. */
    told,
    /** Breaks all connections between here and the server. */
    cut: () => relay.dropAll({ reset: true }),
    async counts(): Promise<readonly unknown[]> {
      const rows = await transactions.read(() => all("SELECT count FROM counts ORDER BY name"));
      return rows.map(({ count }) => count);
    },
    async [Symbol.asyncDispose]() {
      await pool.close();
      await relay[Symbol.asyncDispose]();
    },
  };
}
