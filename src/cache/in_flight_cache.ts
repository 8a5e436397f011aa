import type { Clock } from "../base/clock.ts";
import type { Metrics } from "../base/metrics.ts";
import { withTimeout } from "../base/wait.ts";
import type { Caller, CounterCache, CountReceiver, Hit } from "../ratelimit/counter_cache.ts";
import { CacheError } from "../ratelimit/errors.ts";
import type { Answers } from "./hit_parts.ts";
import type { IN_FLIGHT_METRICS } from "./metrics.ts";

/** How hits in flight are limited. */
export interface InFlightCacheOptions {
  readonly maxInFlight: number;
  /** The back end that is wrapped, for errors. */
  readonly backend: CacheError["backend"];
  /** Longest wait of a caller that asks more than once, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Limits the hits that wait for another cache; a call beyond the limit fails, unless nothing else waits. */
export class InFlightCache implements CounterCache {
  readonly metrics: Metrics<typeof IN_FLIGHT_METRICS.metrics> = {
    counters: { in_flight_refused: () => this.#refused },
    gauges: { in_flight: () => this.#inFlight },
  };
  readonly #cache: CounterCache;
  readonly #options: InFlightCacheOptions;
  readonly addOne?: NonNullable<CounterCache["addOne"]>;
  readonly take?: NonNullable<CounterCache["take"]>;
  readonly #release = () => void this.#inFlight--;
  #inFlight = 0;
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
      this.#inFlight++;
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
    const { maxInFlight, backend } = this.#options;
    if (this.#inFlight === 0 || this.#inFlight + hits <= maxInFlight) return;
    this.#refused++;
    const message = `too many hits wait for the cache: ${this.#inFlight} of at most ${maxInFlight}`;
    throw new CacheError(backend, message);
  }

  #hold<Answer>(counts: Answers<Answer>, hits: number, caller: Caller | undefined): Answers<Answer> {
    if (!(counts instanceof Promise)) return counts;
    this.#inFlight += hits;
    const release = () => void (this.#inFlight -= hits);
    // Before the caller continues, which may ask again.
    counts.then(release, release);
    return caller?.since === undefined ? counts : this.#within(counts, caller.since);
  }

  /** The adapters limit each call, and this caller has asked before. */
  async #within<Answer>(counts: Promise<Answer[]>, since: number): Promise<Answer[]> {
    const { timeoutMs, clock, backend } = this.#options;
    const left = Math.min(timeoutMs, Math.max(0, since + timeoutMs - clock.now()));
    return await withTimeout(counts, left, clock, () => {
      return new CacheError(backend, `Cannot query the cache: no response within ${timeoutMs} ms`);
    });
  }
}

/** Lets the hit go before its receiver continues, which may ask again. */
class Held implements CountReceiver {
  readonly #receiver: CountReceiver;
  readonly #release: () => void;

  constructor(receiver: CountReceiver, release: () => void) {
    this.#receiver = receiver;
    this.#release = release;
  }

  counted(count: number): void {
    this.#release();
    this.#receiver.counted(count);
  }

  failed(error: unknown): void {
    this.#release();
    this.#receiver.failed(error);
  }
}
