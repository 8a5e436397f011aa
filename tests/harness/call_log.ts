/** What became of the calls of a load, whichever client made them. */
export class CallLog {
  /** Calls with the answer that was wanted. */
  answered = 0;
  /** Calls that the server said it had not begun, and that were sent again. */
  retried = 0;
  /** Connections that ended before the server said a word: no call had been sent on them. */
  resets = 0;
  /** Calls that came to anything else, each with what it came to. */
  readonly failures: string[] = [];

  /** Waits for that many more answers, while `running` does not end. */
  async answers(more: number): Promise<void> {
    const goal = this.answered + more;
    const end = performance.now() + ANSWERS_DEADLINE_MS;
    while (this.answered < goal) {
      if (performance.now() > end) throw new Error(`Cannot wait for ${more} answers: ${this.toString()}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  toString(): string {
    const { answered, retried, resets, failures } = this;
    const counts = { answered, retried, resets, failed: failures.length };
    return `${JSON.stringify(counts)} ${failures.slice(0, 3).join(" | ")}`;
  }
}

const ANSWERS_DEADLINE_MS = 120_000;
