import { assertEquals } from "@std/assert";
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
import { HeldCommits, NO_LIMITS, openStoreAt, sharedPostgres } from "../../harness/postgres_fixture.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { parsePostgresAddress } from "../../../src/base/postgres_address.ts";
import { acceptExecution } from "../../../src/webhooks/store/accept.ts";
import { findDelivery } from "../../../src/webhooks/store/deliveries.ts";
import { releaseDeliveryClaims, renewClaims } from "../../../src/webhooks/store/delivery_claims.ts";
import {
  listExecutions,
  releaseExecutionClaims,
  renewExecutionClaims,
} from "../../../src/webhooks/store/executions.ts";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import { PostgresConnection } from "../../../src/webhooks/store/postgres/connection.ts";

const server = sharedPostgres();

/** How many calls go together. */
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

Deno.test({
  ...needs(["postgres"], "a group whose commit had no answer is written once, however often it is repeated"),
  async fn() {
    const database = await server().createDatabase();
    const url = server().url(database);
    await using relay = await startTcpRelay(server().port);
    const store = await openStoreAt(url.replace(`:${server().port}`, `:${relay.port}`));
    await saveVersion(store);
    const to = await addEndpoint(store);
    for (let index = 0; index < CALLS; index++) await addEvent(store);
    const claims = await claim(store, [to], { max: CALLS });
    await using held = await HeldCommits.prepare(server(), database);
    const accept = (index: number) => {
      const idempotency = { scope: "s", key: `k${index}`, bodyHash: "h" };
      return store.write(acceptExecution, execution(), { now: NOW, idempotency });
    };
    const end = (index: number) => {
      const claimed = claims[index];
      return claimed === undefined
        ? Promise.reject(new Error("no claim"))
        : finish(store, claimed, ACKNOWLEDGED);
    };
    const cases = [
      { table: "execution", call: accept, count: "SELECT count(*) FROM execution", repeated: "replayed" },
      {
        ...{ table: "delivery", call: end, repeated: "false" },
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
      await until("the commit", async () => await server().psql(count, database) === `${CALLS}`);
      await server().psql(`DROP TRIGGER held ON ${table}`, database);
      assertEquals(new Set(await outcomes(call)), new Set([repeated]));
      assertEquals(await server().psql(count, database), `${CALLS}`);
    }
    await store.close();
    assertEquals((await checkStore(url)).problems, []);
  },
});

Deno.test({
  ...needs(["postgres"], "a group whose connection ends before its commit is written by its repetition"),
  async fn() {
    const database = await server().createDatabase();
    const url = server().url(database);
    const store = await openStoreAt(url);
    await saveVersion(store);
    await using lock = await Lock.connect(url);
    await lock.take("LOCK TABLE idempotency IN ACCESS EXCLUSIVE MODE");
    const accept = (index: number) => {
      const idempotency = { scope: "s", key: `k${index}`, bodyHash: "h" };
      return store.write(acceptExecution, execution(), { now: NOW, idempotency });
    };
    const cut = outcomes(accept);
    await lock.awaited(database);
    await server().psql(END_WAITING, database);
    assertEquals(new Set(await cut), new Set(["busy"]));
    await lock.release();
    assertEquals((await store.read(listExecutions, { limit: 100 })).items, []);
    assertEquals(new Set(await outcomes(accept)), new Set(["new"]));
    assertEquals((await store.read(listExecutions, { limit: 100 })).items.length, CALLS);
    await store.close();
  },
});

Deno.test({
  ...needs(["postgres"], "of a group with a locked row only that call waits to its limit in vain"),
  async fn() {
    const database = await server().createDatabase();
    const url = server().url(database);
    const store = await openStoreAt(url, { lockTimeoutMs: 200 });
    const to = await addEndpoint(store);
    for (let index = 0; index < CALLS; index++) await addEvent(store);
    const claims = await claim(store, [to], { max: CALLS });
    const [locked] = claims;
    await using lock = await Lock.connect(url);
    await lock.take(`SELECT 1 FROM delivery WHERE id = '${locked?.delivery.id}' FOR UPDATE`);
    const ended = await Promise.allSettled(claims.map((claimed) => finish(store, claimed, ACKNOWLEDGED)));
    assertEquals(ended.map(({ status }) => status), ["rejected", ...Array(CALLS - 1).fill("fulfilled")]);
    await lock.release();
    for (const [index, { delivery: { id } }] of claims.entries()) {
      const { delivery } = await store.read(findDelivery, id) ?? {};
      assertEquals(delivery?.state, index === 0 ? "attempting" : "acknowledged");
    }
    await store.close();
  },
});

Deno.test({
  ...needs(
    ["postgres"],
    "claims are renewed and released in the order in which groups lock, so that none deadlock",
  ),
  async fn() {
    const database = await server().createDatabase();
    const url = server().url(database);
    const store = await openStoreAt(url);
    await saveVersion(store);
    const to = await addEndpoint(store);
    for (let index = 0; index < 3; index++) {
      await addEvent(store);
      await store.write(acceptExecution, execution(), { now: NOW });
    }
    assertEquals([(await claim(store, [to])).length, (await claimRuns(store)).length], [3, 3]);
    const cases = [
      { table: "delivery", write: (ids: readonly string[]) => store.write(renewClaims, ids, NOW) },
      { table: "execution", write: (ids: readonly string[]) => store.write(renewExecutionClaims, ids, NOW) },
      { table: "delivery", write: (ids: readonly string[]) => store.write(releaseDeliveryClaims, ids, NOW) },
      {
        table: "execution",
        write: (ids: readonly string[]) => store.write(releaseExecutionClaims, ids, NOW),
      },
    ];
    await using lock = await Lock.connect(url);
    for (const { table, write } of cases) {
      // The first row becomes the last one of the table and of the index.
      await server().psql(`UPDATE ${table} SET claim_id = 'z' || random() WHERE seq = 1`, database);
      const claims = await server().psql(`SELECT claim_id FROM ${table} ORDER BY seq`, database);
      await lock.take(`SELECT 1 FROM ${table} WHERE seq = 1 FOR UPDATE`);
      const written = handled<unknown>(write(claims.split("\n")));
      await lock.awaited(database);
      const free = `SELECT count(*) FROM (SELECT 1 FROM ${table} FOR UPDATE SKIP LOCKED) AS free`;
      assertEquals([table, await server().psql(free, database)], [table, "2"]);
      await lock.release();
      await written;
    }
    await store.close();
  },
});

const WAITING = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
const END_WAITING = `SELECT pg_terminate_backend(pid) ${WAITING}`;

/** A lock of another session. */
class Lock implements AsyncDisposable {
  readonly #connection: PostgresConnection;

  private constructor(connection: PostgresConnection) {
    this.#connection = connection;
  }

  static async connect(url: string): Promise<Lock> {
    const address = parsePostgresAddress(url);
    const [host] = address.fields.hosts;
    if (host === undefined) throw new Error("Cannot lock: the server has no address");
    return new Lock(await PostgresConnection.open(address, host, { clock: systemClock, ...NO_LIMITS }));
  }

  /** Locks until the release. */
  async take(sql: string): Promise<void> {
    await this.#connection.begin("write");
    await this.#connection.query(sql, [], "rows");
  }

  /** Waits until somebody waits for it. */
  async awaited(database: string): Promise<void> {
    const sql = `SELECT count(*) > 0 ${WAITING}`;
    await until("who waits", async () => await server().psql(sql, database) === "t");
  }

  async release(): Promise<void> {
    await this.#connection.rollBack();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close();
  }
}
