import { assertEquals } from "@std/assert";
import { RULES } from "../../harness/load/rate_limit_message.ts";
import { runOutage } from "../../harness/outage_load.ts";
import { outageTable, problemsOf } from "../../harness/outage_verdict.ts";
import { type RedisServer, startRedis } from "../../harness/redis_server.ts";
import { needs } from "../../harness/tools.ts";
import { startWeir } from "../../harness/weir_process.ts";

/** No machine stands still for so long that a call is given up which the server could answer. */
const TIMEOUT_MS = 3_000;
const RATE = 60;
/** Far longer than a call may take. */
const AWAY_MS = 9_000;
/** Wider than those of the soak: here other tests take the processor away. A call waits for its own limit, not for the server. */
const LIMITS = { rate: RATE, callMs: AWAY_MS - 2_000, growthMb: 50, recoveryMs: 30_000 };

Deno.test({
  ...needs(["redis-server"], "outage: a server that stands still costs no memory, and all goes on after it"),
  fn: () => checkOutage((redis) => ({ takeAway: () => redis.pause(), bringBack: () => redis.resume() })),
});

Deno.test({
  ...needs(["redis-server"], "outage: so does one that was killed and started anew"),
  fn: () =>
    checkOutage((redis) => ({ takeAway: () => redis.kill(), bringBack: () => redis.restartOnSamePort() })),
});

type Acts = Pick<Parameters<typeof runOutage>[0], "takeAway" | "bringBack">;

async function checkOutage(acts: (redis: RedisServer) => Acts): Promise<void> {
  await using redis = await startRedis();
  await using weir = await startWeir({
    rules: { "bench.yaml": RULES },
    env: { BACKEND_TYPE: "kv", KV_URL: redis.url, KV_TIMEOUT: `${TIMEOUT_MS}ms`, LOG_LEVEL: "warning" },
  });
  const facts = await runOutage({
    weir: { pid: weir.pid, port: Number(weir.grpcAddress.split(":").at(-1)) },
    ...acts(redis),
    rate: RATE,
    seconds: { warmUp: 1.5, before: 1, away: AWAY_MS / 1_000, back: 40 },
  });
  assertEquals(problemsOf(facts, LIMITS), [], outageTable({ here: facts }));
  assertEquals(await weir.stop(), 0);
}
