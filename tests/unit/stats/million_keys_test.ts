import { assertEquals } from "#assert";
import type { CounterCache } from "../../../src/ratelimit/decision/counter_cache.ts";
import { RateLimitService } from "../../../src/ratelimit/decision/service.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { StatsStore } from "../../../src/stats/store.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { heapMegabytes } from "../../harness/garbage.ts";
import { bySize } from "../../soak/soak_options.ts";
import { PLAIN_POLICY, rulesOf } from "../../harness/service_fixture.ts";

const VALUES = bySize({ short: 100_000, full: 1_000_000 });
const MAX_KEYS = VALUES / 10;
/** Beyond the bound of keys, so that the table is full. */
const FULL_AT = 2 * MAX_KEYS;
const MB = 1_000_000;
/** The allowed size of a full table; measured 200 bytes a key. */
const MOST_FULL_MB = 400 * MAX_KEYS / MB;
/** The allowed growth after that; measured less than 1 MB with 100,000 keys. */
const MOST_AFTER_MB = MOST_FULL_MB / 8;

const RULES = `
domain: d
descriptors:
  - key: user
    value_to_metric: true
    rate_limit: {unit: minute, requests_per_unit: 10}
  - key: fixed
    rate_limit: {unit: minute, requests_per_unit: 10}
`;

/** A cache without memory, so that whatever grows is not in it. */
const FIRST_HITS: CounterCache = {
  isConditional: false,
  isImmediate: true,
  counterOf: () => ({ take: (hits, _caller, receiver) => receiver.counted(hits) }),
  remove: () => Promise.resolve(),
  close: () => Promise.resolve(),
};

Deno.test("statistics: ten times as many different values as keys leave memory as it is when the table is full, and sums right", () => {
  const clock = new FakeClock();
  assertEquals(readSettings({ BACKEND_TYPE: "memory" }).settings.STATS_MAX_KEYS, 100_000);
  const stats = new StatsStore(MAX_KEYS);
  const service = new RateLimitService({
    cache: FIRST_HITS,
    fallback: undefined,
    localCache: undefined,
    stats,
    policy: PLAIN_POLICY,
    clock,
    random: () => 0.5,
  });
  service.setRules(rulesOf({ "rules.yaml": RULES }));
  const ask = (key: string, value: string) =>
    void service.shouldRateLimit({
      domain: "d",
      descriptors: [{ entries: [{ key, value }] }],
      hitsAddend: 0,
    });
  const before = heapMegabytes();
  for (let value = 0; value < FULL_AT; value++) ask("user", `user number ${value}`);
  const full = heapMegabytes();
  for (let value = FULL_AT; value < VALUES; value++) ask("user", `user number ${value}`);
  const after = heapMegabytes();
  const grew = [full - before < MOST_FULL_MB, after - full < MOST_AFTER_MB];
  assertEquals(grew, [true, true], `${before} MB, then ${full} MB, then ${after} MB`);
  for (let call = 0; call < 20; call++) ask("fixed", String(call));
  ask("user", "user number 7");
  ask("user", `user number ${VALUES - 1}`);

  const counters = new Map(stats.counters());
  const prefix = "ratelimit.service.rate_limit.";
  const hits = [...counters].filter(([name]) =>
    /^ratelimit\.service\.rate_limit\.d\.user_.*\.total_hits$/.test(name)
  );
  assertEquals([hits.length, hits.reduce((sum, [, count]) => sum + count, 0)], [MAX_KEYS, MAX_KEYS + 1]);
  const others = VALUES - MAX_KEYS + 1;
  const shown = [
    `${prefix}d.fixed.total_hits`,
    `${prefix}d.user_user number 7.total_hits`,
    `${prefix}d.other.total_hits`,
    `${prefix}d.other.within_limit`,
    "ratelimit.service.rate_limit_keys_overflowed",
  ];
  assertEquals(shown.map((name) => counters.get(name)), [20, 2, others, others, others]);
});
