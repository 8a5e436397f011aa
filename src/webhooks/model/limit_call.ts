import { byteLength } from "../../base/exact_json.ts";

/** Of the keys and values of one descriptor. */
const MAX_DESCRIPTOR_BYTES = 8_192;

/** What the decision service says. */
export interface LimitDecision {
  readonly code: "OK" | "OVER_LIMIT";
  /** Until the window ends; absent where nothing limits. */
  readonly resetMs?: number | undefined;
}

/** Asks the decision service; throws when it cannot decide. */
export type LimitCall = (
  domain: string,
  descriptors: readonly Readonly<Record<string, string>>[],
) => Promise<LimitDecision>;

/** Why the decision service does not take a descriptor; nothing when it does. */
export function descriptorProblem(descriptor: Readonly<Record<string, string>>): string | undefined {
  if (byteLength(Object.entries(descriptor).flat().join("")) <= MAX_DESCRIPTOR_BYTES) return undefined;
  return `its values come to more than ${MAX_DESCRIPTOR_BYTES} bytes`;
}
