import type { Unit } from "./units.ts";
import type { JsonObject } from "./rule_source.ts";

/** The code of a decision. */
export type Code = "OK" | "OVER_LIMIT";

/** The limit in a status. */
export interface CurrentLimit {
  readonly name: string;
  /** The maximum in flight of a `concurrency` limit. */
  readonly requestsPerUnit: number;
  /** Undefined for a `concurrency` limit. */
  readonly unit: Unit | undefined;
}

/** The decision of one descriptor. */
export interface DescriptorStatus {
  readonly code: Code;
  readonly currentLimit?: CurrentLimit;
  /** 4,294,967,295 for unlimited descriptors, 0 without a rule. */
  readonly limitRemaining: number;
  /**
   * At least 1; only with `currentLimit`. Until a window ends; of another algorithm, until one hit would pass if these
   * did not, or else until all is free again.
   */
  readonly secondsUntilReset?: number;
}

/** A header for the proxy to add to its response. */
export interface Header {
  readonly key: string;
  readonly value: string;
}

/** The decision of a request, with one status per descriptor. */
export interface Decision {
  readonly overallCode: Code;
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeadersToAdd: readonly Header[];
  readonly dynamicMetadata: JsonObject | undefined;
}
