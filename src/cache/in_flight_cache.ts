import type { Clock } from "../base/clock.ts";
import type { Metrics } from "../base/metrics.ts";
import type { Counted } from "../ratelimit/algorithms/taken.ts";
import type {
  Caller,
  Counter,
  CounterCache,
  CountReceiver,
  TakenHit,
} from "../ratelimit/decision/counter_cache.ts";
import { CacheError } from "../ratelimit/errors.ts";
import type { IN_FLIGHT_METRICS } from "./metrics.ts";

/** A cache is unavailable if hits wait for it, and it has not answered for so long. */
const SILENCE_MS = 1_000;

/** Limits of hits in flight. */
interface InFlightCacheOptions {
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
  readonly isConditional: boolean;
  readonly isImmediate: boolean;
  readonly #cache: CounterCache;
  readonly #gate: Gate;

  constructor(cache: CounterCache, options: InFlightCacheOptions) {
    this.isConditional = cache.isConditional;
    this.isImmediate = cache.isImmediate;
    this.#cache = cache;
    this.#gate = new Gate(options);
  }

  get metrics(): Metrics<typeof IN_FLIGHT_METRICS.metrics> {
    return {
      counters: { in_flight_refused: () => this.#gate.refused },
      gauges: { in_flight: () => this.#gate.inFlight },
    };
  }

  counterOf(hit: TakenHit): Counter {
    return new LimitedCounter(this.#cache.counterOf(hit), this.#gate);
  }

  remove(keys: readonly string[]): Promise<void> {
    return this.#cache.remove(keys);
  }

  close(): Promise<void> {
    return this.#cache.close();
  }
}

/** Counts the hits that wait, and refuses calls. */
class Gate {
  readonly #options: InFlightCacheOptions;
  inFlight = 0;
  refused = 0;
  /** Since when there is no answer: the first hit after the last one. A failure does not end the silence. */
  #silentSince = -Infinity;
  /** True if there was an answer after the last hit. */
  #isAnswered = false;
  /** The call of the last hit, how many of its hits are left, and why it was refused. */
  readonly #last: { caller: Caller | undefined; left: number; refusal: CacheError | undefined } = {
    caller: undefined,
    left: 0,
    refusal: undefined,
  };

  constructor(options: InFlightCacheOptions) {
    this.#options = options;
  }

  /** Admits a hit, or returns why not; the hits of one call are admitted together. */
  admit(caller: Caller | undefined): CacheError | undefined {
    // Not at each answer, of which a batch has many. A cache that was not asked was not silent.
    if (this.#isAnswered) this.#silentSince = this.#options.clock.elapsed();
    this.#isAnswered = false;
    const last = this.#last;
    if (last.left > 0 && last.caller === caller) last.left--;
    else {
      const hits = caller?.hitCount ?? 1;
      last.caller = caller;
      last.left = hits - 1;
      last.refusal = this.#refusal(hits);
    }
    if (last.left === 0) last.caller = undefined;
    if (last.refusal !== undefined) return last.refusal;
    this.inFlight++;
    return undefined;
  }

  release(isAnswered: boolean): void {
    this.inFlight--;
    if (isAnswered) this.#isAnswered = true;
  }

  /** Fails the hits of a caller that has asked before, when its time is over: the adapters limit each take. */
  limitTime(held: HeldHit, since: number): void {
    const { timeoutMs, clock, backend } = this.#options;
    const left = Math.min(timeoutMs, Math.max(0, since + timeoutMs - clock.elapsed()));
    held.cancelTimer = clock.after(left, () => {
      held.giveUp(new CacheError(backend, `Cannot query the cache: no response within ${timeoutMs} ms`));
    });
  }

  #refusal(hits: number): CacheError | undefined {
    const { maxInFlight, backend, clock } = this.#options;
    if (this.inFlight === 0 || this.inFlight + hits <= maxInFlight) return undefined;
    this.refused++;
    const message = `too many hits wait for the cache: ${this.inFlight} of at most ${maxInFlight}`;
    return new CacheError(backend, message, { isOverload: clock.elapsed() - this.#silentSince < SILENCE_MS });
  }
}

class LimitedCounter implements Counter {
  readonly #counter: Counter;
  readonly #gate: Gate;

  constructor(counter: Counter, gate: Gate) {
    this.#counter = counter;
    this.#gate = gate;
  }

  take(hits: number, caller: Caller | undefined, receiver: CountReceiver): void {
    const refusal = this.#gate.admit(caller);
    if (refusal !== undefined) return receiver.failed(refusal);
    const held = new HeldHit(receiver, this.#gate);
    this.#counter.take(hits, caller, held);
    if (caller?.since !== undefined && held.isWaiting) this.#gate.limitTime(held, caller.since);
  }
}

/** A hit that waits. It is released before its receiver continues, which may ask again. */
class HeldHit implements CountReceiver {
  readonly #gate: Gate;
  /** Absent once it has its outcome. */
  #receiver: CountReceiver | undefined;
  cancelTimer: (() => void) | undefined = undefined;

  constructor(receiver: CountReceiver, gate: Gate) {
    this.#receiver = receiver;
    this.#gate = gate;
  }

  get isWaiting(): boolean {
    return this.#receiver !== undefined;
  }

  counted(count: Counted): void {
    this.#gate.release(true);
    this.#end()?.counted(count);
  }

  failed(error: unknown): void {
    this.#gate.release(false);
    this.#end()?.failed(error);
  }

  /** Fails for its receiver; the cache still holds it. */
  giveUp(error: CacheError): void {
    this.#end()?.failed(error);
  }

  #end(): CountReceiver | undefined {
    const receiver = this.#receiver;
    this.#receiver = undefined;
    this.cancelTimer?.();
    return receiver;
  }
}
