import { systemClock } from "../../src/base/clock.ts";
import { POSTGRES_TABLES } from "../../src/webhooks/postgres_schema.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../src/webhooks/postgres_store.ts";
import { PostgresServer } from "../support/postgres_server.ts";
import { toolAvailable } from "../support/tools.ts";
import { QUIET } from "./sqlite_fixture.ts";

/** A server for all tests of a file, each with databases of its own; it runs while they do. */
export function sharedPostgres(): () => PostgresServer {
  let server: PostgresServer | undefined;
  Deno.test.beforeAll(async () => {
    // What it says belongs to no test, and so it says nothing.
    const settings = { log_min_messages: "panic" };
    if (toolAvailable("postgres")) server = await PostgresServer.start({ settings });
  });
  Deno.test.afterAll(async () => await server?.[Symbol.asyncDispose]());
  return () => {
    if (server === undefined) throw new Error("Cannot use the shared server: it was not started");
    return server;
  };
}

/** Empty databases, one after the other: the same one is emptied, which takes a tenth of the time of making one. */
export function emptyDatabases(server: () => PostgresServer): () => Promise<string> {
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

/** Opens a store in a database. */
export function openStoreAt(address: string, options: Partial<PostgresStoreOptions> = {}) {
  return openPostgresStore({
    address,
    poolSize: 4,
    connectTimeoutMs: 5_000,
    statementTimeoutMs: 20_000,
    lockTimeoutMs: 20_000,
    logger: QUIET,
    clock: systemClock,
    ...options,
  });
}
