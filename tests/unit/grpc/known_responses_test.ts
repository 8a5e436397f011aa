import { assertEquals } from "#assert";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import type { Policy } from "../../../src/ratelimit/decision/policy.ts";
import { encodeRateLimitRequest } from "../../../src/wire/rls.ts";
import type { FakeClock } from "../../harness/fake_clock.ts";
import { KnownRequestsPair } from "../../harness/known_requests_pair.ts";

const createCache = (clock: FakeClock) => new MemoryCache({ maxKeys: 100, clock });

const FORMS: Readonly<Record<string, { policy: Partial<Policy>; rule: string; isRecognized: boolean }>> = {
  "windows of a calendar, whose lengths headers have": {
    policy: { standardHeaders: true },
    rule: "rate_limit: { unit: month, requests_per_unit: 100, calendar: true }",
    isRecognized: true,
  },
  "headers with numbers above 31 bits": {
    policy: { standardHeaders: true, responseHeaders: { limit: "l", remaining: "r", reset: "s" } },
    rule: "rate_limit: { unit: year, unit_multiplier: 9000, requests_per_unit: 4294967295 }",
    isRecognized: true,
  },
  "a long name in a header": {
    policy: { standardHeaders: true },
    rule: `rate_limit: { name: ${"n".repeat(90)}, unit: minute, requests_per_unit: 100 }`,
    isRecognized: false,
  },
  "metadata with several bytes of length": {
    policy: { dynamicMetadata: true },
    rule: `metadata: { text: ${"m".repeat(900)} }, rate_limit: { unit: minute, requests_per_unit: 9 }`,
    isRecognized: true,
  },
  "large metadata": {
    policy: { dynamicMetadata: true },
    rule: `metadata: { text: ${"m".repeat(1_000)} }, rate_limit: { unit: minute, requests_per_unit: 9 }`,
    isRecognized: false,
  },
};

for (const [what, { policy, rule, isRecognized }] of Object.entries(FORMS)) {
  Deno.test(`known requests: ${what}, decided as by reading`, async () => {
    const files = { "r.yaml": `{ domain: d, descriptors: [{ key: k, ${rule} }] }` };
    await using pair = new KnownRequestsPair({ files, policy, createCache });
    const request = requestOf("\u00e9\udcff");
    for (let time = 0; time < 60; time++) {
      await pair.ask(request);
      // The wall clock is set forward.
      if (time % 12 === 11) pair.setBack(-20 * 86_400_000);
    }
    assertEquals(pair.recognized > 0, isRecognized);
    await pair.check([]);
  });
}

for (const policy of [{}, { responseHeaders: { limit: "l", remaining: "r", reset: "s" } }]) {
  const what = "responseHeaders" in policy ? "response headers" : "the default policy";
  Deno.test(`known requests, ${what}: those seen once in each window are read, and those seen often are not`, async () => {
    const files = {
      "r.yaml":
        "{ domain: d, descriptors: [{ key: k, rate_limit: { unit: second, requests_per_unit: 9 } }] }",
    };
    await using pair = new KnownRequestsPair({ files, policy, createCache });
    const [once, often] = [requestOf("once"), requestOf("often")];
    for (let second = 0; second < 30; second++) {
      await pair.ask(once);
      for (let time = 0; time < 8; time++) await pair.ask(often);
      pair.advance(1_000);
    }
    // All but the first two of the first window, and the first one of each other.
    assertEquals(pair.recognized, 30 * 8 - 2 - 29);
    await pair.check([]);
  });
}

function requestOf(value: string): Uint8Array {
  return encodeRateLimitRequest({ domain: "d", descriptors: [{ entries: [{ key: "k", value }] }] });
}
