import { assertEquals } from "#assert";
import { RULES } from "../harness/bench_rules.ts";
import { runOutage } from "../harness/outage_load.ts";
import { outageTable, problemsOf } from "../harness/outage_verdict.ts";
import { type RedisServer, startRedis } from "../harness/redis_server.ts";
import { needs } from "../harness/tools.ts";
import { startWeir } from "../harness/weir_process.ts";
import { bySize } from "./soak_options.ts";

/** Long enough that a busy machine refuses no call while redis is available. */
const TIMEOUT_MS = 3_000;
const RATE = bySize({ short: 400, full: 1_000 });
/** Memory takes minutes under load until it is level, so that an outage may add some; in full that is 0.7 KB a call. */
const SECONDS = bySize({
  short: { warmUp: 2, before: 1, away: 9, back: 40 },
  full: { warmUp: 30, before: 30, away: 90, back: 40 },
});
/** A call takes at most its timeout and what a busy machine adds; one that waits for redis itself takes longer. */
const LIMITS = {
  rate: RATE,
  callMs: bySize({ short: 7_000, full: 30_000 }),
  growthMb: 60,
  recoveryMs: 30_000,
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
          BACKEND_TYPE: "kv",
          KV_URL: redis.url,
          KV_TIMEOUT: `${TIMEOUT_MS}ms`,
          LOG_LEVEL: "warning",
          DISABLE_STATS: "true",
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
