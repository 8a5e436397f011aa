import { assertEquals } from "#assert";
import type { RulesLoad } from "../../../src/config/provider.ts";
import { readResources } from "../../../src/config/xds_resources.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import type { DomainSource } from "../../../src/ratelimit/rule_source.ts";
import { problemText } from "../../../src/base/problem.ts";
import { compileRules } from "../../../src/ratelimit/rules/compile_rules.ts";
import type { WireAny } from "../../../src/wire/discovery.ts";
import {
  RATE_LIMIT_CONFIG,
  type WirePolicy,
  type WireRateLimitConfig,
} from "../../../src/wire/rate_limit_config.ts";
import type { WireValue } from "../../../src/wire/struct.ts";
import { oneSourcePerDomain } from "../../../src/settings/rule_support.ts";
import { RULES_TYPE, shopConfig, wireRule } from "../../harness/xds_server.ts";

const MINUTE = 2;

function policy(parts: Partial<WirePolicy>): WirePolicy {
  return { unit: MINUTE, requestsPerUnit: 5, unlimited: false, name: "", replaces: [], ...parts };
}

function anyOf(config: WireRateLimitConfig): WireAny {
  return { typeUrl: RULES_TYPE, value: RATE_LIMIT_CONFIG.encode(config) };
}

function load(resources: readonly WireAny[]): RulesLoad {
  return readResources({ versionInfo: "v", resources, typeUrl: RULES_TYPE, nonce: "n" });
}

/** Every problem of a load and of the compiler after it. */
function problemsOf({ sources, problems }: RulesLoad): string[] {
  const compiled = compileRules(sources ?? [], { oneSourcePerDomain: oneSourcePerDomain(false) });
  return [...problems, ...compiled.problems].map((one) => `${one.severity}: ${problemText(one)}`);
}

/** Without where it stood, and without fields that only files have. */
function plain(source: DomainSource | undefined): unknown {
  return JSON.parse(JSON.stringify(source, (key, value) => key === "at" ? undefined : value));
}

Deno.test("xds sources: a resource says what a rule file says", () => {
  const file = readRuleFile(
    "a.yaml",
    `
domain: shop
descriptors:
- key: user
  value: bob
  shadow_mode: true
  quota_mode: true
  detailed_metric: true
  metadata: { tier: gold, list: [1, true, null, { a: b }] }
  rate_limit: { unit: minute, requests_per_unit: 5, name: bob, replaces: [{ name: all }, { name: some }] }
  descriptors:
  - key: path
    value: /a*
    rate_limit: { unlimited: true, requests_per_unit: 5 }
  - key: open
`,
  );
  const config: WireRateLimitConfig = {
    name: "first",
    domain: "shop",
    descriptors: [wireRule({
      key: "user",
      value: "bob",
      shadowMode: true,
      quotaMode: true,
      detailedMetric: true,
      metadata: { tier: "gold", list: [1, true, null, { a: "b" }] },
      rateLimit: policy({ name: "bob", replaces: [{ name: "all" }, { name: "some" }] }),
      descriptors: [
        wireRule({ key: "path", value: "/a*", rateLimit: policy({ unit: 0, unlimited: true }) }),
        wireRule({ key: "open" }),
      ],
    })],
  };
  const { sources, problems, version } = load([anyOf(config)]);
  assertEquals([file.problems, problems, version], [[], [], "v"]);
  assertEquals(plain(sources?.[0]), plain(file.source));
  assertEquals(sources?.[0]?.descriptors[0]?.at, 'resource "first"');
});

Deno.test("xds sources: every unit has its number", () => {
  const units = [1, 2, 3, 4, 5, 6, 7].map((unit) => {
    const config = {
      name: "a",
      domain: "a",
      descriptors: [wireRule({ key: "k", rateLimit: policy({ unit }) })],
    };
    return load([anyOf(config)]).sources?.[0]?.descriptors[0]?.rateLimit?.unit;
  });
  assertEquals(units, ["SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK"]);
});

Deno.test("xds sources: no resource is no rule, and nothing wrong", () => {
  assertEquals(load([]), { sources: [], problems: [], version: "v" });
});

function nested(depth: number): WireValue {
  return depth === 0 ? "end" : { a: nested(depth - 1) };
}

const UNITS = "expected one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR";

/** One bad thing each, and the problems of it in the resource `shop`. */
const BAD: Readonly<Record<string, readonly [resources: readonly WireAny[], ...problems: string[]]>> = {
  "no unit": [
    [ofPolicy({ unit: 0 })],
    `error: descriptors[0].rate_limit.unit: invalid rate limit unit 'UNKNOWN'; ${UNITS}`,
  ],
  "an unknown unit": [
    [ofPolicy({ unit: 8 })],
    `error: descriptors[0].rate_limit.unit: invalid rate limit unit '8'; ${UNITS}`,
  ],
  "a unit without limit": [
    [ofPolicy({ unlimited: true })],
    "error: descriptors[0].rate_limit.unit: should not specify rate limit unit when unlimited; remove unit, or unlimited",
  ],
  "an unknown unit without limit": [
    [ofPolicy({ unlimited: true, unit: 8 })],
    "warning: descriptors[0].rate_limit.unit: rate limit unit 8 has no effect with unlimited; remove it",
  ],
  "a nameless replacement": [
    [ofPolicy({ replaces: [{ name: "b" }, { name: "" }] })],
    "error: descriptors[0].rate_limit.replaces[1]: should not have an empty replaces entry",
  ],
  "a replacement of itself": [
    [ofPolicy({ name: "b", replaces: [{ name: "b" }] })],
    "error: descriptors[0].rate_limit.replaces[0]: replaces should not contain name of same descriptor 'b'",
  ],
  "an empty key": [
    [ofRules(wireRule({ key: "a", descriptors: [wireRule({})] }))],
    "error: descriptors[0].descriptors[0].key: descriptor has empty key",
  ],
  "a number that JSON has not": [
    [ofRules(wireRule({ key: "a", metadata: { n: [0, NaN] } }))],
    "error: descriptors[0].metadata.n[1]: expected a finite number, got NaN; send it as a text",
  ],
  "metadata that is too deep": [
    [ofRules(wireRule({ key: "a", metadata: { a: nested(24) } }))],
    `error: descriptors[0].metadata${
      ".a".repeat(24)
    }: expected at most 24 levels of metadata; use fewer levels`,
  ],
  "no domain": [
    [anyOf({ name: "shop", domain: "", descriptors: [] })],
    "error: domain: config file cannot have empty domain",
  ],
  "a resource twice": [
    [anyOf(shopConfig({ a: 1 })), anyOf(shopConfig({ a: 1 }))],
    "error: (2 of 2): domain: duplicate domain 'shop' in config file; it is already in resource \"shop\", and " +
    "MERGE_DOMAIN_CONFIG=true would allow that",
    "error: (2 of 2): descriptors[0]: duplicate descriptor composite key 'shop.a'; the first one is at resource \"shop\"",
  ],
  "a resource of another type": [
    [anyOf(shopConfig({})), { typeUrl: "a/b.Cluster", value: new Uint8Array() }],
    `error: resource 2 of 2: expected the type ${RULES_TYPE}, got "a/b.Cluster"`,
  ],
  "bytes that are no resource": [
    [{ typeUrl: RULES_TYPE, value: new Uint8Array([0x12, 9, 1]) }],
    'error: resource 1 of 1: Cannot read field 2 of "RateLimitConfig": length 9 goes beyond the 1 byte left',
  ],
  "more rules than there is room for": [
    [anyOf({ name: "shop", domain: "shop", descriptors: new Array(500_001).fill(wireRule({})) })],
    "error: expected at most 500000 rules in all resources; use fewer",
  ],
};

function ofRules(...descriptors: WireRateLimitConfig["descriptors"]): WireAny {
  return anyOf({ name: "shop", domain: "shop", descriptors });
}

function ofPolicy(parts: Partial<WirePolicy>): WireAny {
  return ofRules(wireRule({ key: "a", rateLimit: policy(parts) }));
}

for (const [name, [resources, ...problems]] of Object.entries(BAD)) {
  Deno.test(`xds sources: ${name} is named with its place`, () => {
    const seen = problemsOf(load(resources)).map((text) =>
      text.replace(/^(\w+: )resource "shop"(?:: | (?=\())/, "$1")
    );
    assertEquals(seen, problems);
  });
}

Deno.test("xds sources: what is wrong a thousand times and more is counted", () => {
  const rules = Array.from({ length: 1_003 }, (_, index) => {
    return wireRule({ key: `k${index}`, rateLimit: policy({ unit: 9 }) });
  });
  const { problems } = load([ofRules(...rules)]);
  const [last] = problems.slice(-1);
  assertEquals([problems.length, last?.severity, last?.text], [
    1_001,
    "error",
    "3 more problems are not shown; correct these first",
  ]);
});
