/** A write that waits for its replies. */
interface Pending<Reply> {
  readonly expected: number;
  readonly replies: Reply[];
  readonly answered: (replies: readonly Reply[]) => void;
}

/** The writes on one connection whose replies are not complete; replies come in the order of the writes. */
export class ReplyQueue<Reply> {
  #pending: Pending<Reply>[] = [];

  /** The number of writes that wait. */
  get size(): number {
    return this.#pending.length;
  }

  /** Adds a write that brings this many replies, at least one. */
  push(expected: number, answered: (replies: readonly Reply[]) => void): void {
    this.#pending.push({ expected, replies: [], answered });
  }

  /** Takes the next reply; returns false when no write waits for one. */
  take(reply: Reply): boolean {
    const [oldest] = this.#pending;
    if (oldest === undefined) return false;
    if (oldest.replies.push(reply) < oldest.expected) return true;
    this.#pending.shift();
    oldest.answered(oldest.replies);
    return true;
  }

  /** Answers every write, with this in place of the missing replies. */
  fill(missing: Reply): void {
    const pending = this.#pending;
    this.#pending = [];
    for (const { expected, replies, answered } of pending) {
      while (replies.length < expected) replies.push(missing);
      answered(replies);
    }
  }
}
