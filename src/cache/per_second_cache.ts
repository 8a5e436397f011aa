import type { Counted } from "../ratelimit/algorithms/taken.ts";
import type { Caller, CounterCache, Hit } from "../ratelimit/counter_cache.ts";
import { type Answers, askParts, settleAll } from "./hit_parts.ts";

/** Two caches as one: limits per second are counted in one, all others in the other. */
export class PerSecondCache implements CounterCache {
  readonly #main: CounterCache;
  readonly #perSecond: CounterCache;
  readonly addOne?: NonNullable<CounterCache["addOne"]>;
  readonly take?: NonNullable<CounterCache["take"]>;

  constructor({ main, perSecond }: { readonly main: CounterCache; readonly perSecond: CounterCache }) {
    this.#main = main;
    this.#perSecond = perSecond;
    if (main.take !== undefined && perSecond.take !== undefined) {
      this.take = (hits, caller) => this.#ask(hits, (cache, part) => cache.take?.(part, caller) ?? []);
    }
    if (main.addOne === undefined || perSecond.addOne === undefined) return;
    this.addOne = (hit, caller, receiver) => this.#cacheOf(hit).addOne?.(hit, caller, receiver);
  }

  add(hits: readonly Hit[], caller?: Caller): Answers<number> {
    return this.#ask(hits, (cache, part) => cache.add(part, caller));
  }

  read(hits: readonly Hit[], caller?: Caller): Answers<number> {
    return this.#ask(hits, (cache, part) => cache.read(part, caller));
  }

  /** From both: a key does not tell which of them holds its counter. */
  remove(keys: readonly string[]): Promise<void> {
    return this.#both(async (cache) => await cache.remove(keys));
  }

  close(): Promise<void> {
    return this.#both(async (cache) => await cache.close());
  }

  #ask<Asked extends Pick<Hit, "perSecond">, Answer extends Counted>(
    hits: readonly Asked[],
    ask: (cache: CounterCache, part: readonly Asked[]) => Answers<Answer>,
  ): Answers<Answer> {
    const targetOf = (hit: Asked) => this.#cacheOf(hit);
    return askParts(hits, { targets: [this.#main, this.#perSecond], targetOf, ask });
  }

  #cacheOf({ perSecond }: Pick<Hit, "perSecond">): CounterCache {
    return perSecond ? this.#perSecond : this.#main;
  }

  #both(run: (cache: CounterCache) => Promise<void>): Promise<void> {
    return settleAll([this.#main, this.#perSecond].map(run));
  }
}
