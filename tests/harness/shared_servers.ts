import { Memcached } from "./memcached.ts";
import { PostgresServer, type SharedPostgresServer } from "./postgres_server.ts";
import { redisCommand, type RedisReply } from "./redis_command.ts";
import { REDIS_DATABASES, sharedPlace } from "./shared_places.ts";

/**
 * Servers that all tests of a run share. The test task starts them by `startSharedServers` of `shared_places.ts` and
 * names them to the tests in an environment variable; without it (`deno test FILE`) the first who asks starts one, which
 * ends with the file. Ask at the top level of the module, as a server that is started inside a test is a leak of that
 * test, and lease a part in each test:
 *
 *     const server = await sharedRedis();
 *     …
 *     await using redis = await server.database(); // in place of `await startRedis()`
 *
 * A redis database has `port`, `url` (as `KV_URL` takes it) and `command`; one of PostgreSQL (`sharedPostgres()`, or
 * `postgres.test` of `postgres_fixture.ts`) has `name`, `url()`, `psql()` and `restore()`. memcached
 * (`sharedMemcached()`, in place of `startMemcached()`) has no parts: put `uniqueName()` into keys (`CACHE_KEY_PREFIX`,
 * a domain). `PageBrowser.launch()` connects to the shared Chromium. A test that stops, kills, pauses or configures
 * a server, or looks at numbers of all of it (INFO, `stats`), starts its own. Where the program is missing, asking
 * does not fail but using does; `needs` skips such tests.
 */
export async function sharedRedis(): Promise<SharedRedis> {
  return new SharedRedis((await sharedPlace("redis"))?.port ?? 0);
}

/** The memcached of the run; its keys are seen by all tests. */
export async function sharedMemcached(): Promise<SharedMemcached> {
  return new Memcached((await sharedPlace("memcached"))?.port ?? 0, {});
}

/** The PostgreSQL server of the run. */
export async function sharedPostgres(): Promise<SharedPostgresServer> {
  return PostgresServer.at(await sharedPlace("postgres") ?? { port: 0, folder: "" });
}

/** A memcached that tests share. */
type SharedMemcached = Pick<Memcached, "port" | "url" | "command" | "value" | "secondsLeft">;

/** A name that no other test of the run has; a letter, digits and letters. */
export function uniqueName(): string {
  return `t${crypto.randomUUID().replaceAll("-", "")}`;
}

/** A redis-server that tests lease databases of. */
class SharedRedis {
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /** Leases an empty database, which no other test gets. */
  async database(): Promise<RedisDatabase> {
    const number = Number(await redisCommand(["INCR", "leased_databases"], { port: this.#port }));
    if (number < REDIS_DATABASES) return new RedisDatabase(this.#port, number);
    throw new Error(`Cannot lease a redis database: all ${REDIS_DATABASES} are in use`);
  }
}

/** A database of a shared redis-server; emptied at the end of an `await using`. */
export class RedisDatabase implements AsyncDisposable {
  readonly port: number;
  /** Address with the number of the database, as `KV_URL` takes it. */
  readonly url: string;
  readonly #number: number;

  constructor(port: number, number: number) {
    this.port = port;
    this.url = `redis://127.0.0.1:${port}/${number}`;
    this.#number = number;
  }

  /** Sends one command over its own connection; lists come back with a line for each element. */
  async command(...args: readonly (string | number)[]): Promise<RedisReply> {
    return await redisCommand(args.map(String), { port: this.port, database: this.#number });
  }

  /** Empties the database. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.command("FLUSHDB");
  }
}
