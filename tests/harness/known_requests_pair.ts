import { createRateLimitGrpcService } from "../../src/grpc/rate_limit_service.ts";
import { KnownRequests } from "../../src/grpc/known/known_requests.ts";
import { responseBytes } from "../../src/grpc/responses.ts";
import type { CallContext, UnaryMethod } from "../../src/grpc/grpc_service.ts";
import type { CounterCache } from "../../src/ratelimit/decision/counter_cache.ts";
import type { LimitEventSink, LimitFact } from "../../src/ratelimit/decision/limit_events.ts";
import type { Rules } from "../../src/ratelimit/rules/rules.ts";
import { MemoryCache } from "../../src/cache/memory_cache.ts";
import { assertEquals } from "./assert.ts";
import type { FakeClock } from "./fake_clock.ts";
import { ServiceFixture, type ServiceFixtureOptions } from "./service_fixture.ts";
import { readCounts } from "./take.ts";

const CALL: CallContext = { header: () => undefined, cancelled: false };

/** Keeps what rules with events report. */
class ReportedFacts implements LimitEventSink {
  readonly texts: string[] = [];

  note(facts: readonly LimitFact[], now: number): void {
    for (const { event, key, hits } of facts) this.texts.push(`${now} ${event} ${key} ${hits}`);
  }
}

type Handle = (request: Uint8Array) => Promise<Uint8Array | string>;

/** Options of a pair: the cache is created for each of the two. */
interface PairOptions extends ServiceFixtureOptions {
  readonly createCache: (clock: FakeClock) => CounterCache;
}

/**
 * Two services with equal rules, clocks and caches. One recognizes requests by their bytes and the other reads each of
 * them; every response is compared, and `check` compares all that they counted.
 */
export class KnownRequestsPair implements AsyncDisposable {
  readonly #known: ServiceFixture;
  readonly #plain: ServiceFixture;
  readonly #facts = [new ReportedFacts(), new ReportedFacts()] as const;
  readonly #handleKnown: Handle;
  readonly #handlePlain: Handle;
  readonly #requests: CountedRequests;

  constructor({ createCache, ...options }: PairOptions) {
    const [ofKnown, ofPlain] = this.#facts;
    this.#known = new ServiceFixture({ ...options, createCache, limitEvents: ofKnown });
    this.#plain = new ServiceFixture({ ...options, createCache, limitEvents: ofPlain });
    this.#requests = new CountedRequests({ service: this.#known.service, random: () => 0.5 });
    this.#handleKnown = handleOf(this.#known, this.#requests);
    this.#handlePlain = handleOf(this.#plain, undefined);
  }

  /** Requests that were recognized. */
  get recognized(): number {
    return this.#requests.recognized;
  }

  /** Seconds since the epoch. */
  get nowSeconds(): number {
    return Math.floor(this.#known.clock.now() / 1_000);
  }

  /** Asks both and compares the responses. */
  async ask(request: Uint8Array): Promise<void> {
    const [known, plain] = [await this.#handleKnown(request), await this.#handlePlain(request)];
    assertEquals(known, plain);
  }

  /** Asks only the one that recognizes requests, in an embedded cache, as an engine does with whole frames. */
  askKnown(request: Uint8Array): void {
    const { direct, handle } = methodOf(this.#known, this.#requests);
    if (direct?.(request, 0, request.length, []) === undefined) void handle(request, CALL);
  }

  advance(ms: number): void {
    for (const { clock } of this.#both) clock.advance(ms);
  }

  /** Sets the wall clocks back. */
  setBack(ms: number): void {
    for (const { clock } of this.#both) clock.aheadMs -= ms;
  }

  setRules(rules: Rules): void {
    for (const { service } of this.#both) service.setRules(rules);
  }

  async remove(keys: readonly string[]): Promise<void> {
    for (const { cache } of this.#both) await cache.remove(keys);
  }

  /** Compares statistics, totals and counters. */
  async check(keys: readonly string[]): Promise<void> {
    const [known, plain] = await Promise.all([this.#known, this.#plain].map(async (fixture) => ({
      stats: fixture.nonZeroStats(),
      tally: [fixture.service.tally.total, fixture.service.tally.overLimit],
      rules: fixture.service.rules?.limits.map((_, index) => fixture.service.ruleCounts?.at(index)),
      top: fixture.service.tally.overLimitKeys.top(10, this.nowSeconds),
      counts: await readCounts(fixture.cache, keys.map((key) => ({ ...HIT, key }))),
    })));
    assertEquals(known, plain);
    const [ofKnown, ofPlain] = this.#facts;
    assertEquals(ofKnown.texts, ofPlain.texts);
  }

  get reported(): number {
    return this.#facts[0].texts.length;
  }

  get #both(): readonly ServiceFixture[] {
    return [this.#known, this.#plain];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#known[Symbol.asyncDispose]();
    await this.#plain[Symbol.asyncDispose]();
  }
}

const HIT = { key: "", addend: 0, windowEnd: 0, expiresInSeconds: 1, perSecond: false };

/** An embedded cache that the service takes for a shared one, which answers later. */
export function laterCache(clock: FakeClock, maxKeys: number): CounterCache {
  const cache = new MemoryCache({ maxKeys, clock });
  return {
    isConditional: true,
    isImmediate: false,
    counterOf: (hit) => {
      const counter = cache.counterOf(hit);
      return {
        take: (hits, caller, receiver) => queueMicrotask(() => counter.take(hits, caller, receiver)),
      };
    },
    remove: (keys) => cache.remove(keys),
    close: () => cache.close(),
  };
}

/** Counts what it recognizes. */
class CountedRequests extends KnownRequests {
  recognized = 0;

  override direct(...request: Parameters<KnownRequests["direct"]>): ReturnType<KnownRequests["direct"]> {
    return this.#count(super.direct(...request));
  }

  override respond(...request: Parameters<KnownRequests["respond"]>): ReturnType<KnownRequests["respond"]> {
    return this.#count(super.respond(...request));
  }

  override handle(...request: Parameters<KnownRequests["handle"]>): ReturnType<KnownRequests["handle"]> {
    return this.#count(super.handle(...request));
  }

  #count<T>(found: T): T {
    if (found !== undefined) this.recognized++;
    return found;
  }
}

function methodOf(fixture: ServiceFixture, known: KnownRequests | undefined): UnaryMethod {
  const decide = fixture.service.shouldRateLimit.bind(fixture.service);
  const [method] = createRateLimitGrpcService(decide, known === undefined ? {} : { known }).methods;
  if (method?.kind !== "unary") throw new Error("The service has no unary method");
  return method;
}

function handleOf(fixture: ServiceFixture, known: KnownRequests | undefined): Handle {
  const method = methodOf(fixture, known);
  let calls = 0;
  return async (request) => {
    try {
      // Every other call is answered as a whole frame is, with bytes of the next one behind it.
      const frame = new Uint8Array([...request, ...request]);
      const direct = ++calls % 2 === 0 ? method.direct?.(frame, 0, request.length, []) : undefined;
      return direct === undefined ? await method.handle(request, CALL) : responseBytes(direct);
    } catch (error) {
      return String(error);
    }
  };
}
