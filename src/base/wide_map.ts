/** A power of two. */
const PARTS = 256;

/** A map of texts that may have millions of entries: a `Map` of that size stops the thread for 0.3 s when it grows. */
export class WideMap<V> {
  readonly #parts: (Map<string, V> | undefined)[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: string): V | undefined {
    return this.#parts[partOf(key)]?.get(key);
  }

  set(key: string, value: V): void {
    const part = this.#parts[partOf(key)] ??= new Map<string, V>();
    const before = part.size;
    part.set(key, value);
    this.#size += part.size - before;
  }

  delete(key: string): void {
    if (this.#parts[partOf(key)]?.delete(key) === true) this.#size--;
  }

  /** All values, in no order; entries may come and go meanwhile. */
  *values(): Generator<V, void> {
    for (const part of this.#parts) if (part !== undefined) yield* part.values();
  }
}

function partOf(key: string): number {
  let hash = 0;
  for (let index = 0; index < key.length; index++) hash = (31 * hash + key.charCodeAt(index)) | 0;
  return (hash ^ hash >>> 16) & PARTS - 1;
}
