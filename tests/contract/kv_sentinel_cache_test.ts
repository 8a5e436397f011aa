import { openKvCache as open } from "../harness/open_kv.ts";
import { startRedisSentinel } from "../harness/redis_sentinel.ts";
import { counterCacheContract } from "./counter_cache_contract.ts";

counterCacheContract("kv behind sentinels", async () => {
  const group = await startRedisSentinel({ password: "one:two", sentinelPassword: "three" });
  const cache = open(group.url, { type: "sentinel", auth: ":one:two", sentinelAuth: "three" });
  await cache.ready;
  return { cache, end: () => group[Symbol.asyncDispose]() };
}, { tools: ["redis-server"] });
