import { OVER_MS } from "../../src/quota/member.ts";
import type { QuotaGrant, QuotaNeed, QuotaShares } from "../../src/quota/quota_shares.ts";
import { LEASE_MS } from "../../src/quota/quota_shares.ts";
import { divide, type Level, rateOfDemand } from "../../src/quota/shares.ts";
import type { FakeClock } from "./fake_clock.ts";

/** The part of one instance in the hash of a quota. */
interface Part {
  readonly demand: number;
  readonly granted: number;
  readonly held: number;
  readonly endsAt: number;
}

/** The hash of a quota. */
export interface QuotaHash {
  readonly parts: ReadonlyMap<string, Part>;
  /** Until then, instances may hold parts that were lost with an earlier hash. */
  readonly unknownUntil: number;
}

/** The level of a limit, in one go. */
export function levelOf(limit: number, demands: readonly number[]): Level {
  const steps = divide(limit, [...demands]);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/**
 * The script that divides a quota among instances: the parts of others stay theirs until they tell that they hold less, or
 * until their lease ends. Returns the granted rate and the hash after it.
 */
export function exchangePart(
  hash: QuotaHash,
  instance: string,
  { limit, demand, held }: QuotaNeed,
  now: number,
): { readonly granted: number; readonly hash: QuotaHash } {
  const parts = new Map([...hash.parts].filter(([, { endsAt }]) => endsAt > now));
  const isLost = held > 0 && !parts.has(instance);
  const unknownUntil = isLost ? Math.max(hash.unknownUntil, now + OVER_MS) : hash.unknownUntil;
  parts.delete(instance);
  const others = [...parts.values()];
  const taken = others.reduce((sum, part) => sum + Math.max(part.granted, part.held), 0);
  const level = levelOf(limit, [demand, ...others.map((part) => part.demand)]);
  const target = rateOfDemand(level, demand);
  const free = Math.max(0, limit - taken);
  const granted = Math.min(target, free, now < unknownUntil ? held : Infinity);
  parts.set(instance, { demand, granted, held, endsAt: now + LEASE_MS });
  return { granted, hash: { parts, unknownUntil } };
}

/** Options of a model of the cache. */
interface ShareCacheOptions {
  readonly clock: FakeClock;
  /** The delay of the next message in either direction. */
  readonly delay: () => number;
  /** True if the next exchange fails, before or after it took effect. */
  readonly fails: () => boolean;
}

/** The cache that instances share quotas by. */
export class ShareCache {
  readonly #hashes = new Map<string, QuotaHash>();
  readonly #dead = new Set<string>();
  readonly #options: ShareCacheOptions;

  constructor(options: ShareCacheOptions) {
    this.#options = options;
  }

  /** The port of one instance. */
  of(instance: string): QuotaShares {
    return {
      exchange: (need) => this.#exchange(instance, need),
      leave: (key) => this.#leave(instance, key),
    };
  }

  /** Nothing that this instance sends arrives any more. */
  kill(instance: string): void {
    this.#dead.add(instance);
  }

  #leave(instance: string, key: string): Promise<void> {
    const { clock, delay, fails } = this.#options;
    const answer = Promise.withResolvers<void>();
    clock.after(delay(), () => {
      if (this.#dead.has(instance)) return;
      if (fails()) return answer.reject(new Error("before"));
      const known = this.#hashes.get(key);
      const parts = new Map(known?.parts);
      parts.delete(instance);
      this.#hashes.set(key, { parts, unknownUntil: known?.unknownUntil ?? 0 });
      clock.after(delay(), () => answer.resolve());
    });
    return answer.promise;
  }

  #exchange(instance: string, need: QuotaNeed): Promise<QuotaGrant> {
    const { clock, delay, fails } = this.#options;
    const answer = Promise.withResolvers<QuotaGrant>();
    clock.after(delay(), () => {
      if (this.#dead.has(instance)) return;
      if (fails()) return answer.reject(new Error("before"));
      const known = this.#hashes.get(need.key) ?? { parts: new Map(), unknownUntil: 0 };
      const { granted, hash } = exchangePart(known, instance, need, clock.elapsed());
      this.#hashes.set(need.key, hash);
      clock.after(delay(), () => {
        if (fails()) answer.reject(new Error("after"));
        else answer.resolve({ perSecond: granted, leaseMs: LEASE_MS });
      });
    });
    return answer.promise;
  }
}
