import type { Unit } from "./limit.ts";
import type { JsonObject } from "./rule_source.ts";

/** What a decision says. */
export type Code = "OK" | "OVER_LIMIT";

/** The limit that a status speaks of. */
export interface CurrentLimit {
  /** Name of the rule; empty when it has none. */
  readonly name: string;
  readonly requestsPerUnit: number;
  readonly unit: Unit;
}

/** The answer to one descriptor. */
export interface DescriptorStatus {
  readonly code: Code;
  /** Absent when nothing limits the descriptor. */
  readonly currentLimit?: CurrentLimit;
  /** 4,294,967,295 for unlimited descriptors, 0 when nothing matched. */
  readonly limitRemaining: number;
  /** Whole seconds to the end of the window, at least 1; present exactly with `currentLimit`. */
  readonly secondsUntilReset?: number;
}

/** A header that the proxy is asked to add to its response. */
export interface Header {
  readonly key: string;
  readonly value: string;
}

/** The answer to a whole request: one status a descriptor, in the order of the request. */
export interface Decision {
  readonly overallCode: Code;
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeadersToAdd: readonly Header[];
  readonly dynamicMetadata: JsonObject | undefined;
}
