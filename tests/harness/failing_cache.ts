import type { Caller, CounterCache, Hit } from "../../src/ratelimit/counter_cache.ts";
import { CacheError } from "../../src/ratelimit/errors.ts";

/**
 * Counters that fail by script: for each question a text with one character a hit, `.` for a count and `x`
 * for none. A text without `.` fails with no counts at all, and as an overload if it has an `o`; where the script has
 * ended, all is answered.
 */
export class FailingCache implements CounterCache {
  /** The second part of each key and the addend, such as `add k1 m0`. */
  readonly asked: string[] = [];
  /** Who asked, question after question. */
  readonly callers: (Caller | undefined)[] = [];
  readonly script: string[];
  readonly #later: boolean;
  readonly #backend: CacheError["backend"];
  readonly #counts = new Map<string, number>();

  constructor(
    script: readonly string[],
    options: { readonly later?: boolean; readonly backend?: CacheError["backend"] } = {},
  ) {
    this.script = [...script];
    this.#later = options.later ?? true;
    this.#backend = options.backend ?? "kv";
  }

  add(hits: readonly Hit[], caller?: Caller): number[] | Promise<number[]> {
    this.#note("add", hits, caller);
    return this.#answer(hits, ({ key, addend }) => {
      const count = Math.max(0, (this.#counts.get(key) ?? 0) + addend);
      this.#counts.set(key, count);
      return count;
    });
  }

  read(hits: readonly Hit[], caller?: Caller): number[] | Promise<number[]> {
    this.#note("read", hits, caller);
    return this.#answer(hits, ({ key }) => this.#counts.get(key) ?? 0);
  }

  remove(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #note(verb: string, hits: readonly Hit[], caller: Caller | undefined): void {
    const texts = hits.map(({ key, addend }) => `${key.split("_")[1]}${addend}`);
    this.asked.push([verb, ...texts].join(" "));
    this.callers.push(caller);
  }

  #answer(hits: readonly Hit[], count: (hit: Hit) => number): number[] | Promise<number[]> {
    const script = this.script.shift() ?? "";
    const counts = hits.map((hit, position) =>
      "xo".includes(script[position] ?? ".") ? undefined : count(hit)
    );
    const known = counts.filter((one) => one !== undefined);
    if (known.length === counts.length) return this.#later ? Promise.resolve(known) : known;
    const isOverload = script.includes("o");
    const error = new CacheError(this.#backend, "gone", known.length === 0 ? { isOverload } : { counts });
    if (this.#later) return Promise.reject(error);
    throw error;
  }
}
