import type { Algorithm } from "../rule_source.ts";
import type { Unit } from "../units.ts";
import type { RateLimit } from "../rules/rules.ts";
import { windowLength } from "./window.ts";

/** The amount that a limit allows, as JSON. */
export interface LimitAmount {
  readonly requestsPerUnit?: number;
  readonly unit?: Unit;
  /** Of the current window, where they differ. */
  readonly windowSeconds?: number;
  /** The time zone of the calendar that windows follow; absent for other windows. */
  readonly timezone?: string;
  /** Absent for fixed windows. */
  readonly algorithm?: Algorithm;
  /** Of a token bucket. */
  readonly burst?: number;
  /** Of `concurrency`, in place of the requests per unit. */
  readonly maxInFlight?: number;
  readonly leaseSeconds?: number;
  /** The key whose value names each hit in flight, if one does. */
  readonly identifiedBy?: string;
}

/** The amount of a limit that is not unlimited, at this time. */
export function amountOf(limit: RateLimit, nowSeconds: number): LimitAmount {
  const { requestsPerUnit, unit, calendar, conditional, rule } = limit;
  const windowSeconds = windowLength(limit, nowSeconds);
  const algorithm = conditional === undefined ? {} : { algorithm: conditional.algorithm };
  if (unit === undefined) {
    const level = rule?.path.at(-1);
    const identified = level?.identifies === true ? { identifiedBy: level.key } : {};
    return { ...algorithm, maxInFlight: requestsPerUnit, leaseSeconds: windowSeconds, ...identified };
  }
  const burst = conditional?.algorithm === "token_bucket" ? { burst: conditional.capacity } : {};
  const zone = calendar === undefined ? {} : { timezone: calendar.timezone };
  return { requestsPerUnit, unit, windowSeconds, ...zone, ...algorithm, ...burst };
}
