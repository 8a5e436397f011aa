import { assertEquals } from "@std/assert";
import { RULES } from "../../scripts/bench/rate_limit_message.ts";
import { runOutage } from "../../scripts/soak/outage.ts";
import { outageTable, problemsOf } from "../../scripts/soak/verdict.ts";
import { type RedisServer, startRedis } from "../support/redis_server.ts";
import { needs } from "../support/tools.ts";
import { startWeir } from "../support/weir_process.ts";

const TIMEOUT_MS = 250;
const RATE = 300;
/** Wider than those of the soak: here other tests take the processor away. */
const LIMITS = { rate: RATE, callMs: TIMEOUT_MS + 500, growthMb: 20, recoveryMs: 5_000 };

Deno.test({
  ...needs(["redis-server"], "outage: a server that stands still costs no memory, and all goes on after it"),
  fn: () => checkOutage(5, (redis) => ({ takeAway: () => redis.pause(), bringBack: () => redis.resume() })),
});

Deno.test({
  ...needs(["redis-server"], "outage: so does one that was killed and started anew"),
  fn: () =>
    checkOutage(2, (redis) => ({ takeAway: () => redis.kill(), bringBack: () => redis.restartOnSamePort() })),
});

type Acts = Pick<Parameters<typeof runOutage>[0], "takeAway" | "bringBack">;

async function checkOutage(away: number, acts: (redis: RedisServer) => Acts): Promise<void> {
  await using redis = await startRedis();
  await using weir = await startWeir({
    rules: { "bench.yaml": RULES },
    env: { BACKEND_TYPE: "kv", KV_URL: redis.url, KV_TIMEOUT: `${TIMEOUT_MS}ms`, LOG_LEVEL: "warning" },
  });
  const facts = await runOutage({
    weir: { pid: weir.pid, port: Number(weir.grpcAddress.split(":").at(-1)) },
    ...acts(redis),
    rate: RATE,
    seconds: { warmUp: 2, before: 1.5, away, back: 7 },
  });
  assertEquals(problemsOf(facts, LIMITS), [], outageTable({ here: facts }));
  assertEquals(await weir.stop(), 0);
}
