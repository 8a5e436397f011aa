import { assert, assertRejects } from "#assert";
import { systemClock } from "../../src/base/clock.ts";
import { parsePostgresAddress } from "../../src/base/postgres_address.ts";
import {
  PostgresConnection,
  type PostgresConnectionOptions,
} from "../../src/webhooks/store/postgres/connection.ts";
import { POSTGRES_TABLES } from "../../src/webhooks/store/schema.ts";
import { StoreError } from "../../src/webhooks/store/store.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../src/webhooks/store/postgres/store.ts";
import { handled } from "./handled.ts";
import { type PostgresDatabase, PostgresServer, type SharedPostgresServer } from "./postgres_server.ts";
import { sharedPostgres } from "./shared_servers.ts";
import { needing, toolAvailable } from "./tools.ts";
import { eventually, until } from "./until.ts";
import { closing, type OpenedStore, QUIET } from "./sqlite_fixture.ts";

/** Limits that nothing reaches, however slow the machine is. */
export const NO_LIMITS = {
  connectTimeoutMs: 60_000,
  statementTimeoutMs: 300_000,
  lockTimeoutMs: 300_000,
  idleTimeoutMs: 300_000,
};

let shared: SharedPostgresServer | undefined;
let kept: PostgresDatabase | undefined;

/** Registers tests that have an empty database on the server of the run, which is dropped at the end of each. */
export const postgres = {
  test(name: string, run: (database: PostgresDatabase) => Promise<void>): void {
    usePostgres();
    needing("postgres").test(name, async () => {
      await using database = await serverOfRun().database();
      await run(database);
    });
  },
};

/** Registers tests that have their own server each, which they may stop and kill. */
export const ownPostgres = {
  test(name: string, run: (server: PostgresServer) => Promise<void>): void {
    needing("postgres").test(name, async () => {
      await using server = await PostgresServer.start();
      await run(server);
    });
  },
};

/** Registers tests that share a server of their file, which they may pause and whose connections they may break. */
export const postgresServer = {
  test(name: string, run: (server: PostgresServer) => Promise<void>): void {
    ownServer ??= duringFile(async () => {
      // What it says belongs to no test, and so it says nothing.
      const settings = { log_min_messages: "panic" };
      return toolAvailable("postgres") ? await PostgresServer.start({ settings }) : undefined;
    });
    const server = ownServer;
    needing("postgres").test(name, () => run(server()));
  },
};
let ownServer: (() => PostgresServer) | undefined;

/** Makes the server of the run known to the tests of this file: asked for inside of a test it would be a leak of it. */
export function usePostgres(): void {
  if (hasAsked) return;
  hasAsked = true;
  Deno.test.beforeAll(async () => void (shared = await sharedPostgres()));
}
let hasAsked = false;

/** The server of the run, after `usePostgres`. */
export function serverOfRun(): SharedPostgresServer {
  if (shared === undefined) {
    throw new Error("Cannot use the shared server: no test of the file has asked for it");
  }
  return shared;
}

/** An empty database after `usePostgres`: the same one is emptied each time, which takes a tenth of the time of making one. */
export async function emptyDatabase(): Promise<PostgresDatabase> {
  if (kept === undefined) return kept = await serverOfRun().database();
  await kept.psql(EMPTY_STORE);
  return kept;
}

/** Takes away all that a store has kept, whichever row refers to which; `turn` is as the schema made it. */
const EMPTY_STORE = [
  "SET session_replication_role = replica",
  ...POSTGRES_TABLES.filter((table) => table !== "turn").map((table) => `DELETE FROM ${table}`),
].join(";\n");

/** A resource that all tests of a file use, from before the first to after the last. */
export function duringFile<T extends AsyncDisposable>(make: () => Promise<T | undefined>): () => T {
  let made: T | undefined;
  Deno.test.beforeAll(async () => void (made = await make()));
  Deno.test.afterAll(async () => await made?.[Symbol.asyncDispose]());
  return () => {
    if (made === undefined) throw new Error("Cannot use what the file has: it is not installed");
    return made;
  };
}

/** Opens a store in a database, which an `await using` closes. */
export async function openStoreAt(
  address: string,
  options: Partial<PostgresStoreOptions> = {},
): Promise<OpenedStore & Awaited<ReturnType<typeof openPostgresStore>>> {
  const store = await openPostgresStore({
    address,
    poolSize: 4,
    ...NO_LIMITS,
    logger: QUIET,
    clock: systemClock,
    ...options,
  });
  return closing(store);
}

/** Opens a connection to the first host of an address, which an `await using` closes. */
export async function connectTo(
  url: string,
  options: Partial<PostgresConnectionOptions> = {},
): Promise<PostgresConnection & AsyncDisposable> {
  const address = parsePostgresAddress(url);
  const [host] = address.fields.hosts;
  if (host === undefined) throw new Error("Cannot connect: the address has no host");
  const limits = { clock: systemClock, ...NO_LIMITS, ...options };
  return closing(await PostgresConnection.open(address, host, limits));
}

/** The code and message of the error that a store or its connection rejects with. */
export function refusal(promise: Promise<unknown>): Promise<string> {
  return handled(
    assertRejects(() => promise).then((error) => {
      assert(error instanceof StoreError, error.stack);
      return `${error.code} ${error.message}`;
    }),
  );
}

const SLEEPING =
  "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND usename = 'weir'";

/** Waits until a query of a store's connection sleeps for a minute. */
export async function sleeping(server: PostgresServer): Promise<void> {
  await eventually("1", () => server.psql(SLEEPING));
}

/** Function of a trigger that holds commits up. */
const HELD = `
  CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END'`;

/** Holds commits up that write to one of the tables given to `hold`, each until it is let go. */
export class HeldCommits implements AsyncDisposable {
  readonly #database: PostgresDatabase;
  readonly #connection: PostgresConnection;

  private constructor(database: PostgresDatabase, connection: PostgresConnection) {
    this.#database = database;
    this.#connection = connection;
  }

  /** Prepares a database for it. */
  static async prepare(database: PostgresDatabase): Promise<HeldCommits> {
    await database.psql(HELD);
    return new HeldCommits(database, await connectTo(database.url()));
  }

  /** Holds up who writes to the table, from now on. */
  async hold(table: string): Promise<void> {
    await this.#connection.query("SELECT pg_advisory_lock(1)", [], "rows");
    await this.#database.psql(
      `CREATE CONSTRAINT TRIGGER held AFTER INSERT OR UPDATE ON ${table} DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION held()`,
    );
  }

  /** Waits for a commit that is held up. */
  async caught(): Promise<void> {
    const sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() " +
      "AND wait_event = 'advisory'";
    await until("a commit", async () => await this.#database.psql(sql) === "1");
  }

  /** Lets go of what is held up. */
  async letGo(): Promise<void> {
    await this.#connection.query("SELECT pg_advisory_unlock(1)", [], "rows");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close();
  }
}
