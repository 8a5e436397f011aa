const FIRST_SLOTS = 16;

/**
 * Counters by key whose window ends at one moment. The counts lie side by side and apart from the
 * keys: a million counters are a million fewer objects.
 */
export class CounterBucket {
  readonly #slots = new Map<string, number>();
  /** Slots of keys that were taken out. */
  readonly #free: number[] = [];
  #counts = new Float64Array(FIRST_SLOTS);
  #used = 0;
  #keyLength = 0;
  /** Goes on where the last eviction stopped, so that evicting many keys looks at each one once. */
  #oldest: MapIterator<string> | undefined;

  /** Counters held. */
  get size(): number {
    return this.#slots.size;
  }

  /** Characters of all keys. */
  get keyLength(): number {
    return this.#keyLength;
  }

  /** The count of a key; absent when it is not held. */
  get(key: string): number | undefined {
    const slot = this.#slots.get(key);
    return slot === undefined ? undefined : this.#counts[slot];
  }

  /** Adds to a counter, which stops at 0; answers the count after that, or nothing when it is not held. */
  add(key: string, addend: number): number | undefined {
    const slot = this.#slots.get(key);
    if (slot === undefined) return undefined;
    const count = Math.max(0, (this.#counts[slot] ?? 0) + addend);
    this.#counts[slot] = count;
    return count;
  }

  /** Takes in a key that is not held. */
  insert(key: string, count: number): void {
    const slot = this.#free.pop() ?? this.#used++;
    if (slot >= this.#counts.length) {
      const grown = new Float64Array(this.#counts.length * 2);
      grown.set(this.#counts);
      this.#counts = grown;
    }
    this.#counts[slot] = count;
    this.#slots.set(key, slot);
    this.#keyLength += key.length;
  }

  /** Takes out a key; answers its count, or nothing when it was not held. */
  delete(key: string): number | undefined {
    const slot = this.#slots.get(key);
    if (slot === undefined) return undefined;
    this.#slots.delete(key);
    this.#free.push(slot);
    this.#keyLength -= key.length;
    return this.#counts[slot];
  }

  /** The key that has been held for the longest time, among those not answered yet. */
  oldest(): string | undefined {
    this.#oldest ??= this.#slots.keys();
    const next = this.#oldest.next();
    if (next.done !== true) return next.value;
    this.#oldest = this.#slots.keys();
    return this.#oldest.next().value;
  }
}
