import { assertEquals } from "#assert";
import { Leases } from "../../../src/ratelimit/algorithms/leases.ts";
import { type StateLimit, stateSize, take } from "../../../src/ratelimit/algorithms/conditional_limit.ts";
import {
  type AnyHit,
  type Counter,
  type CounterCache,
  isConditional,
} from "../../../src/ratelimit/decision/counter_cache.ts";
import { ServiceFixture } from "../../harness/service_fixture.ts";
import type { FakeClock } from "../../harness/fake_clock.ts";

/** All that a counter cache has to be: this one forgets nothing by itself. */
class ToyCache implements CounterCache {
  readonly isConditional = true;
  readonly isImmediate = true;
  readonly #clock: FakeClock;
  readonly #counts = new Map<string, number>();
  readonly #states = new Map<string, Float64Array>();
  readonly #leases = new Map<string, Leases>();

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  counterOf(hit: AnyHit): Counter {
    const { key } = hit;
    if ("holder" in hit) {
      const leases = this.#leases.get(key) ?? new Leases();
      this.#leases.set(key, leases);
      return {
        take: (hits, _caller, receiver) =>
          receiver.counted(leases.take(hit.limit, this.#clock.now() * 1_000, hit.holder, hits)),
      };
    }
    if (isConditional(hit)) {
      return { take: (hits, _caller, receiver) => receiver.counted(this.#take(key, hit.limit, hits)) };
    }
    return {
      take: (hits, _caller, receiver) => {
        const count = Math.max(0, (this.#counts.get(key) ?? 0) + hits);
        this.#counts.set(key, count);
        receiver.counted(count);
      },
    };
  }

  remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      this.#counts.delete(key);
      this.#states.delete(key);
      this.#leases.delete(key);
    }
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #take(key: string, limit: StateLimit, hits: number): ReturnType<typeof take> {
    let state = this.#states.get(key);
    if (state === undefined) this.#states.set(key, state = new Float64Array(stateSize(limit.kind)));
    return take(state, 0, limit, this.#clock.now() * 1_000, hits);
  }
}

const RULES = `
domain: d
descriptors:
- {key: fixed, rate_limit: {unit: minute, requests_per_unit: 2}}
- {key: sliding, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: sliding_window}}
- {key: bucket, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: token_bucket}}
- {key: flight, rate_limit: {algorithm: concurrency, max_in_flight: 2, lease: 60s}}
- {key: named, identifies: true, rate_limit: {algorithm: concurrency, max_in_flight: 2, lease: 60s}}
`;

Deno.test("a counter cache of one page counts for every algorithm", async () => {
  await using fixture = new ServiceFixture({
    files: { "r.yaml": RULES },
    createCache: (clock) => new ToyCache(clock),
  });
  const codes = (key: string, hitsAddend: number) => {
    const descriptors = [{ entries: [{ key, value: "v" }], hitsAddend }];
    const decision = fixture.service.shouldRateLimit({ domain: "d", hitsAddend: 0, descriptors });
    return decision instanceof Promise ? "later" : decision.overallCode;
  };
  for (const key of ["fixed", "sliding", "bucket", "flight", "named"]) {
    assertEquals([codes(key, 1), codes(key, 1), codes(key, 1)], ["OK", "OK", "OVER_LIMIT"], key);
  }
});
