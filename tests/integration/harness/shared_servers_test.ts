import { assertEquals, assertRejects } from "@std/assert";
import { openKvCache } from "../../harness/open_kv.ts";
import { sharedMemcached, sharedPostgres, sharedRedis, uniqueName } from "../../harness/shared_servers.ts";
import { needs } from "../../harness/tools.ts";

const redisServer = await sharedRedis();
const memcached = await sharedMemcached();
const postgres = await sharedPostgres();

Deno.test({
  ...needs(
    ["redis-server"],
    "shared redis: leases are apart, are what Weir connects to, and are emptied in the end",
  ),
  async fn() {
    await using first = await redisServer.database();
    await using other = await redisServer.database();
    await using cache = openKvCache(first.url);
    await cache.ready;
    await cache.add([{ key: "k", addend: 3, windowEnd: 0, expiresInSeconds: 60, perSecond: false }]);
    assertEquals([await first.command("GET", "k"), await other.command("GET", "k")], ["3", null]);
    await first[Symbol.asyncDispose]();
    assertEquals(await first.command("GET", "k"), null);
  },
});

Deno.test({
  ...needs(["memcached"], "shared memcached: a key of a name that no other test has"),
  async fn() {
    const [key, other] = [uniqueName(), uniqueName()];
    assertEquals(await memcached.command(`set ${key} 0 60 1\r\n7`), ["STORED"]);
    assertEquals([await memcached.value(key), await memcached.value(other)], ["7", undefined]);
  },
});

Deno.test({
  ...needs(
    ["postgres"],
    "shared PostgreSQL: databases are apart, and dropped with their connections in the end",
  ),
  async fn() {
    const database = await postgres.database();
    await using other = await postgres.database();
    const tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    await database.restore("CREATE TABLE one (id INTEGER)");
    assertEquals([await database.psql(tables), await other.psql(tables)], ["1", "0"]);
    const sleep = assertRejects(() => database.psql("SELECT pg_sleep(600)"));
    await database[Symbol.asyncDispose]();
    await sleep;
    assertEquals(
      await other.psql(`SELECT count(*) FROM pg_database WHERE datname = '${database.name}'`),
      "0",
    );
  },
});
