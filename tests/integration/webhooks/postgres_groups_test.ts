import { assertEquals } from "#assert";
import {
  ACKNOWLEDGED,
  addEndpoint,
  addEvent,
  claim,
  claimRuns,
  execution,
  finish,
  NOW,
  saveVersion,
} from "../../contract/webhook_store_bed.ts";
import { handled } from "../../harness/handled.ts";
import { connectTo, HeldCommits, openStoreAt, postgres } from "../../harness/postgres_fixture.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import type { PostgresDatabase } from "../../harness/postgres_server.ts";
import { eventually, until } from "../../harness/until.ts";
import { acceptExecution } from "../../../src/webhooks/store/operations/accept.ts";
import { findDelivery } from "../../../src/webhooks/store/operations/deliveries.ts";
import {
  releaseDeliveryClaims,
  renewClaims,
} from "../../../src/webhooks/store/operations/delivery_claims.ts";
import {
  listExecutions,
  releaseExecutionClaims,
  renewExecutionClaims,
} from "../../../src/webhooks/store/operations/executions.ts";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import type { Operation, WebhookStore } from "../../../src/webhooks/store/store.ts";
import type { PostgresConnection } from "../../../src/webhooks/store/postgres/connection.ts";

/** The number of calls in a group. */
const CALLS = 20;

/** Calls so often, and answers what became of each, in words. */
function outcomes(call: (index: number) => Promise<unknown>): Promise<readonly string[]> {
  return handled(Promise.all(Array.from({ length: CALLS }, (_, index) =>
    call(index).then(
      (value) =>
        typeof value === "object" && value !== null && "kind" in value ? `${value.kind}` : `${value}`,
      ({ code }) => `${code}`,
    ))));
}

/** Accepts an execution under the key of a number. */
function acceptor(store: WebhookStore) {
  return (index: number) => {
    const idempotency = { scope: "s", key: `k${index}`, bodyHash: "h" };
    return store.write(acceptExecution, execution(), { now: NOW, idempotency });
  };
}

postgres.test("a group whose commit had no answer is written once, however often it is repeated", async (database) => {
  await using relay = await startTcpRelay(database.server.port);
  await using store = await openStoreAt(database.url().replace(`:${database.server.port}`, `:${relay.port}`));
  await saveVersion(store);
  const to = await addEndpoint(store);
  for (let index = 0; index < CALLS; index++) await addEvent(store);
  const claims = await claim(store, [to], { max: CALLS });
  await using held = await HeldCommits.prepare(database);
  const accept = acceptor(store);
  const end = (index: number) => {
    const claimed = claims[index];
    return claimed === undefined
      ? Promise.reject(new Error("no claim"))
      : finish(store, claimed, ACKNOWLEDGED);
  };
  const cases = [
    { table: "execution", call: accept, count: "SELECT count(*) FROM execution", repeated: "replayed" },
    {
      table: "delivery",
      call: end,
      repeated: "false",
      count: "SELECT count(*) FROM delivery WHERE state = 'acknowledged'",
    },
  ];
  for (const { table, call, count, repeated } of cases) {
    await held.hold(table);
    const unanswered = outcomes(call);
    await held.caught();
    relay.dropAll();
    assertEquals(new Set(await unanswered), new Set(["busy"]));
    await held.letGo();
    await eventually(`${CALLS}`, () => database.psql(count));
    await database.psql(`DROP TRIGGER held ON ${table}`);
    assertEquals(new Set(await outcomes(call)), new Set([repeated]));
    assertEquals(await database.psql(count), `${CALLS}`);
  }
  await store.close();
  assertEquals((await checkStore(database.url())).problems, []);
});

postgres.test("a group whose connection ends before its commit is written by its repetition", async (database) => {
  await using store = await openStoreAt(database.url());
  await saveVersion(store);
  await using lock = await Lock.connect(database);
  await lock.take("LOCK TABLE idempotency IN ACCESS EXCLUSIVE MODE");
  const accept = acceptor(store);
  const cut = outcomes(accept);
  await lock.awaited();
  await lock.endWaiting();
  assertEquals(new Set(await cut), new Set(["busy"]));
  await lock.release();
  assertEquals((await store.read(listExecutions, { limit: 100 })).items, []);
  assertEquals(new Set(await outcomes(accept)), new Set(["new"]));
  assertEquals((await store.read(listExecutions, { limit: 100 })).items.length, CALLS);
});

postgres.test("of a group with a locked row only that call waits to its limit in vain", async (database) => {
  // The others wait for each other's commits, which take their time on a slow machine.
  await using store = await openStoreAt(database.url(), { lockTimeoutMs: 1_000 });
  const to = await addEndpoint(store);
  for (let index = 0; index < CALLS; index++) await addEvent(store);
  const claims = await claim(store, [to], { max: CALLS });
  const [locked] = claims;
  await using lock = await Lock.connect(database);
  await lock.take(`SELECT 1 FROM delivery WHERE id = '${locked?.delivery.id}' FOR UPDATE`);
  const ended = await Promise.allSettled(claims.map((claimed) => finish(store, claimed, ACKNOWLEDGED)));
  assertEquals(ended.map(({ status }) => status), ["rejected", ...Array(CALLS - 1).fill("fulfilled")]);
  await lock.release();
  for (const [index, { delivery: { id } }] of claims.entries()) {
    const { delivery } = await store.read(findDelivery, id) ?? {};
    assertEquals(delivery?.state, index === 0 ? "attempting" : "acknowledged");
  }
});

postgres.test("claims are renewed and released in the order in which groups lock, so that none deadlock", async (database) => {
  await using store = await openStoreAt(database.url());
  await saveVersion(store);
  const to = await addEndpoint(store);
  for (let index = 0; index < 3; index++) {
    await addEvent(store);
    await store.write(acceptExecution, execution(), { now: NOW });
  }
  assertEquals([(await claim(store, [to])).length, (await claimRuns(store)).length], [3, 3]);
  const cases: readonly (readonly [string, Operation<[readonly string[], number], unknown>])[] = [
    ["delivery", renewClaims],
    ["execution", renewExecutionClaims],
    ["delivery", releaseDeliveryClaims],
    ["execution", releaseExecutionClaims],
  ];
  await using lock = await Lock.connect(database);
  for (const [table, operation] of cases) {
    // The first row becomes the last one of the table and of the index.
    await database.psql(`UPDATE ${table} SET claim_id = 'z' || random() WHERE seq = 1`);
    const claims = await database.psql(`SELECT claim_id FROM ${table} ORDER BY seq`);
    await lock.take(`SELECT 1 FROM ${table} WHERE seq = 1 FOR UPDATE`);
    const written = handled<unknown>(store.write(operation, claims.split("\n"), NOW));
    await lock.awaited();
    const free = `SELECT count(*) FROM (SELECT 1 FROM ${table} FOR UPDATE SKIP LOCKED) AS free`;
    assertEquals([table, await database.psql(free)], [table, "2"]);
    await lock.release();
    await written;
  }
});

const WAITING = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/** A lock that another session has on rows or tables of a database. */
class Lock implements AsyncDisposable {
  readonly #database: PostgresDatabase;
  readonly #connection: PostgresConnection;

  private constructor(database: PostgresDatabase, connection: PostgresConnection) {
    this.#database = database;
    this.#connection = connection;
  }

  static async connect(database: PostgresDatabase): Promise<Lock> {
    return new Lock(database, await connectTo(database.url()));
  }

  /** Locks until the release. */
  async take(sql: string): Promise<void> {
    await this.#connection.begin("write");
    await this.#connection.query(sql, [], "rows");
  }

  /** Waits until somebody waits for it. */
  async awaited(): Promise<void> {
    await until("who waits", async () => await this.#database.psql(`SELECT count(*) > 0 ${WAITING}`) === "t");
  }

  /** Ends the sessions that wait. */
  async endWaiting(): Promise<void> {
    await this.#database.psql(`SELECT pg_terminate_backend(pid) ${WAITING}`);
  }

  async release(): Promise<void> {
    await this.#connection.rollBack();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close();
  }
}
