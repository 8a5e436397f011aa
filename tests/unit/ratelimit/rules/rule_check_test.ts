import { assertEquals } from "#assert";
import { checkSources } from "../../../../src/ratelimit/rules/rule_check.ts";
import { readRuleFile } from "../../../../src/config/rule_file.ts";
import type { DescriptorSource } from "../../../../src/ratelimit/rule_source.ts";

Deno.test("rules whose full names do not fit into memory together are an error with its place", () => {
  const domain = "d".repeat(1_000_000);
  const descriptors = Array.from({ length: 100 }, (_, index) => ruleOf(`k${index}`, `descriptors[${index}]`));
  const problems = checkSources([{ at: "shop", domain, descriptors }], {});
  assertEquals(problems, [{
    severity: "error",
    at: "shop",
    path: "descriptors[67]",
    text: "the full names of the rules up to here have more than 67108864 characters; " +
      "use a shorter domain, shorter keys or fewer rules",
  }]);
  assertEquals(
    checkSources([{ at: "shop", domain, descriptors: descriptors.slice(0, 67) }], {}),
    [],
  );
});

const FLIGHT = "rate_limit: {algorithm: concurrency, max_in_flight: 2, lease: 60s}";
const REQUIRES_LIMIT = "requires a rate_limit with 'algorithm: concurrency'";

const IDENTIFIES: readonly (readonly [fields: string, text: string | undefined])[] = [
  [FLIGHT, undefined],
  [`detailed_metric: true, ${FLIGHT}`, undefined],
  ["", `${REQUIRES_LIMIT}; add one, or remove identifies`],
  ["rate_limit: {unit: day, requests_per_unit: 1}", `${REQUIRES_LIMIT}; set it, or remove identifies`],
  ["rate_limit: {unlimited: true}", `${REQUIRES_LIMIT}; set it, or remove identifies`],
  [
    "descriptors: [{key: a}]",
    "requires the last level of a rule; move it to the nested descriptor, or remove one of them",
  ],
  [
    `descriptors: [{key: a}], ${FLIGHT}`,
    "requires the last level of a rule; move it to the nested descriptor, or remove one of them",
  ],
  [
    `value: one, ${FLIGHT}`,
    "requires a level without a value, but found 'one'; remove value, or identifies",
  ],
  [
    `value_to_metric: true, ${FLIGHT}`,
    "has no meaning with value_to_metric, as each request would have its own metric; remove one of them",
  ],
];

for (const [fields, text] of IDENTIFIES) {
  Deno.test(`identifies with {${fields}} is ${text === undefined ? "valid" : "an error with its place"}`, () => {
    const rule = `domain: d\ndescriptors:\n- {key: k, identifies: true, ${fields}}\n`;
    const { source, problems } = readRuleFile("r.yaml", rule);
    const expected = text === undefined
      ? []
      : [{ severity: "error", at: "r.yaml:3:3", path: "descriptors[0].identifies", text }];
    assertEquals([problems, source === undefined ? [] : checkSources([source], {})], [[], expected]);
  });
}

Deno.test("identifies with share_threshold is an error", () => {
  const rule =
    `domain: d\ndescriptors:\n- {key: k, value: a*, share_threshold: true, identifies: true, ${FLIGHT}}\n`;
  const { source } = readRuleFile("r.yaml", rule);
  const problems = source === undefined ? [] : checkSources([source], {});
  assertEquals(problems.map(({ text }) => text), [
    "requires a level without a value, but found 'a*'; remove value, or identifies",
    "has no meaning with share_threshold; remove one of them",
  ]);
});

Deno.test("expressions that take much memory together are an error with its place, once", () => {
  const descriptors = Array.from({ length: 1_010 }, (_, index) => ({
    ...ruleOf(`k${index}`, `descriptors[${index}]`),
    match: { regex: "a{990}" },
  }));
  assertEquals(checkSources([{ at: "shop", domain: "d", descriptors }], {}), [{
    severity: "error",
    at: "shop",
    path: "descriptors[1009].value.regex",
    text: "the expressions of all rules have more than 1000000 steps; use fewer of them, or a list",
  }]);
});

function ruleOf(key: string, path: string): DescriptorSource {
  return {
    at: "shop",
    path,
    key,
    value: "",
    rateLimit: undefined,
    metadata: undefined,
    descriptors: [],
    shadowMode: false,
    quotaMode: false,
    detailedMetric: false,
    valueToMetric: false,
    shareThreshold: false,
    identifies: false,
    onCacheFailure: undefined,
  };
}
