import type { Clock } from "../base/clock.ts";
import type { Metrics } from "../base/metrics.ts";
import { withTimeout } from "../base/wait.ts";
import type { Caller, CounterCache, CountReceiver, Hit } from "../ratelimit/counter_cache.ts";
import { CacheError } from "../ratelimit/errors.ts";
import type { Answers } from "./hit_parts.ts";
import type { IN_FLIGHT_METRICS } from "./metrics.ts";

/** A cache is unavailable if hits wait for it, and it has not answered for so long. */
const SILENCE_MS = 1_000;

/** How hits in flight are limited. */
export interface InFlightCacheOptions {
  readonly maxInFlight: number;
  /** The back end that is wrapped, for errors. */
  readonly backend: CacheError["backend"];
  /** Longest wait of a caller that asks more than once, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/**
 * Limits the hits that wait for another cache; a call beyond the limit fails, unless nothing else waits. While the cache
 * answers, that is an overload, which clients can cause; else it is an outage.
 */
export class InFlightCache implements CounterCache {
  readonly metrics: Metrics<typeof IN_FLIGHT_METRICS.metrics> = {
    counters: { in_flight_refused: () => this.#refused },
    gauges: { in_flight: () => this.#inFlight },
  };
  readonly #cache: CounterCache;
  readonly #options: InFlightCacheOptions;
  readonly addOne?: NonNullable<CounterCache["addOne"]>;
  readonly take?: NonNullable<CounterCache["take"]>;
  readonly #release = (isAnswered: boolean) => this.#settled(1, isAnswered);
  #inFlight = 0;
  /** Since when there is no answer: the last one, or the first hit that waits after it. */
  #silentSince = -Infinity;
  /** Whether the last call was answered: a failure does not end the silence. */
  #isAnswered = false;
  #refused = 0;

  constructor(cache: CounterCache, options: InFlightCacheOptions) {
    this.#cache = cache;
    this.#options = options;
    const { addOne, take } = cache;
    if (take !== undefined) {
      this.take = (hits, caller) => {
        this.#admit(hits.length);
        return this.#hold(take.call(cache, hits, caller), hits.length, caller);
      };
    }
    if (addOne === undefined) return;
    this.addOne = (hit, caller, receiver) => {
      this.#admit(1);
      this.#wait(1);
      addOne.call(cache, hit, caller, new Held(receiver, this.#release));
    };
  }

  add(hits: readonly Hit[], caller?: Caller): Answers<number> {
    this.#admit(hits.length);
    return this.#hold(this.#cache.add(hits, caller), hits.length, caller);
  }

  read(hits: readonly Hit[], caller?: Caller): Answers<number> {
    this.#admit(hits.length);
    return this.#hold(this.#cache.read(hits, caller), hits.length, caller);
  }

  remove(keys: readonly string[]): Promise<void> {
    return this.#cache.remove(keys);
  }

  close(): Promise<void> {
    return this.#cache.close();
  }

  #admit(hits: number): void {
    const { maxInFlight, backend, clock } = this.#options;
    if (this.#inFlight === 0 || this.#inFlight + hits <= maxInFlight) return;
    this.#refused++;
    const message = `too many hits wait for the cache: ${this.#inFlight} of at most ${maxInFlight}`;
    throw new CacheError(backend, message, { isOverload: clock.elapsed() - this.#silentSince < SILENCE_MS });
  }

  #hold<Answer>(counts: Answers<Answer>, hits: number, caller: Caller | undefined): Answers<Answer> {
    if (!(counts instanceof Promise)) return counts;
    this.#wait(hits);
    // Before the caller continues, which may ask again.
    counts.then(() => this.#settled(hits, true), () => this.#settled(hits, false));
    return caller?.since === undefined ? counts : this.#within(counts, caller.since);
  }

  #wait(hits: number): void {
    // A cache that was not asked was not silent.
    if (this.#inFlight === 0 && this.#isAnswered) this.#silentSince = this.#options.clock.elapsed();
    this.#inFlight += hits;
  }

  #settled(hits: number, isAnswered: boolean): void {
    this.#inFlight -= hits;
    this.#isAnswered = isAnswered;
    if (isAnswered) this.#silentSince = this.#options.clock.elapsed();
  }

  /** The adapters limit each call, and this caller has asked before. */
  async #within<Answer>(counts: Promise<Answer[]>, since: number): Promise<Answer[]> {
    const { timeoutMs, clock, backend } = this.#options;
    const left = Math.min(timeoutMs, Math.max(0, since + timeoutMs - clock.elapsed()));
    return await withTimeout(counts, left, clock, () => {
      return new CacheError(backend, `Cannot query the cache: no response within ${timeoutMs} ms`);
    });
  }
}

/** Lets the hit go before its receiver continues, which may ask again. */
class Held implements CountReceiver {
  readonly #receiver: CountReceiver;
  readonly #release: (isAnswered: boolean) => void;

  constructor(receiver: CountReceiver, release: (isAnswered: boolean) => void) {
    this.#receiver = receiver;
    this.#release = release;
  }

  counted(count: number): void {
    this.#release(true);
    this.#receiver.counted(count);
  }

  failed(error: unknown): void {
    this.#release(false);
    this.#receiver.failed(error);
  }
}
