import { assertEquals } from "#assert";
import { type QuotaLimit, quotaLimit } from "../../../src/quota/quota_limit.ts";
import { rulesOf } from "../../harness/service_fixture.ts";

const FREE: QuotaLimit = { kind: "allow", shadowPerSecond: undefined };
const HALF: QuotaLimit = { kind: "rate", perSecond: 0.5, burst: 30, isPerSecond: false };

/** The rule, its limit, and that with all rules in shadow mode. */
const CASES: readonly (readonly [string, QuotaLimit, QuotaLimit])[] = [
  ["rate_limit: {unlimited: true}", FREE, FREE],
  ["rate_limit: {unit: minute, requests_per_unit: 30}", HALF, { kind: "allow", shadowPerSecond: 0.5 }],
  ["rate_limit: {unit: minute, requests_per_unit: 0}", { kind: "deny" }, {
    kind: "allow",
    shadowPerSecond: 0,
  }],
  ["rate_limit: {unit: minute, requests_per_unit: 30, algorithm: sliding_window}", HALF, {
    kind: "allow",
    shadowPerSecond: 0.5,
  }],
  [
    "rate_limit: {unit: second, unit_multiplier: 2, requests_per_unit: 10, algorithm: token_bucket, burst: 3}",
    { kind: "rate", perSecond: 5, burst: 3, isPerSecond: true },
    { kind: "allow", shadowPerSecond: 5 },
  ],
  // The longest day of the zone has 25 hours, and the longest month in UTC 31 days.
  [
    "rate_limit: {unit: day, requests_per_unit: 90000, calendar: true, timezone: Europe/Paris}",
    { kind: "rate", perSecond: 1, burst: 90_000, isPerSecond: false },
    { kind: "allow", shadowPerSecond: 1 },
  ],
  [
    "rate_limit: {unit: month, requests_per_unit: 2678400, calendar: true}",
    { kind: "rate", perSecond: 1, burst: 2_678_400, isPerSecond: false },
    { kind: "allow", shadowPerSecond: 1 },
  ],
  // The lowest rate is that of one window, and the lowest burst that of another.
  [
    "rate_limits: [{unit: second, requests_per_unit: 5}, {unit: minute, requests_per_unit: 30}]",
    { kind: "rate", perSecond: 0.5, burst: 5, isPerSecond: false },
    { kind: "allow", shadowPerSecond: 0.5 },
  ],
  ["rate_limits: [{unit: second, requests_per_unit: 5}, {unit: day, requests_per_unit: 0}]", {
    kind: "deny",
  }, { kind: "allow", shadowPerSecond: 0 }],
  ["rate_limit: {algorithm: concurrency, max_in_flight: 5, lease: 1m}", { kind: "impossible" }, FREE],
];

for (const [rule, expected, shadow] of CASES) {
  Deno.test(`quota limit: ${rule}`, () => {
    const rules = rulesOf({ "r.yaml": `domain: d\ndescriptors:\n- {key: k, ${rule}}\n` });
    const [limit] = rules.limits;
    assertEquals([quotaLimit(limit), quotaLimit(limit, true)], [expected, shadow]);
  });
}

Deno.test("quota limit: a rule in shadow mode, and no rule", () => {
  const rule = "- {key: k, shadow_mode: true, rate_limit: {unit: second, requests_per_unit: 5}}";
  const [limit] = rulesOf({ "r.yaml": `domain: d\ndescriptors:\n${rule}\n` }).limits;
  assertEquals([quotaLimit(limit), quotaLimit(undefined)], [{ kind: "allow", shadowPerSecond: 5 }, FREE]);
});
