import type { Counter, CounterCache, TakenHit } from "../ratelimit/decision/counter_cache.ts";
import { settleAll } from "./settle_all.ts";

/** Two caches as one: limits per second are counted in one, all others in the other. */
export class PerSecondCache implements CounterCache {
  readonly isConditional: boolean;
  readonly isImmediate: boolean;
  readonly #main: CounterCache;
  readonly #perSecond: CounterCache;

  constructor({ main, perSecond }: { readonly main: CounterCache; readonly perSecond: CounterCache }) {
    this.#main = main;
    this.#perSecond = perSecond;
    this.isConditional = main.isConditional && perSecond.isConditional;
    this.isImmediate = main.isImmediate && perSecond.isImmediate;
  }

  counterOf(hit: TakenHit): Counter {
    return (hit.perSecond ? this.#perSecond : this.#main).counterOf(hit);
  }

  /** From both: a key does not tell which of them holds its counter. */
  remove(keys: readonly string[]): Promise<void> {
    return settleAll([this.#main.remove(keys), this.#perSecond.remove(keys)]);
  }

  close(): Promise<void> {
    return settleAll([this.#main.close(), this.#perSecond.close()]);
  }
}
