import { assertEquals } from "@std/assert";
import { RULES } from "../harness/load/rate_limit_message.ts";
import { runOutage } from "../harness/outage_load.ts";
import { outageTable, problemsOf } from "../harness/outage_verdict.ts";
import { type RedisServer, startRedis } from "../harness/redis_server.ts";
import { needs } from "../harness/tools.ts";
import { startWeir } from "../harness/weir_process.ts";
import { bySize } from "./soak_options.ts";

/** Long enough that a busy machine refuses no call while redis is available. */
const TIMEOUT_MS = 1_000;
const RATE = bySize({ short: 400, full: 1_000 });
/** Memory takes a minute or so under load until it is level; a short run allows for more growth instead. */
const SECONDS = bySize({
  short: { warmUp: 2, before: 1, away: 3, back: 30 },
  full: { warmUp: 30, before: 30, away: 60, back: 30 },
});
const LIMITS = {
  rate: RATE,
  callMs: TIMEOUT_MS + 2_000,
  growthMb: bySize({ short: 50, full: 20 }),
  recoveryMs: 20_000,
};

const OUTAGES: Readonly<
  Record<string, (redis: RedisServer) => Pick<Parameters<typeof runOutage>[0], "takeAway" | "bringBack">>
> = {
  "stands still": (redis) => ({ takeAway: () => redis.pause(), bringBack: () => redis.resume() }),
  "is killed": (redis) => ({ takeAway: () => redis.kill(), bringBack: () => redis.restartOnSamePort() }),
};

for (const [name, acts] of Object.entries(OUTAGES)) {
  Deno.test({
    ...needs(["redis-server"], `outage under load: redis ${name}, memory stays level and calls recover`),
    async fn() {
      await using redis = await startRedis();
      await using weir = await startWeir({
        rules: { "bench.yaml": RULES },
        env: {
          ...{ BACKEND_TYPE: "kv", KV_URL: redis.url, KV_TIMEOUT: `${TIMEOUT_MS}ms` },
          ...{ LOG_LEVEL: "warning", DISABLE_STATS: "true" },
        },
      });
      const port = Number(weir.grpcAddress.split(":").at(-1));
      const facts = await runOutage({
        weir: { pid: weir.pid, port },
        ...acts(redis),
        rate: RATE,
        seconds: SECONDS,
      });
      const table = outageTable({ [name]: facts });
      console.log(table);
      assertEquals(problemsOf(facts, LIMITS), [], table);
      assertEquals(await weir.stop(), 0);
    },
  });
}
