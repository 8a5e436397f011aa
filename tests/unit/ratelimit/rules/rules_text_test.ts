import { assertEquals } from "#assert";
import { limitText, rulesText } from "../../../../src/ratelimit/rules/rules_text.ts";
import { rulesOf } from "../../../harness/service_fixture.ts";

const OWN = `
domain: d
descriptors:
- {key: plain, rate_limit: {unit: minute, requests_per_unit: 5}}
- {key: allow, value: v, on_cache_failure: allow, rate_limit: {unit: day, requests_per_unit: 1}}
- key: both
  on_cache_failure: error
  shadow_mode: true
  rate_limit: {unit: hour, unit_multiplier: 2, requests_per_unit: 3}
- {key: free, rate_limit: {unlimited: true}}
- {key: white, on_cache_failure: deny}
`;

Deno.test("rules as text: what only our rules can say stands at the end of the line", () => {
  assertEquals(rulesText(rulesOf({ "r.yaml": OWN })).split("\n"), [
    "d.allow_v: unit=DAY requests_per_unit=1, shadow_mode: false, quota_mode: false, on_cache_failure: allow",
    "d.both: unit=HOUR requests_per_unit=3, shadow_mode: true, quota_mode: false, unit_multiplier: 2, " +
    "on_cache_failure: error",
    "d.free: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false",
    "d.plain: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false",
    "",
  ]);
});

Deno.test("rules as text: a version is before them, on one line", () => {
  const text = rulesText(rulesOf({ "r.yaml": "domain: d\ndescriptors: []\n" }), "v7\n\u2028x");
  assertEquals(text, "# version: v7??x\n");
});

Deno.test("rules as text: without rules there is none", () => assertEquals(rulesText(undefined), ""));

const RULES = rulesOf({
  "d.yaml": `domain: d
descriptors:
- key: a
  rate_limit: { unit: minute, requests_per_unit: 5 }
- key: b
  rate_limit: { unit: day, unit_multiplier: 3, requests_per_unit: 0 }
- key: c
  rate_limit: { unlimited: true }
- key: d
  rate_limit: { unit: week, requests_per_unit: 4294967295 }
- key: e
  rate_limit: { unit: hour, requests_per_unit: 5, algorithm: sliding_window }
- key: f
  rate_limit: { unit: second, unit_multiplier: 2, requests_per_unit: 5, algorithm: token_bucket, burst: 9 }
- key: g
  shadow_mode: true
  rate_limit: { algorithm: concurrency, max_in_flight: 5, lease: 1m }
- key: bill
  rate_limit: { unit: month, unit_multiplier: 3, requests_per_unit: 5, calendar: true, timezone: Europe/Paris }
`,
});

Deno.test("rules as text: limits in a few words", () => {
  assertEquals(RULES.limits.map(limitText), [
    "5 per MINUTE",
    "0 per 3 DAYS",
    "unlimited",
    "4294967295 per WEEK",
    "5 per HOUR, sliding window",
    "5 per 2 SECONDS, token bucket of 9",
    "5 in flight",
    "5 per 3 MONTHS, calendar of Europe/Paris",
  ]);
});

Deno.test("rules as text: the lines of other algorithms end with their fields", () => {
  assertEquals(rulesText(RULES).trimEnd().split("\n").slice(-3), [
    "d.e: unit=HOUR requests_per_unit=5, shadow_mode: false, quota_mode: false, algorithm: sliding_window",
    "d.f: unit=SECOND requests_per_unit=5, shadow_mode: false, quota_mode: false, unit_multiplier: 2, " +
    "algorithm: token_bucket, burst: 9",
    "d.g: unit=UNKNOWN requests_per_unit=5, shadow_mode: true, quota_mode: false, algorithm: concurrency, " +
    "lease: 60s",
  ]);
  assertEquals(
    rulesText(RULES).split("\n")[2],
    "d.bill: unit=MONTH requests_per_unit=5, shadow_mode: false, quota_mode: false, unit_multiplier: 3, " +
      "calendar: true, timezone: Europe/Paris",
  );
});
