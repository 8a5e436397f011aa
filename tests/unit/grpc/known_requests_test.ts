import { assert, assertEquals, assertNotEquals } from "#assert";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import { readRateLimitRequest } from "../../../src/http/routes/rate_limit_json.ts";
import { UNITS } from "../../../src/ratelimit/units.ts";
import type { Counter, CounterCache } from "../../../src/ratelimit/decision/counter_cache.ts";
import { CacheError } from "../../../src/ratelimit/errors.ts";
import type { Policy } from "../../../src/ratelimit/decision/policy.ts";
import type { RateLimitRequest } from "../../../src/ratelimit/request.ts";
import { encodeRateLimitRequest } from "../../../src/wire/rls.ts";
import type { FakeClock } from "../../harness/fake_clock.ts";
import { collectGarbage } from "../../harness/garbage.ts";
import { KnownRequestsPair, laterCache } from "../../harness/known_requests_pair.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { loadRules, rulesOf } from "../../harness/service_fixture.ts";
import { COUNTED, vectorOptions } from "../../harness/vector_play.ts";
import { settledTurns } from "../../harness/until.ts";

const CACHES = {
  embedded: (maxKeys: number) => (clock: FakeClock) => new MemoryCache({ maxKeys, clock }),
  shared: (maxKeys: number) => (clock: FakeClock) => laterCache(clock, maxKeys),
};

for (const [kind, createCache] of Object.entries(CACHES)) {
  Deno.test(`known requests, ${kind} cache: every vector is decided as by reading`, async () => {
    let recognized = 0;
    for (const vector of COUNTED) {
      await using pair = new KnownRequestsPair({ ...vectorOptions(vector), createCache: createCache(1_000) });
      const keys: string[] = [];
      for (const { at, reload, request, expect } of vector.steps) {
        if (at !== undefined) pair.advance(at * 1_000 - pair.nowSeconds * 1_000);
        const rules = reload === undefined ? undefined : loadRules(reload).rules;
        if (rules !== undefined) pair.setRules(rules);
        if (request === undefined) continue;
        const bytes = encoded(readRateLimitRequest(JSON.stringify(request)));
        for (let time = 0; time < 4; time++) await pair.ask(bytes);
        keys.push(...expect.cacheKeys ?? []);
      }
      await pair.check(keys);
      recognized += pair.recognized;
    }
    assertNotEquals(recognized, 0);
  });
}

const rulesText = (limit: number) => `
domain: d
descriptors:
- { key: a, events: [over_limit], rate_limit: { unit: minute, requests_per_unit: ${limit} } }
- { key: a, value: v1, metadata: { tier: gold, hosts: [a, b] }, rate_limit: { unit: second, requests_per_unit: 2 } }
- { key: a, value: v2, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 3 } }
- { key: a, value: v3, rate_limit: { unlimited: true } }
- { key: a, value: v4, quota_mode: true, rate_limit: { unit: minute, requests_per_unit: 3 } }
- { key: a, value: "w*", share_threshold: true, rate_limit: { unit: minute, requests_per_unit: 4 } }
- { key: a, value: { regex: "^x[0-9]$" }, rate_limit: { unit: minute, requests_per_unit: 4 } }
- { key: a, value: { regex: "^y" }, share_threshold: true, rate_limit: { unit: minute, requests_per_unit: 4 } }
- { key: a, value: { in: [z1, z2] }, rate_limit: { unit: minute, requests_per_unit: 3 } }
- { key: b, events: [over_limit, near_limit], rate_limit: { unit: minute, requests_per_unit: 5 } }
- { key: s, events: [over_limit], rate_limit: { unit: minute, requests_per_unit: ${limit}, algorithm: sliding_window } }
- { key: t, events: [near_limit], rate_limit: { unit: minute, requests_per_unit: 9, algorithm: token_bucket, burst: ${limit} } }
- { key: f, rate_limit: { algorithm: concurrency, max_in_flight: ${limit}, lease: 20s } }
- { key: g, detailed_metric: true, rate_limit: { unit: minute, requests_per_unit: 5 } }
- { key: g, value: v0, rate_limit: { unit: month, requests_per_unit: 5 } }
- { key: h, rate_limit: { unit: minute, requests_per_unit: 4294967295 } }
- { key: h, value: v1, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 2147483648, algorithm: sliding_window } }
- { key: h, value: v2, rate_limit: { unit: minute, requests_per_unit: 4294967295, algorithm: token_bucket, burst: 2147483648 } }
- { key: c, rate_limit: { name: c, unit: day, requests_per_unit: ${limit * 2} } }
- key: e
  rate_limit: { unit: minute, requests_per_unit: 6, replaces: [{ name: c }] }
  descriptors:
  - { key: a, rate_limit: { unit: minute, unit_multiplier: 2, requests_per_unit: 7 } }
- key: p
  rate_limit: { unit: minute, requests_per_unit: 6 }
  descriptors:
  - { key: a, fallback: parent, descriptors: [{ key: b, fallback: parent }] }
- key: m
  rate_limits: [{ unit: second, requests_per_unit: 2 }, { unit: minute, requests_per_unit: ${limit} }]
- key: n
  events: [over_limit]
  rate_limits:
  - { unit: second, requests_per_unit: 3 }
  - { unit: minute, requests_per_unit: ${limit}, algorithm: token_bucket, burst: 5 }
  - { unit: hour, requests_per_unit: 30, algorithm: sliding_window }
`;

/** Near the bounds of the numbers that responses, statistics and counters have. */
const LARGE_HITS = [2 ** 31 - 1, 2 ** 31, 2 ** 32 - 2, 2 ** 32, 2 ** 53, 2 ** 60];

/** Some requests have properties that are never learned. */
function randomRequest(random: () => number): RateLimitRequest {
  const pick = <T>(items: readonly [T, ...T[]]): T => items[Math.floor(random() * items.length)] ?? items[0];
  const descriptor = () => ({
    entries: Array.from({ length: pick([1, 1, 1, 2]) }, () => ({
      key: pick(["a", "a", "b", "c", "e", "s", "t", "f", "g", "h", "h", "p", "p", "m", "m", "n"]),
      value: pick(["v0", "v1", "v2", "v3", "v4", "w1", "w2", "x1", "y1", "y2", "z1"]),
    })),
    limit: random() < 0.05 ? { requestsPerUnit: 2, unit: "MINUTE" as const } : undefined,
    hitsAddend: random() < 0.15 ? pick([0, 1, 3, ...LARGE_HITS]) : undefined,
    isNegativeHits: random() < 0.05,
  });
  return {
    domain: random() < 0.95 ? "d" : "unknown",
    descriptors: random() < 0.1
      ? new Array(2).fill(descriptor())
      : Array.from({ length: pick([1, 1, 1, 1, 1, 2, 2, 3, 9]) }, descriptor),
    hitsAddend: random() < 0.2 ? pick([2, 5, 2 ** 31, 2 ** 32 - 1]) : 0,
  };
}

const POLICIES: Readonly<
  Record<string, { policy?: Partial<Policy>; localCacheBytes?: number; maxKeys: number }>
> = {
  "the default policy": { maxKeys: 1_000 },
  "a local cache": { maxKeys: 1_000, localCacheBytes: 10_000 },
  "evictions": { maxKeys: 6 },
  "reading first": { maxKeys: 1_000, policy: { stopIncrementWhenOverLimit: true } },
  "shadow mode": { maxKeys: 1_000, policy: { shadowMode: true } },
  "quota mode": { maxKeys: 1_000, policy: { quotaMode: true } },
  "metadata": { maxKeys: 1_000, policy: { dynamicMetadata: true } },
  "metadata in shadow mode": { maxKeys: 1_000, policy: { dynamicMetadata: true, shadowMode: true } },
  "the headers of all units, standard headers and metadata": {
    maxKeys: 1_000,
    policy: {
      unitHeaders: { limit: "l", remaining: "r" },
      standardHeaders: true,
      calendarMonths: true,
      dynamicMetadata: true,
    },
  },
  "standard headers and a local cache": {
    maxKeys: 1_000,
    localCacheBytes: 10_000,
    policy: { standardHeaders: true, stopIncrementWhenOverLimit: true },
  },
  "response headers": {
    maxKeys: 1_000,
    policy: { responseHeaders: { limit: "l", remaining: "r", reset: "s" } },
  },
  "all headers in quota and shadow mode, with a local cache": {
    maxKeys: 1_000,
    localCacheBytes: 10_000,
    policy: {
      quotaMode: true,
      shadowMode: true,
      standardHeaders: true,
      responseHeaders: { limit: "l", remaining: "r", reset: "s" },
    },
  },
};

for (const [kind, createCache] of Object.entries(CACHES)) {
  for (const [what, { maxKeys, ...options }] of Object.entries(POLICIES)) {
    Deno.test(`known requests, ${kind} cache, ${what}: random requests are decided as by reading`, async () => {
      let [recognized, reported] = [0, 0];
      for (let seed = 1; seed <= 8; seed++) {
        const random = seededRandom(seed);
        const files = { "r.yaml": rulesText(8) };
        await using pair = new KnownRequestsPair({ ...options, files, createCache: createCache(maxKeys) });
        // Few requests, so that each is seen often.
        const requests = Array.from({ length: 40 }, () => encoded(randomRequest(random)));
        const key = () => `d_a_v${Math.floor(random() * 5)}_${pair.nowSeconds - (pair.nowSeconds % 60)}`;
        for (let step = 0; step < 800; step++) {
          const chance = random();
          if (chance < 0.01) pair.advance(random() * 90_000);
          else if (chance < 0.05) pair.advance(random() * 2_000);
          else if (chance < 0.055) pair.setBack(random() * 3_000);
          else if (chance < 0.06) {
            pair.setRules(rulesOf({ "r.yaml": rulesText(4 + Math.floor(random() * 8)) }));
          } else if (chance < 0.07) await pair.remove([key()]);
          await pair.ask(requests[Math.floor(random() * requests.length)] ?? new Uint8Array());
        }
        await pair.check([key(), key(), key()]);
        recognized += pair.recognized;
        reported += pair.reported;
      }
      assertNotEquals(reported, 0);
      assertNotEquals(recognized, 0);
    });
  }
}

for (const [kind, createCache] of Object.entries(CACHES)) {
  Deno.test(`known requests, ${kind} cache: those of named hits are read each time`, async () => {
    const limit = "rate_limit: { algorithm: concurrency, max_in_flight: 3, lease: 20s }";
    const files = { "r.yaml": `{ domain: d, descriptors: [{ key: id, identifies: true, ${limit} }] }` };
    await using pair = new KnownRequestsPair({ files, createCache: createCache(100) });
    for (const isNegativeHits of [false, true, false]) {
      const descriptors = [{ entries: [{ key: "id", value: "a" }], isNegativeHits }];
      const request = encoded({ domain: "d", descriptors, hitsAddend: 0 });
      for (let time = 0; time < 5; time++) await pair.ask(request);
    }
    assertEquals(pair.recognized, 0);
    await pair.check([]);
  });
}

for (const [kind, createCache] of Object.entries(CACHES)) {
  for (const algorithm of ["fixed_window", "sliding_window"]) {
    Deno.test(`known requests, ${kind} cache: hits in several windows, ${algorithm}, count in each`, async () => {
      const limits = `rate_limits: [{ unit: second, requests_per_unit: 5 }, ` +
        `{ unit: minute, requests_per_unit: 12, algorithm: ${algorithm} }]`;
      const files = { "r.yaml": `{ domain: d, descriptors: [{ key: k, ${limits} }] }` };
      await using pair = new KnownRequestsPair({
        files,
        createCache: createCache(100),
        localCacheBytes: 10_000,
      });
      const descriptors = [{ entries: [{ key: "k", value: "a" }] }];
      const request = encoded({ domain: "d", descriptors, hitsAddend: 0 });
      const keys: string[] = [];
      for (let second = 0; second < 70; second += 5) {
        for (let time = 0; time < 7; time++) await pair.ask(request);
        const now = pair.nowSeconds;
        keys.push(`{d_k_a}_1s_${now}`, `{d_k_a}_60s_${now - now % 60}`);
        pair.advance(second % 2 === 0 ? 1_000 : 9_000);
      }
      assertEquals(pair.recognized > 40, true, `${pair.recognized}`);
      await pair.check(keys);
    });
  }
}

const LIST = {
  domain: "d",
  descriptors: ["k", "l", "k", "o"].map((key, index) => ({ entries: [{ key, value: `v${index}` }] })),
  hitsAddend: 0,
};
const LIST_RULES = {
  "r.yaml": `
domain: d
descriptors:
- { key: k, rate_limit: { unit: minute, requests_per_unit: 9 } }
- { key: l, rate_limit: { unit: second, requests_per_unit: 4, algorithm: sliding_window } }
- { key: o, on_cache_failure: allow, rate_limit: { unit: hour, requests_per_unit: 30 } }
`,
};

for (const [kind, createCache] of Object.entries(CACHES)) {
  for (const localCacheBytes of [0, 10_000]) {
    const what = `${kind} cache, ${localCacheBytes} bytes of local cache`;
    Deno.test(`known requests, ${what}: several descriptors are decided as by reading`, async () => {
      const cache = createCache(100);
      const files = LIST_RULES;
      await using pair = new KnownRequestsPair({ files, localCacheBytes, createCache: cache });
      for (let second = 0; second < 20; second++) {
        for (let time = 0; time < 4; time++) await pair.ask(encoded(LIST));
        pair.advance(second === 15 ? 60_000 : 1_000);
      }
      assertEquals(pair.recognized > 60, true, `${pair.recognized}`);
      await pair.check([0, 2].map((index) => `d_k_v${index}_${pair.nowSeconds - pair.nowSeconds % 60}`));
    });
  }
}

for (const failing of ["_o_", "_k_v0", "_k_", "d_"]) {
  Deno.test(`known requests: several descriptors while the cache fails for ${failing}`, async () => {
    let isFailing = false;
    const createCache = (clock: FakeClock): CounterCache => {
      const cache = laterCache(clock, 100);
      return {
        ...cache,
        counterOf: (hit) => {
          const counter = cache.counterOf(hit);
          const take: Counter["take"] = (hits, caller, receiver) => {
            if (!isFailing || !hit.key.includes(failing)) counter.take(hits, caller, receiver);
            else queueMicrotask(() => receiver.failed(new CacheError("kv", "no connection")));
          };
          return { take };
        },
      };
    };
    const policy = { onCacheFailure: failing === "_k_v0" ? "deny" : "error" } as const;
    await using pair = new KnownRequestsPair({ files: LIST_RULES, policy, createCache });
    for (let time = 0; time < 9; time++) {
      isFailing = time === 5 || time === 7;
      await pair.ask(encoded(LIST));
    }
    assertEquals(pair.recognized, 6);
    await pair.check([]);
  });
}

Deno.test("known requests: several descriptors whose limits have long names are decided as by reading", async () => {
  const name = "n".repeat(3_000);
  const rule = `{ key: k, rate_limit: { name: ${name}, unit: minute, requests_per_unit: 100 } }`;
  const files = { "r.yaml": `{ domain: d, descriptors: [${rule}] }` };
  await using pair = new KnownRequestsPair({ files, createCache: CACHES.embedded(100) });
  for (let time = 0; time < 8; time++) {
    await pair.ask(encoded({
      ...LIST,
      descriptors: ["a", "b", "c", "d"].map((value) => ({ entries: [{ key: "k", value }] })),
    }));
  }
  assertEquals(pair.recognized, 5);
  await pair.check([]);
});

/** Applies rules and learns a request that does not recur. */
async function reloadAndLearn(pair: KnownRequestsPair, value: string): Promise<WeakRef<object>> {
  const rules = rulesOf({ "r.yaml": rulesText(8) });
  pair.setRules(rules);
  const descriptors = [{ entries: [{ key: "a", value }] }];
  const request = encoded({ domain: "d", descriptors, hitsAddend: 0 });
  for (let time = 0; time < 4; time++) await pair.ask(request);
  return new WeakRef(rules);
}

for (const [kind, createCache] of Object.entries(CACHES)) {
  Deno.test(`known requests, ${kind} cache: those that do not recur after a reload keep no former rules`, async () => {
    await using pair = new KnownRequestsPair({ files: {}, createCache: createCache(1_000) });
    const loaded: WeakRef<object>[] = [];
    for (let reload = 0; reload < 5; reload++) loaded.push(await reloadAndLearn(pair, `once${reload}`));
    assert(pair.recognized > 0);
    // References that were made in a turn are kept until it ends.
    await settledTurns();
    collectGarbage();
    const kept = loaded.map((rules) => rules.deref() !== undefined);
    assertEquals(kept, [false, false, false, false, true]);
  });
}

Deno.test("known requests: lookups do not pause while three of ten calls are known", async () => {
  await using pair = new KnownRequestsPair({ files: LIST_RULES, createCache: CACHES.embedded(1_000) });
  const requestOf = (value: string) =>
    encoded({ ...LIST, descriptors: [{ entries: [{ key: "k", value }] }] });
  const known = requestOf("known");
  const isRecognized = () => {
    const before = pair.recognized;
    pair.askKnown(known);
    return pair.recognized > before;
  };
  for (let time = 0; time < 4; time++) isRecognized();
  for (let call = 0; call < 35_000; call++) pair.askKnown(call % 10 < 3 ? known : requestOf(`once${call}`));
  assertEquals(isRecognized(), true);
});

function encoded({ domain, descriptors, hitsAddend }: RateLimitRequest): Uint8Array {
  return encodeRateLimitRequest({
    domain,
    hitsAddend,
    descriptors: descriptors.map(({ limit, isNegativeHits = false, ...descriptor }) => ({
      ...descriptor,
      isNegativeHits,
      limit: limit === undefined ? undefined : {
        requestsPerUnit: limit.requestsPerUnit,
        unit: limit.unit === undefined ? 0 : UNITS[limit.unit].number,
      },
    })),
  });
}
