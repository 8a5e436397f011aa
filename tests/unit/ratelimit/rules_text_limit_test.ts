import { assertEquals } from "@std/assert";
import { limitText } from "../../../src/ratelimit/rules_text.ts";
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
`,
});

Deno.test("limits in a few words", () => {
  assertEquals(RULES.limits.map(limitText), [
    "5 per MINUTE",
    "0 per 3 DAYS",
    "unlimited",
    "4294967295 per WEEK",
  ]);
});
