import { errorText } from "../../base/error_text.ts";
import type { Taken } from "../../ratelimit/algorithms/taken.ts";
import type {
  Caller,
  ConditionalHit,
  CounterCache,
  CountReceiver,
  Hit,
} from "../../ratelimit/counter_cache.ts";
import { CacheError } from "../../ratelimit/errors.ts";
import { KvFailure, KvNode, type KvNodeOptions } from "./node.ts";

/** How one primary is asked. */
export interface KvCacheOptions extends Omit<KvNodeOptions, "errorOf"> {
  /** The cache's name in errors; holds no password. */
  readonly address: string;
}

/** Counters in one primary that speaks the Redis protocol. */
export class KvCache extends KvNode implements CounterCache {
  readonly #address: string;

  constructor(options: KvCacheOptions) {
    super({ ...options, errorOf: (failure) => kvError(options.address, failure) });
    this.#address = options.address;
  }

  add(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    return this.ask(hits, { caller });
  }

  take(hits: readonly ConditionalHit[], caller?: Caller): Promise<Taken[]> {
    return this.askToTake(hits, { caller });
  }

  addOne(hit: Hit, caller: Caller | undefined, receiver: CountReceiver): void {
    this.askOne(hit, caller, receiver);
  }

  read(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    return this.add(hits.map((hit) => ({ ...hit, addend: 0 })), caller);
  }

  async remove(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    await this.command(["DEL", ...keys]).catch((error) => {
      throw kvError(this.#address, error);
    });
  }
}

/** The error of a call to a key-value cache. */
export function kvError(address: string, error: unknown): CacheError {
  const counts = error instanceof KvFailure ? error.counts : [];
  const came = counts.some((count) => count !== undefined) ? counts : [];
  const message = `Cannot query key-value cache "${address}": ${errorText(error)}`;
  return new CacheError("kv", message, { counts: came, cause: error });
}
