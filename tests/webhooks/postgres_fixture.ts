import { systemClock } from "../../src/base/clock.ts";
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
