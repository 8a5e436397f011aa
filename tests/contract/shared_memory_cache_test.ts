import { systemClock } from "../../src/base/clock.ts";
import { SharedMemoryCache } from "../../src/cache/shared_memory_cache.ts";
import type { Hit } from "../../src/ratelimit/counter_cache.ts";
import { counterCacheContract } from "./counter_cache_contract.ts";

/** Every counter is in shared memory from its first hit on. */
class AllShared extends SharedMemoryCache {
  override add(hits: readonly Hit[]): number[] {
    return hits.map((hit) => {
      const [count = 0] = super.add([hit]);
      this.share([hit]);
      return count;
    });
  }
}

counterCacheContract("in shared memory", () => {
  const cache = new AllShared({ maxKeys: 10_000, clock: systemClock });
  return Promise.resolve({ cache, end: () => Promise.resolve() });
});
