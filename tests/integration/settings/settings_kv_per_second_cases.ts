import { startRedis } from "../../harness/redis_server.ts";
import { compare, type SettingCases, shopRequest } from "./settings_case.ts";
import { PER_SECOND, REDIS, RULES, SHARED_REDIS } from "./settings_kv_bed.ts";
import {
  authCase,
  parallelismCase,
  pipelineWindowCase,
  sentinelAuthCase,
  socketTypeCase,
  timeoutCase,
  typeCase,
  urlCase,
} from "./settings_kv_cases.ts";
import { onEmptyCase, onEmptyWaitCase, poolSizeCase } from "./settings_kv_pool_cases.ts";

/** Tests of the second key-value cache, that of limits per second. */
export const KV_PER_SECOND_CASES: SettingCases = {
  KV_PERSECOND: { sees: "limits per second counted in a cache of their own", tools: REDIS, run: countsApart },
  KV_PERSECOND_URL: urlCase(PER_SECOND),
  KV_PERSECOND_SOCKET_TYPE: socketTypeCase(PER_SECOND),
  KV_PERSECOND_TYPE: typeCase(PER_SECOND),
  KV_PERSECOND_AUTH: authCase(PER_SECOND),
  KV_PERSECOND_SENTINEL_AUTH: sentinelAuthCase(PER_SECOND),
  KV_PERSECOND_TIMEOUT: timeoutCase(PER_SECOND),
  KV_PERSECOND_POOL_SIZE: poolSizeCase(PER_SECOND),
  KV_PERSECOND_POOL_ON_EMPTY_BEHAVIOR: onEmptyCase(PER_SECOND),
  KV_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION: onEmptyWaitCase(PER_SECOND),
  KV_PERSECOND_PIPELINE_WINDOW: pipelineWindowCase(PER_SECOND),
  KV_PERSECOND_CLUSTER_PIPELINE_PARALLELISM: parallelismCase(PER_SECOND),
};

async function countsApart(): Promise<void> {
  const main = SHARED_REDIS.value;
  await main.command("FLUSHALL");
  await using second = await startRedis();
  await compare({ KV_PERSECOND: "true" }, {
    env: { BACKEND_TYPE: "kv", KV_URL: main.url, KV_PERSECOND_URL: second.url },
    rules: RULES,
    async look(service) {
      const { status } = await service.ask(shopRequest("open=a", "open=b", "quick=a"));
      const keys = [await main.command("DBSIZE"), await second.command("DBSIZE")];
      await main.command("FLUSHALL");
      return [status, ...keys];
    },
    unset: [200, 3, 0],
    set: [200, 2, 1],
  });
}
