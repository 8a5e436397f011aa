import { assertEquals } from "@std/assert";
import { limitText, rulesText } from "../../../src/ratelimit/rules_text.ts";
import { rulesOf } from "../../harness/service_fixture.ts";

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
`,
});

Deno.test("limits in a few words", () => {
  assertEquals(RULES.limits.map(limitText), [
    "5 per MINUTE",
    "0 per 3 DAYS",
    "unlimited",
    "4294967295 per WEEK",
    "5 per HOUR, sliding window",
    "5 per 2 SECONDS, token bucket of 9",
    "5 in flight",
  ]);
});

Deno.test("the lines of other algorithms end with their fields", () => {
  assertEquals(rulesText(RULES).trimEnd().split("\n").slice(-3), [
    "d.e: unit=HOUR requests_per_unit=5, shadow_mode: false, quota_mode: false, algorithm: sliding_window",
    "d.f: unit=SECOND requests_per_unit=5, shadow_mode: false, quota_mode: false, unit_multiplier: 2, " +
    "algorithm: token_bucket, burst: 9",
    "d.g: unit=UNKNOWN requests_per_unit=5, shadow_mode: true, quota_mode: false, algorithm: concurrency, " +
    "lease: 60s",
  ]);
});
