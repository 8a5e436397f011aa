import type { Algorithm } from "../rule_source.ts";
import type { Unit } from "../units.ts";
import type { RateLimit } from "./rules.ts";

/** The amount that a limit allows, as JSON. */
export interface LimitAmount {
  readonly requestsPerUnit?: number;
  readonly unit?: Unit;
  readonly windowSeconds?: number;
  /** Absent for fixed windows. */
  readonly algorithm?: Algorithm;
  /** Of a token bucket. */
  readonly burst?: number;
  /** Of `concurrency`, in place of the requests per unit. */
  readonly maxInFlight?: number;
  readonly leaseSeconds?: number;
}

/** The amount of a limit that is not unlimited. */
export function amountOf({ requestsPerUnit, unit, windowSeconds, conditional }: RateLimit): LimitAmount {
  const algorithm = conditional === undefined ? {} : { algorithm: conditional.algorithm };
  if (unit === undefined) return { ...algorithm, maxInFlight: requestsPerUnit, leaseSeconds: windowSeconds };
  const burst = conditional?.algorithm === "token_bucket" ? { burst: conditional.capacity } : {};
  return { requestsPerUnit, unit, windowSeconds, ...algorithm, ...burst };
}
