import type { Expiries } from "./batch.ts";

/** Most keys that are remembered; beyond it the window nearest its end is forgotten. */
const MAX_KEYS = 200_000;

/**
 * Keys whose expiry is set in the cache, by the end of their window. What is forgotten is set again,
 * which costs a command and changes nothing.
 */
export class KvExpiries implements Expiries {
  readonly #byEnd = new Map<number, Set<string>>();
  #size = 0;
  #generation = 0;

  get generation(): number {
    return this.#generation;
  }

  covers(key: string, windowEnd: number): boolean {
    if (this.#byEnd.get(windowEnd)?.has(key) === true) return true;
    for (const [end, keys] of this.#byEnd) {
      if (end > windowEnd && keys.has(key)) return true;
    }
    return false;
  }

  remember(key: string, windowEnd: number): void {
    let keys = this.#byEnd.get(windowEnd);
    if (keys === undefined) this.#byEnd.set(windowEnd, keys = new Set());
    if (keys.has(key)) return;
    keys.add(key);
    this.#size++;
    if (this.#size > MAX_KEYS) this.#drop(Math.min(...this.#byEnd.keys()));
  }

  forget(key: string): void {
    this.#generation++;
    for (const keys of this.#byEnd.values()) {
      if (keys.delete(key)) this.#size--;
    }
  }

  /** Forgets the keys of windows that are over. */
  sweep(nowSeconds: number): void {
    for (const end of [...this.#byEnd.keys()]) {
      if (end <= nowSeconds) this.#drop(end);
    }
  }

  /** Forgets everything: the cache may have lost it. */
  clear(): void {
    this.#generation++;
    this.#byEnd.clear();
    this.#size = 0;
  }

  #drop(end: number): void {
    this.#size -= this.#byEnd.get(end)?.size ?? 0;
    this.#byEnd.delete(end);
  }
}
