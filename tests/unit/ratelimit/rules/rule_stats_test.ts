import { assertEquals } from "#assert";
import {
  nearLimitThreshold,
  NO_STATS,
  type RuleStats,
  ruleStats,
} from "../../../../src/ratelimit/rules/rule_stats.ts";

const STATE = { requestsPerUnit: 20, nearLimitRatio: 0.8, fromLocalCache: false, shadowMode: false };

/** limit, count before, hits, and the statistics that follow with a near-limit ratio of 0.8. */
const COUNTED: readonly [number, number, number, Partial<RuleStats>][] = [
  [15, 12, 1, { withinLimit: 1, nearLimit: 1 }],
  [20, 2, 3, { withinLimit: 3 }],
  [8, 5, 2, { withinLimit: 2, nearLimit: 1 }],
  [20, 16, 3, { withinLimit: 3, nearLimit: 3 }],
  [20, 19, 3, { overLimit: 2, nearLimit: 1 }],
  [20, 15, 7, { overLimit: 2, nearLimit: 4 }],
  [10, 27, 3, { overLimit: 3 }],
  [0, 0, 1, { overLimit: 1 }],
  [0, 0, 0, {}],
  [5, 5, 0, {}],
];

for (const [requestsPerUnit, before, hits, expected] of COUNTED) {
  Deno.test(`statistics: ${hits} hits on ${before} under a limit of ${requestsPerUnit}`, () => {
    const stats = ruleStats({ ...STATE, requestsPerUnit, hits, after: before + hits });
    assertEquals(stats, { ...NO_STATS, ...expected });
  });
}

Deno.test("statistics: a shadowed rule counts what it let pass", () => {
  const state = { ...STATE, hits: 7, shadowMode: true };
  const counted = { ...NO_STATS, overLimit: 2, nearLimit: 4, shadowMode: 2 };
  assertEquals(ruleStats({ ...state, after: 22 }), counted);
  assertEquals(ruleStats({ ...state, after: 29 }), { ...NO_STATS, overLimit: 7, shadowMode: 7 });
});

Deno.test("statistics: all hits are over when the local cache answered", () => {
  const state = { ...STATE, hits: 7, after: -1, fromLocalCache: true };
  const over = { ...NO_STATS, overLimit: 7, overLimitWithLocalCache: 7 };
  assertEquals(ruleStats(state), over);
  assertEquals(ruleStats({ ...state, shadowMode: true }), { ...over, shadowMode: 7 });
});

Deno.test("statistics: hits that were not added count in full", () => {
  const state = { ...STATE, requestsPerUnit: 10 };
  assertEquals(ruleStats({ ...state, after: 0, hits: 4 }), { ...NO_STATS, withinLimit: 4 });
  assertEquals(ruleStats({ ...state, after: 9, hits: 4 }), { ...NO_STATS, withinLimit: 4, nearLimit: 1 });
  assertEquals(ruleStats({ ...state, after: 9, hits: 10 }), { ...NO_STATS, withinLimit: 10, nearLimit: 10 });
  assertEquals(ruleStats({ ...state, after: 12, hits: 13 }), { ...NO_STATS, overLimit: 13 });
});

Deno.test("statistics: no counter goes down where the threshold is rounded to more than the limit", () => {
  const state = { ...STATE, requestsPerUnit: 16_777_219, nearLimitRatio: 1 };
  assertEquals(ruleStats({ ...state, hits: 5, after: 16_777_223 }), { ...NO_STATS, overLimit: 4 });
});

/** limit, ratio, threshold: 32-bit arithmetic where it differs from 64-bit. */
const THRESHOLDS: readonly [number, number, number][] = [
  [15, 0.8, 12],
  [1, 0.8, 0],
  [100, 0.29, 29],
  [4_294_967_295, 0.8, 3_435_973_888],
  [16_777_217, 1, 16_777_216],
  [10, 0, 0],
];

for (const [limit, ratio, threshold] of THRESHOLDS) {
  Deno.test(`near-limit threshold of ${limit} at ${ratio}`, () => {
    assertEquals(nearLimitThreshold(limit, ratio), threshold);
  });
}
