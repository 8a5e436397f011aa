/** A queue. `Array.shift` moves all other elements of a large array: emptying one of 100,000 takes seconds. */
export class Fifo<T> {
  readonly #items: T[] = [];
  /** Position of the first element; those before it are gone. */
  #at = 0;

  get length(): number {
    return this.#items.length - this.#at;
  }

  get first(): T | undefined {
    return this.#items[this.#at];
  }

  /** Replaces the first element. */
  set first(item: T) {
    this.#items[this.#at] = item;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  clear(): void {
    this.#items.length = 0;
    this.#at = 0;
  }

  /** Removes the first element and returns it. */
  shift(): T | undefined {
    const { first } = this;
    this.#at++;
    if (this.#at >= this.#items.length) this.clear();
    else if (2 * this.#at >= this.#items.length) {
      // Each element is moved once on average.
      this.#items.splice(0, this.#at);
      this.#at = 0;
    }
    return first;
  }
}
