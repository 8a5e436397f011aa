import { errorText } from "../../base/error_text.ts";
import type { Counter, CounterCache, TakenHit } from "../../ratelimit/decision/counter_cache.ts";
import { CacheError } from "../../ratelimit/errors.ts";
import { kvCounterOf, type KvTake } from "./counters.ts";
import { KvNode, type KvNodeOptions } from "./node.ts";

/** Options of a cache with one primary. */
interface KvCacheOptions extends KvNodeOptions {
  /** The cache's name in errors; holds no password. */
  readonly address: string;
}

/** Counters in one primary that speaks the Redis protocol. */
export class KvCache extends KvNode implements CounterCache {
  readonly isConditional = true;
  readonly isImmediate = false;
  readonly #address: string;
  readonly #take: KvTake = (counter, hits, caller, receiver) => {
    this.take(counter, hits, { caller, receiver });
  };

  constructor(options: KvCacheOptions) {
    super({ ...options, errorOf: (state) => kvError(options.address, state) });
    this.#address = options.address;
  }

  counterOf(hit: TakenHit): Counter {
    return kvCounterOf(hit, this.#take);
  }

  /** The one primary has all keys. */
  commandFor(_key: string, command: readonly string[]): Promise<unknown> {
    return this.command(command);
  }

  async remove(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    await this.command(["DEL", ...keys]).catch((error) => {
      throw kvError(this.#address, errorText(error), error);
    });
  }
}

/** The error of a key-value cache, in this state. */
export function kvError(address: string, state: string, cause?: unknown): CacheError {
  return new CacheError("kv", `Cannot query key-value cache "${address}": ${state}`, { cause });
}
