import type { LocalCache } from "../ratelimit/local_cache.ts";

/** What an entry costs beside the characters of its key: the map's slot, the entry, the string's header. */
const ENTRY_BYTES = 120;

interface OverLimitEntry {
  readonly count: number;
  readonly windowEnd: number;
}

/** Over-limit keys of this process, bounded in bytes; the ones that were used longest ago give way. */
export class OverLimitCache implements LocalCache {
  readonly #maxBytes: number;
  /** In the order of their last use. */
  readonly #entries = new Map<string, OverLimitEntry>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** An estimate of the memory held, never above the bound. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Keys held now. */
  get size(): number {
    return this.#entries.size;
  }

  get(key: string, nowSeconds: number): number | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.forget(key);
    if (entry.windowEnd <= nowSeconds) return undefined;
    this.#keep(key, entry);
    return entry.count;
  }

  set(key: string, count: number, windowEnd: number, nowSeconds: number): void {
    this.forget(key);
    const size = entryBytes(key);
    if (windowEnd <= nowSeconds || size > this.#maxBytes) return;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes + size <= this.#maxBytes) break;
      this.forget(oldest);
    }
    this.#keep(key, { count, windowEnd });
  }

  forget(key: string): void {
    if (this.#entries.delete(key)) this.#bytes -= entryBytes(key);
  }

  #keep(key: string, entry: OverLimitEntry): void {
    this.#entries.set(key, entry);
    this.#bytes += entryBytes(key);
  }
}

/** Two bytes a character: the most that the engine takes. */
function entryBytes(key: string): number {
  return key.length * 2 + ENTRY_BYTES;
}
