import { MemoryCache } from "../../src/cache/memory_cache.ts";
import { planHits } from "../../src/ratelimit/decision/plan.ts";
import type { RateLimitRequest } from "../../src/ratelimit/request.ts";
import type { Rules } from "../../src/ratelimit/rules/rules.ts";
import { RateLimitService } from "../../src/ratelimit/decision/service.ts";
import { StatsStore } from "../../src/stats/store.ts";
import { PLAIN_POLICY, type Policy } from "../../src/ratelimit/decision/policy.ts";
import { DECISION_CASES, type DecisionCase, requestsOfCase, rulesOfCase } from "./decision_cases.ts";
import { printResult } from "./measuring_script.ts";
import { median } from "../../tests/harness/percentile.ts";

/** The policy of the default settings. */
const DEFAULT_POLICY: Policy = { ...PLAIN_POLICY, expirationJitterMaxSeconds: 300 };
/** Decisions of one measurement; with its like it makes a pair that a slow moment of the machine hits as one. */
const DECISIONS = 2_000;
/** Measurements before those that count, so that everything is compiled. */
const WARM_UP = 10;
/** Time stands still, so that no window ends in between. */
const NOW_MS = 1_700_000_000_000;
const CLOCK = { now: () => NOW_MS, elapsed: () => NOW_MS, after: () => () => {} };
const CONTEXT = { nowSeconds: NOW_MS / 1_000, random: () => 0.5, policy: DEFAULT_POLICY };

/** Nanoseconds with few rules and with many, and the median of the ratios of each pair of measurements. */
interface Comparison {
  readonly fewNs: number;
  readonly manyNs: number;
  readonly ratio: number;
}

/** Times of a decision with few rules and with many. */
export interface DecisionTime {
  readonly name: string;
  readonly fewRules: number;
  readonly manyRules: number;
  readonly bound: number;
  /** The part that looks at rules: from a request to the hits to count. */
  readonly plan: Comparison;
  /** The whole decision of the core over the embedded cache. */
  readonly decision: Comparison;
}

/** Answers whether a request found a limit. */
type Ask = (request: RateLimitRequest) => boolean;

/** Asks with few rules and with many, in turn, so many times; everything else is the same. */
export function decisionTime(decisionCase: DecisionCase, repetitions: number): DecisionTime {
  const { name, fewRules, manyRules, bound } = decisionCase;
  const few = {
    rules: rulesOfCase(decisionCase, fewRules),
    requests: requestsOfCase(decisionCase, fewRules),
  };
  const many = {
    rules: rulesOfCase(decisionCase, manyRules),
    requests: requestsOfCase(decisionCase, manyRules),
  };
  const expected = decisionCase.matching === "none" ? 0 : DECISIONS;
  const compareBy = (askOf: (rules: Rules) => Ask) =>
    compare(
      { ask: askOf(few.rules), requests: few.requests },
      { ask: askOf(many.rules), requests: many.requests },
      { repetitions, expected },
    );
  return { name, fewRules, manyRules, bound, plan: compareBy(planOf), decision: compareBy(decisionOf) };
}

interface Side {
  readonly ask: Ask;
  readonly requests: readonly RateLimitRequest[];
}

function compare(few: Side, many: Side, { repetitions, expected }: {
  readonly repetitions: number;
  readonly expected: number;
}): Comparison {
  const pairs: { few: number; many: number }[] = [];
  for (let number = -WARM_UP; number < repetitions; number++) {
    const pair = { few: timeOf(few, expected), many: timeOf(many, expected) };
    if (number >= 0) pairs.push(pair);
  }
  return {
    fewNs: median(pairs.map((pair) => pair.few)),
    manyNs: median(pairs.map((pair) => pair.many)),
    ratio: median(pairs.map((pair) => pair.many / pair.few)),
  };
}

function planOf(rules: Rules): Ask {
  return (request) => planHits(rules, request, CONTEXT).descriptors[0]?.limit !== undefined;
}

function decisionOf(rules: Rules): Ask {
  const service = new RateLimitService({
    cache: new MemoryCache({ maxKeys: 1_000, clock: CLOCK }),
    stats: new StatsStore(1_000),
    policy: DEFAULT_POLICY,
    clock: CLOCK,
    random: CONTEXT.random,
  });
  service.setRules(rules);
  return (request) => {
    const decision = service.shouldRateLimit(request);
    return !(decision instanceof Promise) && decision.statuses[0]?.currentLimit !== undefined;
  };
}

/** Nanoseconds a request; throws unless so many of them found a limit. */
function timeOf({ ask, requests }: Side, expected: number): number {
  let found = 0;
  const begin = performance.now();
  for (let round = 0; round < DECISIONS / requests.length; round++) {
    for (const request of requests) if (ask(request)) found++;
  }
  const nanoseconds = (performance.now() - begin) * 1e6 / DECISIONS;
  if (found === expected) return nanoseconds;
  throw new Error(`Cannot trust times of decisions: ${found} of ${DECISIONS} found a limit, not ${expected}`);
}

if (import.meta.main) {
  await printResult(({ repetitions }: { readonly repetitions: number }) =>
    DECISION_CASES.map((decisionCase) => decisionTime(decisionCase, repetitions))
  );
}
