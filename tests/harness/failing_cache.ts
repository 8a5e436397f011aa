import type { AnyHit, Caller } from "../../src/ratelimit/decision/counter_cache.ts";
import { CacheError } from "../../src/ratelimit/errors.ts";
import { type CallAnswers, CallCache } from "./call_cache.ts";

/**
 * Counters that fail by script: for each question a text with one character a hit, `.` for a count, `x` for none, and
 * `o` for none because of an overload. Where the script has ended, all is answered.
 */
export class FailingCache extends CallCache {
  /** The second part of each key and the addend, such as `k1 m0`. */
  readonly asked: string[] = [];
  /** Who asked, question after question. */
  readonly callers: (Caller | undefined)[] = [];
  readonly script: string[];
  /** Fails every hit with this error. */
  error: Error | undefined;
  readonly #later: boolean;
  readonly #backend: CacheError["backend"];
  readonly #counts = new Map<string, number>();

  constructor(
    script: readonly string[],
    options: { readonly later?: boolean; readonly backend?: CacheError["backend"] } = {},
  ) {
    super();
    this.script = [...script];
    this.#later = options.later ?? true;
    this.#backend = options.backend ?? "kv";
  }

  override answer(hits: readonly AnyHit[], caller: Caller | undefined): CallAnswers | Promise<CallAnswers> {
    this.asked.push(hits.map(({ key, addend }) => `${key.split("_")[1]}${addend}`).join(" "));
    this.callers.push(caller);
    const script = this.script.shift() ?? "";
    const answers = hits.map((hit, position) => this.#answerTo(hit, script[position] ?? "."));
    return this.#later ? Promise.resolve(answers) : answers;
  }

  #answerTo({ key, addend }: AnyHit, mark: string): number | Error {
    if (this.error !== undefined) return this.error;
    if (mark !== ".") return new CacheError(this.#backend, "gone", { isOverload: mark === "o" });
    const count = Math.max(0, (this.#counts.get(key) ?? 0) + addend);
    this.#counts.set(key, count);
    return count;
  }
}
