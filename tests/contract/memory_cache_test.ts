import { systemClock } from "../../src/base/clock.ts";
import { InFlightCache } from "../../src/cache/in_flight_cache.ts";
import { MemoryCache } from "../../src/cache/memory_cache.ts";
import { counterCacheContract } from "./counter_cache_contract.ts";

const open = () => new MemoryCache({ maxKeys: 10_000, clock: systemClock });

counterCacheContract("memory", () => Promise.resolve({ cache: open(), end: () => Promise.resolve() }));

counterCacheContract("bounded in flight", () => {
  const bounds = { maxInFlight: 1, backend: "memory", timeoutMs: 1_000, clock: systemClock } as const;
  return Promise.resolve({ cache: new InFlightCache(open(), bounds), end: () => Promise.resolve() });
});
