import { systemClock } from "../../src/base/clock.ts";
import { MemoryCache } from "../../src/cache/memory_cache.ts";
import { PerSecondCache } from "../../src/cache/per_second_cache.ts";
import type { AnyHit, Counter, CounterCache } from "../../src/ratelimit/decision/counter_cache.ts";
import { openKvCache } from "../harness/open_kv.ts";
import { sharedRedis } from "../harness/shared_servers.ts";
import { counterCacheContract } from "./counter_cache_contract.ts";

const server = await sharedRedis();

/** The suite's own hits are of one kind; every other key counts per second here, so that both are asked. */
class EveryOtherKey implements CounterCache {
  readonly isConditional: boolean;
  readonly isImmediate: boolean;
  readonly #cache: CounterCache;
  readonly #keys = new Map<string, boolean>();

  constructor(cache: CounterCache) {
    this.#cache = cache;
    this.isConditional = cache.isConditional;
    this.isImmediate = cache.isImmediate;
  }

  counterOf(hit: AnyHit): Counter {
    const perSecond = this.#keys.get(hit.key) ?? this.#keys.size % 2 === 1;
    this.#keys.set(hit.key, perSecond);
    return this.#cache.counterOf({ ...hit, perSecond });
  }

  remove(keys: readonly string[]): Promise<void> {
    return this.#cache.remove(keys);
  }

  close(): Promise<void> {
    return this.#cache.close();
  }
}

counterCacheContract("two in memory", () => {
  const options = { maxKeys: 1_000, clock: systemClock };
  const [main, perSecond] = [new MemoryCache(options), new MemoryCache(options)];
  const cache = new EveryOtherKey(new PerSecondCache({ main, perSecond }));
  return Promise.resolve({ cache, end: () => Promise.resolve() });
});

counterCacheContract("two redis-servers", async () => {
  const servers = [await server.database(), await server.database()] as const;
  const [main, perSecond] = [openKvCache(servers[0].url), openKvCache(servers[1].url)];
  await Promise.all([main.ready, perSecond.ready]);
  const cache = new EveryOtherKey(new PerSecondCache({ main, perSecond }));
  const end = async () => {
    for (const server of servers) await server[Symbol.asyncDispose]();
  };
  return { cache, end };
}, { tools: ["redis-server"] });
