import { systemClock } from "../../src/base/clock.ts";
import { countHits, CountingClient } from "../../src/cache/counting_client.ts";
import { MemoryCache } from "../../src/cache/memory_cache.ts";
import { counterCacheContract } from "./counter_cache_contract.ts";

counterCacheContract("of another thread", () => {
  const memory = new MemoryCache({ maxKeys: 1_000_000, clock: systemClock });
  const cache = new CountingClient({
    post: (request) => queueMicrotask(() => cache.settle(countHits(structuredClone(request), memory))),
    timeoutMs: 60_000,
    clock: systemClock,
  });
  return Promise.resolve({ cache, end: () => memory.close() });
});
