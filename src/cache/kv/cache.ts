import { errorText } from "../../base/error_text.ts";
import type { Figures } from "../../base/figures.ts";
import type { Caller, CounterCache, Hit } from "../../ratelimit/counter_cache.ts";
import { CacheError } from "../../ratelimit/errors.ts";
import { KvFailure, KvNode, type KvNodeOptions } from "./node.ts";

/** Counters in one primary that speaks the Redis protocol. */
export class KvCache implements CounterCache {
  readonly #node: KvNode;
  readonly #address: string;

  /** `address` names the cache in errors; it holds no password. */
  constructor(options: Omit<KvNodeOptions, "errorOf"> & { readonly address: string }) {
    this.#address = options.address;
    this.#node = new KvNode({ ...options, errorOf: (failure) => this.#error(failure) });
  }

  /** Settles at the first connection. */
  get ready(): Promise<void> {
    return this.#node.ready;
  }

  /** Whether counters can be asked now. */
  get connected(): boolean {
    return this.#node.connected;
  }

  /** Its connections, timeouts and breaker. */
  get figures(): Figures {
    return this.#node.figures;
  }

  add(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    return this.#node.ask(hits, { caller });
  }

  read(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    return this.add(hits.map((hit) => ({ ...hit, addend: 0 })), caller);
  }

  async remove(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    try {
      await this.#node.command(["DEL", ...keys]);
    } catch (error) {
      throw this.#error(error);
    }
  }

  close(): Promise<void> {
    return this.#node.close();
  }

  #error(error: unknown): CacheError {
    const state = errorText(error);
    const counts = error instanceof KvFailure ? error.counts : [];
    return new CacheError("kv", `Cannot ask key-value cache "${this.#address}": ${state}`, { counts });
  }
}
