import type { AlgorithmSource } from "../rule_source.ts";
import type { ConditionalRule } from "./rules.ts";
import { bucketLimit } from "../algorithms/bucket.ts";
import { type ConditionalLimit, longestSeconds } from "../algorithms/conditional_limit.ts";
import { sliceLimit } from "../algorithms/slices.ts";

/** The amount that is limited, and its time. */
interface ConditionalAmount {
  readonly requestsPerUnit: number;
  readonly windowSeconds: number;
  /** The last entry names the hits. */
  readonly identifies: boolean;
}

/** Compiles an algorithm. Its cache keys change with the length of the window, which the state depends on. */
export function conditionalRule(source: AlgorithmSource, amount: ConditionalAmount): ConditionalRule {
  const { requestsPerUnit, windowSeconds } = amount;
  switch (source.name) {
    case "sliding_window": {
      const limit = sliceLimit(requestsPerUnit, windowSeconds * 1_000);
      return { ...ruleOf(source.name, limit, requestsPerUnit), keyEnd: `sliding${windowSeconds}` };
    }
    case "token_bucket": {
      const { burst } = source;
      const limit = bucketLimit({ burst, hitsPerUnit: requestsPerUnit, unitSeconds: windowSeconds });
      return { ...ruleOf(source.name, limit, burst), keyEnd: `bucket${windowSeconds}` };
    }
    case "concurrency": {
      // A counter of the other kind never has the same key, whatever the values are.
      if (amount.identifies) {
        const limit = { kind: "leases", limit: requestsPerUnit, leaseUs: windowSeconds * 1_000_000 } as const;
        return { ...ruleOf(source.name, limit, requestsPerUnit), keyEnd: `leases${windowSeconds}` };
      }
      const limit = sliceLimit(requestsPerUnit, windowSeconds * 1_000);
      return { ...ruleOf(source.name, limit, requestsPerUnit), keyEnd: `lease${windowSeconds}` };
    }
  }
}

function ruleOf(
  algorithm: ConditionalRule["algorithm"],
  limit: ConditionalLimit,
  capacity: number,
): Omit<ConditionalRule, "keyEnd"> {
  return { algorithm, limit, capacity, longestSeconds: longestSeconds(limit) };
}
