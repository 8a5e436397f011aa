/** Gathers what is added in one turn of the event loop, and sends it together: a message takes longer than what is in it. */
export class TurnBatch<T> {
  readonly #send: (items: readonly T[]) => void;
  #items: T[] = [];

  constructor(send: (items: readonly T[]) => void) {
    this.#send = send;
  }

  add(item: T): void {
    if (this.#items.push(item) === 1) queueMicrotask(() => this.flush());
  }

  /** Sends what was added now. */
  flush(): void {
    const items = this.#items;
    if (items.length === 0) return;
    this.#items = [];
    this.#send(items);
  }

  /** Forgets what was added and not sent. */
  drop(): void {
    this.#items = [];
  }
}
