import { assertEquals } from "#assert";
import { FakeClock } from "../../harness/fake_clock.ts";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { type RedisServer, startRedis } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

const RULES = {
  "shop.yaml":
    "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {unit: year, requests_per_unit: 1000}\n",
};
const TIMEOUT_MS = 1_000;
const CALLS = 100;

const resume = (redis: RedisServer) => redis.resume();

const OUTAGES: Readonly<
  Record<
    string,
    {
      readonly takeAway: (redis: RedisServer) => unknown;
      readonly bringBack: (redis: RedisServer) => unknown;
    }
  >
> = {
  "a server that stands still": { takeAway: (redis) => redis.pause(), bringBack: resume },
  "one that is killed and started anew": {
    takeAway: (redis) => redis.kill(),
    bringBack: (redis) => redis.restartOnSamePort(),
  },
};

for (
  const [engine, [what, { takeAway, bringBack }]] of [
    ...Object.entries(OUTAGES).map((outage) => ["native", outage] as const),
    ...Object.entries(OUTAGES).slice(-1).map((outage) => ["grpc-js", outage] as const),
  ]
) {
  Deno.test({
    ...needs(
      ["redis-server"],
      `outage, ${engine}: ${what} fails each call in time, and all goes on after it`,
    ),
    async fn() {
      await using redis = await startRedis();
      const env = {
        GRPC_ENGINE: engine,
        BACKEND_TYPE: "kv",
        KV_URL: redis.url,
        KV_TIMEOUT: `${TIMEOUT_MS}ms`,
      };
      const clock = new FakeClock();
      await using weir = await ServeFixture.start({ rules: RULES, env, clock });
      using client = new GrpcClient(weir.grpcAddress);
      const outcomes = async () => {
        const calls = Array.from({ length: CALLS }, (_, call) => decide(client, "shop", `user=${call}`));
        return new Set(
          (await Promise.all(calls)).map((answer) => "code" in answer ? answer.code : "decided"),
        );
      };
      // Slow, so that no call is given up that could be answered; fast while none can be.
      let stepMs = 1;
      const ticking = setInterval(() => clock.advance(stepMs), 10);
      const recovered = () =>
        until("every call to be decided", async () => {
          clock.advance(10 * TIMEOUT_MS);
          return !(await outcomes()).has(14);
        });
      try {
        await recovered();
        await takeAway(redis);
        stepMs = TIMEOUT_MS;
        assertEquals([...await outcomes()], [14]);
        stepMs = 1;
        await bringBack(redis);
        await recovered();
        const again = `msg="Connected to the key-value cache again" address="${redis.url}"`;
        const isLogged = () => weir.log.some((line) => line.endsWith(again));
        await until("the end of the outage in the log", () => isLogged() || bringBack === resume);
      } finally {
        clearInterval(ticking);
      }
      assertEquals((await weir.stats())["ratelimit.kv_pool.batches_in_flight"], 0);
      assertEquals(await weir.page("/healthcheck"), "OK");
    },
  });
}
