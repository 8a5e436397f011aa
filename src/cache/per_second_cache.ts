import type { Caller, CounterCache, Hit } from "../ratelimit/counter_cache.ts";
import { askParts, type Counts, settleAll } from "./hit_parts.ts";

/** Two caches as one: limits per second are counted in one, all others in the other. */
export class PerSecondCache implements CounterCache {
  readonly #main: CounterCache;
  readonly #perSecond: CounterCache;
  readonly addOne?: NonNullable<CounterCache["addOne"]>;

  constructor({ main, perSecond }: { readonly main: CounterCache; readonly perSecond: CounterCache }) {
    this.#main = main;
    this.#perSecond = perSecond;
    if (main.addOne === undefined || perSecond.addOne === undefined) return;
    this.addOne = (hit, caller, receiver) => this.#cacheOf(hit).addOne?.(hit, caller, receiver);
  }

  add(hits: readonly Hit[], caller?: Caller): Counts {
    return this.#ask(hits, (cache, part) => cache.add(part, caller));
  }

  read(hits: readonly Hit[], caller?: Caller): Counts {
    return this.#ask(hits, (cache, part) => cache.read(part, caller));
  }

  /** From both: a key does not tell which of them holds its counter. */
  remove(keys: readonly string[]): Promise<void> {
    return this.#both(async (cache) => await cache.remove(keys));
  }

  close(): Promise<void> {
    return this.#both(async (cache) => await cache.close());
  }

  #ask(hits: readonly Hit[], ask: (cache: CounterCache, part: readonly Hit[]) => Counts): Counts {
    const targetOf = (hit: Hit) => this.#cacheOf(hit);
    return askParts(hits, { targets: [this.#main, this.#perSecond], targetOf, ask });
  }

  #cacheOf({ perSecond }: Hit): CounterCache {
    return perSecond ? this.#perSecond : this.#main;
  }

  #both(run: (cache: CounterCache) => Promise<void>): Promise<void> {
    return settleAll([this.#main, this.#perSecond].map(run));
  }
}
