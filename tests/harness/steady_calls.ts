import { assertEquals } from "./assert.ts";
import { until } from "./until.ts";

/** The calls of several callers that call all the time, and what was wrong with those that failed. */
export class SteadyCalls {
  /** Since the last question. */
  failures: string[] = [];
  /** By caller. */
  readonly #succeeded: number[];

  constructor(callers: number) {
    this.#succeeded = new Array<number>(callers).fill(0);
  }

  noteSuccess(caller: number): void {
    this.#succeeded[caller] = (this.#succeeded[caller] ?? 0) + 1;
  }

  noteFailure(text: string): void {
    this.failures.push(text);
  }

  /** So many calls succeed, and none fails. */
  async goOn(calls: number): Promise<void> {
    this.failures = [];
    const sum = () => this.#succeeded.reduce((all, count) => all + count);
    const from = sum();
    await until("many calls", () => sum() >= from + calls || this.failures.length > 0);
    assertEquals(this.failures, []);
  }

  /** The calls of all callers succeed: that of one may still wait for its failure while others go on. */
  async recover(): Promise<void> {
    await until("calls of all callers that succeed", async () => {
      this.failures = [];
      const from = [...this.#succeeded];
      const isOver = () => this.#succeeded.every((count, caller) => count > (from[caller] ?? 0) + 1);
      await until("the next of each", () => isOver() || this.failures.length > 0);
      return this.failures.length === 0;
    });
  }
}
