import { byteLength } from "../../base/exact_json.ts";

/** Of the keys and values of one descriptor. */
const MAX_DESCRIPTOR_BYTES = 8_192;

/** A decision of the decision service. */
export interface LimitDecision {
  readonly code: "OK" | "OVER_LIMIT";
  /** Until the window ends; absent where no limit applies. */
  readonly resetMs?: number | undefined;
}

/** Asks the decision service; throws when it cannot decide. */
export type LimitCall = (
  domain: string,
  descriptors: readonly Readonly<Record<string, string>>[],
) => Promise<LimitDecision>;

/** Why a descriptor is too large for a limit of a trigger or a workflow; nothing when it is not. */
export function descriptorProblem(descriptor: Readonly<Record<string, string>>): string | undefined {
  if (byteLength(Object.entries(descriptor).flat().join("")) <= MAX_DESCRIPTOR_BYTES) return undefined;
  return `its values have more than ${MAX_DESCRIPTOR_BYTES} bytes`;
}
