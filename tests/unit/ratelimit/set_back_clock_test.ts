import { assertEquals } from "#assert";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import { encodeRateLimitRequest } from "../../../src/wire/rls.ts";
import type { FakeClock } from "../../harness/fake_clock.ts";
import { KnownRequestsPair, laterCache } from "../../harness/known_requests_pair.ts";
import { ServiceFixture } from "../../harness/service_fixture.ts";

const FILES = {
  "d.yaml": `domain: d
descriptors:
- { key: second, rate_limit: { unit: second, requests_per_unit: 2 } }
- { key: minute, rate_limit: { unit: minute, requests_per_unit: 2 } }
- { key: sliding, rate_limit: { unit: minute, requests_per_unit: 2, algorithm: sliding_window } }
- { key: bucket, rate_limit: { unit: minute, requests_per_unit: 2, algorithm: token_bucket } }
- { key: flight, rate_limit: { algorithm: concurrency, max_in_flight: 2, lease: 60s } }
- { key: named, identifies: true, rate_limit: { algorithm: concurrency, max_in_flight: 2, lease: 60s } }
- { key: day, rate_limit: { unit: day, requests_per_unit: 2 } }
`,
};
/** The middle of a minute, of an hour and of a day. */
const AT = 1_699_963_230;
const HOUR_MS = 3_600_000;

const createCache = (clock: FakeClock) => new MemoryCache({ maxKeys: 1_000, clock });

function requestOf(key: string) {
  const descriptors = [{ entries: [{ key, value: "a" }], isNegativeHits: false }];
  return { domain: "d", descriptors, hitsAddend: 1 };
}

/** A set-back of the clock, and whether a key that is refused may pass immediately, and after so long. */
interface Case {
  readonly key: string;
  readonly backMs: number;
  readonly codes: readonly (readonly [number, "OK" | "OVER_LIMIT"])[];
}

const CASES: readonly Case[] = [
  ...["minute", "sliding", "bucket", "flight", "named"].flatMap((key): Case[] => [
    // Time stands still, and goes on when it was made up for.
    { key, backMs: 1_000, codes: [[0, "OVER_LIMIT"], [900, "OVER_LIMIT"], [70_000, "OK"]] },
    { key, backMs: HOUR_MS, codes: [[0, "OK"], [0, "OK"], [0, "OVER_LIMIT"], [70_000, "OK"]] },
  ]),
  { key: "second", backMs: 900, codes: [[0, "OVER_LIMIT"], [900, "OVER_LIMIT"], [1_000, "OK"]] },
  { key: "second", backMs: HOUR_MS, codes: [[0, "OK"], [0, "OK"], [0, "OVER_LIMIT"], [1_000, "OK"]] },
  // The window has begun before the new time.
  { key: "day", backMs: HOUR_MS, codes: [[0, "OVER_LIMIT"], [HOUR_MS, "OVER_LIMIT"]] },
  // What was counted in a future does not come back with it.
  { key: "minute", backMs: 120_000, codes: [[0, "OK"], [120_000, "OK"]] },
];

for (const localCacheBytes of [0, 100_000]) {
  const local = localCacheBytes > 0 ? "with" : "without";
  for (const { key, backMs, codes } of CASES) {
    Deno.test(`a clock set back by ${backMs} ms: ${key} ${local} a local cache`, async () => {
      await using fixture = new ServiceFixture({ files: FILES, at: AT, createCache, localCacheBytes });
      const { clock, service } = fixture;
      const ask = async () => (await service.shouldRateLimit(requestOf(key))).overallCode;
      const before = [await ask(), await ask(), await ask(), await ask()];
      assertEquals(before, ["OK", "OK", "OVER_LIMIT", "OVER_LIMIT"]);
      clock.aheadMs -= backMs;
      const after = [];
      for (const [ms] of codes) {
        clock.advance(ms);
        after.push([ms, await ask()]);
      }
      assertEquals(after, codes.map((code) => [...code]));
    });
  }
}

const SHORT_WAYS: Readonly<
  Record<string, (clock: FakeClock) => MemoryCache | ReturnType<typeof laterCache>>
> = {
  "memory": createCache,
  "later": (clock) => laterCache(clock, 1_000),
};

for (const [kind, createCache] of Object.entries(SHORT_WAYS)) {
  Deno.test(`a clock that is set back: the short way decides as the general one, cache ${kind}`, async () => {
    await using pair = new KnownRequestsPair({ files: FILES, at: AT, createCache, localCacheBytes: 100_000 });
    const requests = ["second", "minute", "sliding", "bucket", "flight", "day"].map((key) =>
      encodeRateLimitRequest(requestOf(key))
    );
    for (const backMs of [0, 300, 1_000, 1_001, 59_000, HOUR_MS, 26 * HOUR_MS, 500]) {
      pair.setBack(backMs);
      for (const advanceMs of [0, 200, 1_000, 3_000, 31_000, 61_000]) {
        pair.advance(advanceMs);
        for (let time = 0; time < 4; time++) for (const request of requests) await pair.ask(request);
      }
    }
    await pair.check([]);
    assertEquals(pair.recognized > 0, true);
  });
}
