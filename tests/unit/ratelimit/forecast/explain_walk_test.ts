import { assertEquals } from "#assert";
import { walkRules } from "../../../../src/ratelimit/forecast/explain_walk.ts";
import { rulesOf } from "../../../harness/service_fixture.ts";

Deno.test("explain: lists, patterns and expressions in the order of precedence", () => {
  const limit = "rate_limit: { unit: day, requests_per_unit: 1 }";
  const rules = rulesOf({
    "shop.yaml": `domain: shop
descriptors:
- { key: v, value: { regex: "^b" }, ${limit} }
- { key: v, value: { regex: "a" }, ${limit} }
- { key: v, value: { in: [ab, b] }, ${limit} }
- { key: v, value: "ba*", ${limit} }
`,
  });
  const rows = ["ab", "bab", "bca", "c", "a".repeat(1_025)].map((value) => {
    const { levels } = walkRules(rules.domains.get("shop") ?? new Map(), [{ key: "v", value }]);
    return levels[0]?.rules.map(({ rule, by, why }) => `${rule} ${by}: ${why}`);
  });
  const missed = {
    list: "v_in(ab,b) in: its list does not have this value",
    a: "v_regex(a) regex: its expression does not match",
    b: "v_regex(^b) regex: its expression does not match",
    pattern: "v_ba* pattern: its pattern does not match",
  };
  assertEquals(rows, [
    [
      "v_in(ab,b) in: its list has this value",
      "v_regex(a) regex: its expression matches, but an exact value takes precedence",
      missed.b,
      missed.pattern,
    ],
    [
      "v_ba* pattern: first matching pattern",
      "v_regex(^b) regex: its expression matches, but a pattern takes precedence",
      "v_regex(a) regex: its expression matches, but a pattern takes precedence",
      missed.list,
    ],
    [
      "v_regex(^b) regex: first matching expression",
      "v_regex(a) regex: its expression matches, but an earlier expression takes precedence",
      missed.list,
      missed.pattern,
    ],
    [missed.b, missed.a, missed.list, missed.pattern],
    [
      "v_regex(^b) regex: the value is too long: none of more than 1,024 bytes matches an expression",
      "v_regex(a) regex: the value is too long: none of more than 1,024 bytes matches an expression",
      missed.list,
      missed.pattern,
    ],
  ]);
});

Deno.test("explain: a rule that takes the limit of its parent", () => {
  const limit = "rate_limit: { unit: day, requests_per_unit: 1 }";
  const rules = rulesOf({
    "shop.yaml": `domain: shop
descriptors:
- key: tenant
  ${limit}
  descriptors: [{ key: path, value: /a, ${limit} }, { key: path, fallback: parent }]
`,
  });
  const why = ["/b", "/a"].map((value) => {
    const entries = [{ key: "tenant", value: "t" }, { key: "path", value }];
    const { levels } = walkRules(rules.domains.get("shop") ?? new Map(), entries);
    return levels[1]?.rules.map(({ rule, why }) => `${rule}: ${why}`);
  });
  const parents = "it takes the limit of its parent";
  assertEquals(why, [
    [`path: it matches any value, and no rule with a value matches; ${parents}`, "path_/a: another value"],
    [
      "path_/a: exact value",
      `path: it matches any value, but a rule with a matching value takes precedence; ${parents}`,
    ],
  ]);
});
