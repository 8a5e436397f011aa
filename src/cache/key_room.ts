/** Room for each key; a longer one takes the room of several. */
const BYTES_PER_KEY = 256;

/** The room for keys that several tables share: a number of keys, and a total length. */
export class KeyRoom {
  readonly #maxKeys: number;
  #keys = 0;
  #length = 0;

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  get keys(): number {
    return this.#keys;
  }

  /** True if there is no room for so many keys with this total length; an empty table has room for any. */
  isFull(length: number, keys = 1): boolean {
    if (this.#keys === 0) return false;
    return this.#keys + keys > this.#maxKeys || this.#length + length > this.#maxKeys * BYTES_PER_KEY;
  }

  /** Takes the room of keys with this total length. */
  take(length: number, keys = 1): void {
    this.#keys += keys;
    this.#length += length;
  }

  /** Frees the room of keys with this total length. */
  free(keys: number, length: number): void {
    this.#keys -= keys;
    this.#length -= length;
  }
}
