import { assertEquals } from "#assert";
import { freePort } from "../harness/free_port.ts";
import { startRedis } from "../harness/redis_server.ts";
import { ServeFixture } from "../harness/serve_fixture.ts";
import { needs } from "../harness/tools.ts";
import { eventually, until } from "../harness/until.ts";

for (
  const [env, warnings] of [
    [{ BACKEND_TYPE: "memory" }, 0],
    [{ BACKEND_TYPE: "memory", MEMORY_MAX_KEYS: "1000000000" }, 1],
  ] as const
) {
  Deno.test(`open cache: with ${JSON.stringify(env)} a heap that is too small is ${warnings} warnings`, async () => {
    await using service = await ServeFixture.start({ env });
    const lines = service.log.filter((line) =>
      /MEMORY_MAX_KEYS 1000000000 may require 333850 MB of heap/.test(line)
    );
    assertEquals(lines.length, warnings);
  });
}

const UNREACHABLE: Readonly<Record<string, (address: string) => Record<string, string>>> = {
  "key-value": (address) => ({ BACKEND_TYPE: "kv", KV_URL: address }),
  "key-value with a password": (address) => ({
    BACKEND_TYPE: "kv",
    KV_URL: `redis://weir:hidden@${address}`,
  }),
  "memcached-style": (address) => ({ BACKEND_TYPE: "mc", MC_HOST_PORT: address }),
};

for (const [name, envOf] of Object.entries(UNREACHABLE)) {
  Deno.test(`open cache: a ${name} cache that cannot be reached is a note of the health check`, async () => {
    const address = `127.0.0.1:${freePort()}`;
    await using service = await ServeFixture.start({ env: envOf(address) });
    const note = new RegExp(`^OK\ncache: no connection to [^ ]*${address}: .+\n$`);
    const page = await until("the note", async () => {
      const text = await service.page("/healthcheck");
      return note.test(text) && text;
    });
    assertEquals(page.includes("hidden"), false);
  });
}

Deno.test({
  ...needs(["redis-server"], "open cache: the note of a cache that was lost ends with its outage"),
  async fn() {
    await using redis = await startRedis();
    await using service = await ServeFixture.start({
      env: { BACKEND_TYPE: "kv", KV_URL: redis.url, LOG_LEVEL: "info" },
    });
    const shows = (text: string) => async () => (await service.page("/healthcheck")).startsWith(text);
    await eventually("OK", () => service.page("/healthcheck"));
    await redis.kill();
    await until("a note", shows("OK\ncache: "));
    await redis.restartOnSamePort();
    await until("no note", async () => await service.page("/healthcheck") === "OK");
  },
});
