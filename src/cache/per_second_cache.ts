import type { Caller, CounterCache, Hit } from "../ratelimit/counter_cache.ts";
import { CacheError } from "../ratelimit/errors.ts";

/** The two caches, each with its own counters. */
export interface PerSecondCacheOptions {
  /** Counts every limit that is not one per second. */
  readonly main: CounterCache;
  /** Counts limits per second. */
  readonly perSecond: CounterCache;
}

type Counts = number[] | Promise<number[]>;
type Ask = (cache: CounterCache, hits: readonly Hit[]) => Counts;

/** What one of the caches did instead of answering. */
class Failure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

type Answer = number[] | Failure;

/**
 * Two caches as one: limits per second are counted in a cache of their own, all others in the main one.
 * Both are asked at the same time, and each hit in one of them alone.
 */
export class PerSecondCache implements CounterCache {
  readonly #main: CounterCache;
  readonly #perSecond: CounterCache;

  constructor({ main, perSecond }: PerSecondCacheOptions) {
    this.#main = main;
    this.#perSecond = perSecond;
  }

  add(hits: readonly Hit[], caller?: Caller): Counts {
    return this.#ask(hits, (cache, part) => cache.add(part, caller));
  }

  read(hits: readonly Hit[], caller?: Caller): Counts {
    return this.#ask(hits, (cache, part) => cache.read(part, caller));
  }

  async remove(keys: readonly string[]): Promise<void> {
    // A key alone does not tell which of them holds its counter.
    await this.#both((cache) => cache.remove(keys));
  }

  async close(): Promise<void> {
    await this.#both((cache) => cache.close());
  }

  #ask(hits: readonly Hit[], ask: Ask): Counts {
    const first = hits[0]?.perSecond === true;
    if (hits.every(({ perSecond }) => perSecond === first)) {
      return ask(first ? this.#perSecond : this.#main, hits);
    }
    const main = attempt(ask, this.#main, hits.filter(({ perSecond }) => !perSecond));
    const perSecond = attempt(ask, this.#perSecond, hits.filter(({ perSecond }) => perSecond));
    if (!(main instanceof Promise || perSecond instanceof Promise)) return joined(hits, main, perSecond);
    return Promise.all([main, perSecond]).then((answers) => joined(hits, ...answers));
  }

  /** Does the same to both, whatever becomes of the one, and throws what went wrong. */
  async #both(run: (cache: CounterCache) => Promise<void>): Promise<void> {
    const caches = [this.#main, this.#perSecond];
    const ends = await Promise.allSettled(caches.map(async (cache) => await run(cache)));
    const errors = ends.flatMap((end): unknown[] => end.status === "rejected" ? [end.reason] : []);
    if (errors.length > 0) throw oneError(errors);
  }
}

/** Asks one cache so that its failure does not keep the other's counts away. */
function attempt(ask: Ask, cache: CounterCache, hits: readonly Hit[]): Answer | Promise<Answer> {
  try {
    const counts = ask(cache, hits);
    return counts instanceof Promise ? counts.catch((error: unknown) => new Failure(error)) : counts;
  } catch (error) {
    return new Failure(error);
  }
}

/** The counts in the order of the hits; throws when a part of them did not come. */
function joined(hits: readonly Hit[], main: Answer, perSecond: Answer): number[] {
  if (!(main instanceof Failure || perSecond instanceof Failure)) return inOrder(hits, main, perSecond, 0);
  const errors = [main, perSecond].flatMap((answer) => answer instanceof Failure ? [answer.error] : []);
  throw oneError(errors, inOrder(hits, countsOf(main), countsOf(perSecond), undefined));
}

function inOrder<T>(hits: readonly Hit[], main: readonly T[], perSecond: readonly T[], missing: T): T[] {
  let fromMain = 0;
  let fromPerSecond = 0;
  return hits.map((hit) => (hit.perSecond ? perSecond[fromPerSecond++] : main[fromMain++]) ?? missing);
}

/** The counts that came, also those of an answer that failed in part. */
function countsOf(answer: Answer): readonly (number | undefined)[] {
  if (!(answer instanceof Failure)) return answer;
  return answer.error instanceof CacheError ? answer.error.counts : [];
}

/** One error that says all; a fault that is no failure of a cache goes on as it is. */
function oneError(errors: readonly unknown[], counts: readonly (number | undefined)[] = []): unknown {
  const failures = errors.filter((error) => error instanceof CacheError);
  const [first, second] = failures;
  if (first === undefined || failures.length < errors.length) {
    return errors.find((error) => !(error instanceof CacheError));
  }
  const came = counts.some((count) => count !== undefined) ? counts : [];
  const message = failures.map((failure) => failure.message).join("; ");
  return new CacheError(first.backend, message, {
    counts: came,
    cause: second === undefined ? first : failures,
  });
}
