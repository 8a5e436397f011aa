import { systemClock } from "../../src/base/clock.ts";
import { parsePostgresAddress } from "../../src/base/postgres_address.ts";
import { PostgresConnection } from "../../src/webhooks/store/postgres/connection.ts";
import { POSTGRES_TABLES } from "../../src/webhooks/store/schema.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../src/webhooks/store/postgres/store.ts";
import { PostgresServer } from "./postgres_server.ts";
import { sharedPlace } from "./shared_places.ts";
import type { SharedPostgresServer } from "./shared_servers.ts";
import { toolAvailable } from "./tools.ts";
import { until } from "./until.ts";
import { QUIET } from "./sqlite_fixture.ts";

/** The server of the run, for all tests of a file, each with databases of its own. */
export function sharedPostgres(): () => SharedPostgresServer {
  let server: PostgresServer | undefined;
  Deno.test.beforeAll(async () => {
    const place = await sharedPlace("postgres");
    server = place && PostgresServer.at(place);
  });
  return () => {
    if (server === undefined) throw new Error("Cannot use the shared server: it is not installed");
    return server;
  };
}

/** A server for all tests of a file, which may break its connections and pause it; it runs while they do. */
export function filePostgres(): () => PostgresServer {
  return duringFile(async () => {
    // What it says belongs to no test, and so it says nothing.
    const settings = { log_min_messages: "panic" };
    return toolAvailable("postgres") ? await PostgresServer.start({ settings }) : undefined;
  });
}

/** What all tests of a file use, from before the first to after the last. */
export function duringFile<T extends AsyncDisposable>(make: () => Promise<T | undefined>): () => T {
  let made: T | undefined;
  Deno.test.beforeAll(async () => void (made = await make()));
  Deno.test.afterAll(async () => await made?.[Symbol.asyncDispose]());
  return () => {
    if (made === undefined) throw new Error("Cannot use what the file has: it is not installed");
    return made;
  };
}

/** Empty databases, one after the other: the same one is emptied, which takes a tenth of the time of making one. */
export function emptyDatabases(server: () => SharedPostgresServer): () => Promise<string> {
  let database: string | undefined;
  return async () => {
    if (database === undefined) database = await server().createDatabase();
    else await server().psql(EMPTY_STORE, database);
    return server().url(database);
  };
}

/** Takes away all that a store has kept, whichever row refers to which; `turn` is as the schema made it. */
const EMPTY_STORE = [
  "SET session_replication_role = replica",
  ...POSTGRES_TABLES.filter((table) => table !== "turn").map((table) => `DELETE FROM ${table}`),
].join(";\n");

/** Limits that nothing reaches, however slow the machine is. */
export const NO_LIMITS = { connectTimeoutMs: 60_000, statementTimeoutMs: 300_000, lockTimeoutMs: 300_000 };

/** Opens a store in a database. */
export function openStoreAt(address: string, options: Partial<PostgresStoreOptions> = {}) {
  return openPostgresStore({
    address,
    poolSize: 4,
    ...NO_LIMITS,
    logger: QUIET,
    clock: systemClock,
    ...options,
  });
}

/** Waits until a database has no session of a store any more: a session outlasts its connection for a moment. */
export async function sessionsEnded(server: SharedPostgresServer, database: string): Promise<void> {
  const sessions =
    "SELECT count(*) FROM pg_stat_activity WHERE usename = 'weir' AND datname = current_database()";
  await until("the end of all sessions", async () => await server.psql(sessions, database) === "0");
}

/** Function of a trigger that holds commits up. */
const HELD = `
  CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END'`;

/** Holds commits up that write to one of the tables given to `hold`, each until it is let go. */
export class HeldCommits implements AsyncDisposable {
  readonly #server: SharedPostgresServer;
  readonly #database: string;
  readonly #connection: PostgresConnection;

  private constructor(server: SharedPostgresServer, database: string, connection: PostgresConnection) {
    this.#server = server;
    this.#database = database;
    this.#connection = connection;
  }

  /** Prepares a database for it. */
  static async prepare(server: SharedPostgresServer, database: string): Promise<HeldCommits> {
    await server.psql(HELD, database);
    const address = parsePostgresAddress(server.url(database));
    const [host] = address.fields.hosts;
    if (host === undefined) throw new Error("Cannot hold commits up: the server has no address");
    const connection = await PostgresConnection.open(address, host, { clock: systemClock, ...NO_LIMITS });
    return new HeldCommits(server, database, connection);
  }

  /** Holds up who writes to the table, from now on. */
  async hold(table: string): Promise<void> {
    await this.#connection.query("SELECT pg_advisory_lock(1)", [], "rows");
    await this.#server.psql(
      `CREATE CONSTRAINT TRIGGER held AFTER INSERT OR UPDATE ON ${table} DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION held()`,
      this.#database,
    );
  }

  /** Waits for a commit that is held up. */
  async caught(): Promise<void> {
    const sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() " +
      "AND wait_event = 'advisory'";
    await until("a commit", async () => await this.#server.psql(sql, this.#database) === "1");
  }

  /** Lets go of what is held up. */
  async letGo(): Promise<void> {
    await this.#connection.query("SELECT pg_advisory_unlock(1)", [], "rows");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close();
  }
}
