import type { RateLimitRequest } from "../../src/ratelimit/request.ts";
import { compileRules } from "../../src/ratelimit/rules/compile_rules.ts";
import type { Rules } from "../../src/ratelimit/rules/rules.ts";
import type { DescriptorSource } from "../../src/ratelimit/rule_source.ts";
import { problemText } from "../../src/base/problem.ts";

/** Requests that are decided in turn. */
const REQUESTS = 10;
const PLACE = "bench:1:1";

/** Few rules against many, asked in the same way. */
export interface DecisionCase {
  readonly name: string;
  readonly fewRules: number;
  readonly manyRules: number;
  /** Largest time with many rules as a multiple of that with few. */
  readonly bound: number;
  /** The value of a rule, by its number. */
  readonly value: (index: number) => string;
  /** The value of a request, by the number of the rule it is to match; beyond the rules it matches none. */
  readonly asked: (index: number) => string;
  /** Which rules the requests match: some all over, the last one, or none. */
  readonly matching: "spread" | "last" | "none";
}

const PATTERNS = [
  {
    name: "* at the end",
    value: (index: number) => `/op-${index}/*`,
    asked: (index: number) => `/op-${index}/x`,
  },
  {
    name: "* inside, different prefixes",
    value: (index: number) => `/op-${index}/*/list`,
    asked: (index: number) => `/op-${index}/x/list`,
  },
  {
    name: "* inside, different suffixes",
    value: (index: number) => `/v1/*/op-${index}`,
    asked: (index: number) => `/v1/x/op-${index}`,
  },
] as const;

/** Everything that is compared. */
export const DECISION_CASES: readonly DecisionCase[] = [
  {
    name: "rules",
    fewRules: 10,
    manyRules: 100_000,
    bound: 1.15,
    value: (index) => `v${index}`,
    asked: (index) => `v${index}`,
    matching: "spread",
  },
  ...PATTERNS.flatMap(({ name, value, asked }) =>
    (["last", "none"] as const).map((matching): DecisionCase => ({
      name: `wildcards, ${name}, matching ${matching === "last" ? "the last one" : "none"}`,
      fewRules: 10,
      manyRules: 1_000,
      bound: 1.5,
      value,
      asked,
      matching,
    }))
  ),
];

/** So many rules of one level with the values of the case. */
export function rulesOfCase(decisionCase: DecisionCase, count: number): Rules {
  const descriptors = Array.from({ length: count }, (_, index) => descriptorOf(decisionCase.value(index)));
  const source = { at: PLACE, domain: "bench", descriptors };
  const { rules, problems } = compileRules([source]);
  if (rules === undefined) throw new Error(problems.map(problemText).join("\n"));
  return rules;
}

/** The requests that are decided in turn with so many rules. */
export function requestsOfCase({ asked, matching }: DecisionCase, count: number): RateLimitRequest[] {
  return Array.from({ length: REQUESTS }, (_, index) => {
    const spread = Math.floor(index * count / REQUESTS);
    const rule = { spread, last: count - 1, none: count + index }[matching];
    return {
      domain: "bench",
      descriptors: [{ entries: [{ key: "key", value: asked(rule) }] }],
      hitsAddend: 0,
    };
  });
}

function descriptorOf(value: string): DescriptorSource {
  return {
    at: PLACE,
    path: "descriptors",
    key: "key",
    value,
    rateLimit: {
      at: PLACE,
      path: "rate_limit",
      unlimited: false,
      unit: "DAY",
      requestsPerUnit: 1_000,
      unitMultiplier: 1,
      name: "",
      replaces: [],
    },
    shadowMode: false,
    quotaMode: false,
    onCacheFailure: undefined,
    detailedMetric: false,
    valueToMetric: false,
    shareThreshold: false,
    identifies: false,
    metadata: undefined,
    descriptors: [],
  };
}
