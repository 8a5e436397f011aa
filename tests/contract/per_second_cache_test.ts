import { systemClock } from "../../src/base/clock.ts";
import { MemoryCache } from "../../src/cache/memory_cache.ts";
import { PerSecondCache } from "../../src/cache/per_second_cache.ts";
import type { Caller, ConditionalHit, CounterCache, Hit } from "../../src/ratelimit/counter_cache.ts";
import { openKvCache } from "../harness/open_kv.ts";
import { sharedRedis } from "../harness/shared_servers.ts";
import { counterCacheContract } from "./counter_cache_contract.ts";

const server = await sharedRedis();

/** The suite's own hits are of one kind; every other key counts per second here, so that both are asked. */
class EveryOtherKey implements CounterCache {
  readonly #cache: CounterCache;
  readonly #keys = new Map<string, boolean>();
  readonly take?: NonNullable<CounterCache["take"]>;

  constructor(cache: CounterCache) {
    this.#cache = cache;
    const { take } = cache;
    if (take === undefined) return;
    this.take = (hits, caller) => take.call(cache, this.#spread(hits), caller);
  }

  add(hits: readonly Hit[], caller?: Caller): number[] | Promise<number[]> {
    return this.#cache.add(this.#spread(hits), caller);
  }

  read(hits: readonly Hit[], caller?: Caller): number[] | Promise<number[]> {
    return this.#cache.read(this.#spread(hits), caller);
  }

  remove(keys: readonly string[]): Promise<void> {
    return this.#cache.remove(keys);
  }

  close(): Promise<void> {
    return this.#cache.close();
  }

  #spread<Asked extends Hit | ConditionalHit>(hits: readonly Asked[]): Asked[] {
    return hits.map((one) => {
      const perSecond = this.#keys.get(one.key) ?? this.#keys.size % 2 === 1;
      this.#keys.set(one.key, perSecond);
      return { ...one, perSecond };
    });
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
