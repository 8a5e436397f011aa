import type { CounterCache, Hit } from "../../src/ratelimit/decision/counter_cache.ts";
import type { RedisServer } from "./redis_server.ts";
import { until } from "./until.ts";
import { takeCounts } from "./take.ts";

const KEYS = 120;
const CALLS = 25;
/** No counter expires by itself during a run. */
const KEPT_S = 3_600;
/** Keys that would stay for good. */
const KEYS_WITHOUT_EXPIRY = `
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('TTL', key) == -1 then found[#found + 1] = key end
end
return found`;

/** Options of an expiry fault. */
interface ExpiryFaultOptions {
  readonly cache: CounterCache;
  /** The servers that count now. */
  readonly primaries: () => Promise<readonly RedisServer[]> | readonly RedisServer[];
  /** Replaces a primary; absent where there is no other server. */
  readonly failover?: () => Promise<unknown>;
  readonly rounds: number;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}

/** Counts under random faults; after each one every key that is left gets an expiry, without further calls. */
export async function runExpiryFaults(options: ExpiryFaultOptions): Promise<void> {
  const { cache, rounds, random } = options;
  const pick = (below: number) => Math.floor(random() * below);
  for (let round = 0; round < rounds; round++) {
    await until(
      "the cache to count",
      async () => (await takeCounts(cache, [expiryHit("probe", 1)])).length === 1,
    );
    const primaries = await options.primaries();
    const all = (...command: string[]) => Promise.all(primaries.map((server) => server.command(...command)));
    // Every key has its expiry now, and the cache knows it.
    await burst(cache, pick);
    if (pick(2) === 0) await all("FLUSHALL");
    await [
      () => burst(cache, pick),
      async () => {
        const calls = burst(cache, pick);
        await all("CLIENT", "KILL", "TYPE", "normal");
        await calls;
      },
      async () => {
        // What was sent counts once the server goes on, and nothing waits for the reply any more.
        for (const server of primaries) server.pause();
        await burst(cache, pick);
        for (const server of primaries) server.resume();
      },
      async () => {
        const calls = burst(cache, pick);
        for (let key = 0; key < KEYS; key += 3) await all("DEL", `faults_${key}`).catch(() => {});
        await calls;
      },
      async () => {
        const calls = burst(cache, pick);
        await options.failover?.();
        await calls;
      },
    ][pick(options.failover === undefined ? 4 : 5)]?.();
    await Promise.all((await options.primaries()).map(expiriesOf));
  }
}

/** Waits until every key of a server has an expiry. */
export async function expiriesOf(server: RedisServer): Promise<void> {
  const missing = async () => (await keysWithoutExpiry(server)).length;
  await until("every key to have an expiry", async () => await missing() === 0);
}

async function keysWithoutExpiry(server: RedisServer): Promise<string[]> {
  const found = String(await server.command("EVAL", KEYS_WITHOUT_EXPIRY, 0));
  return found === "" ? [] : found.split("\n");
}

/** A hit on a counter that is kept for an hour. */
export function expiryHit(key: string, addend: number): Hit {
  const windowEnd = Math.floor(Date.now() / 1_000) + KEPT_S;
  return { key, addend, windowEnd, expiresInSeconds: KEPT_S, perSecond: false };
}

async function burst(cache: CounterCache, pick: (below: number) => number): Promise<void> {
  const calls = Array.from({ length: CALLS }, async () => {
    const hits = Array.from(
      { length: 1 + pick(3) },
      () => expiryHit(`faults_${pick(KEYS)}`, pick(8) === 0 ? -1 : 1 + pick(3)),
    );
    await takeCounts(cache, hits);
  });
  await Promise.allSettled(calls);
}
