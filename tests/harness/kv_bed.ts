import { type RedisOptions, type RedisServer, startRedis } from "./redis_server.ts";
import { type RedisDatabase, sharedRedis } from "./shared_servers.ts";
import { needs } from "./tools.ts";

const shared = await sharedRedis();

/** A test with a database of the shared redis-server. */
export function testKv(name: string, run: (redis: RedisDatabase) => Promise<void>): void {
  testWith(name, () => shared.database(), run);
}

/** A test with its own redis-server, which it may stop, pause and configure. */
export function testRedis(
  name: string,
  run: (redis: RedisServer) => Promise<void>,
  options: RedisOptions = {},
): void {
  testWith(name, () => startRedis(options), run);
}

function testWith<Server extends AsyncDisposable>(
  name: string,
  start: () => Promise<Server>,
  run: (server: Server) => Promise<void>,
): void {
  Deno.test({
    ...needs(["redis-server"], name),
    async fn() {
      await using server = await start();
      await run(server);
    },
  });
}
