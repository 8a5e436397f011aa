import { assertEquals } from "@std/assert";
import { rulesText } from "../../../src/ratelimit/rules_text.ts";
import { rulesOf } from "../../harness/service_fixture.ts";

const RULES = `
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
  assertEquals(rulesText(rulesOf({ "r.yaml": RULES })).split("\n"), [
    "d.allow_v: unit=DAY requests_per_unit=1, shadow_mode: false, quota_mode: false, on_cache_failure: allow",
    "d.both: unit=HOUR requests_per_unit=3, shadow_mode: true, quota_mode: false, unit_multiplier: 2, " +
    "on_cache_failure: error",
    "d.free: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false",
    "d.plain: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false",
    "",
  ]);
});

Deno.test("rules as text: a version stands before them, on one line", () => {
  const text = rulesText(rulesOf({ "r.yaml": "domain: d\ndescriptors: []\n" }), "v7\n\u2028x");
  assertEquals(text, "# version: v7??x\n");
});

Deno.test("rules as text: without rules there is none", () => assertEquals(rulesText(undefined), ""));
