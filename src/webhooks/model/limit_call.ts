import { byteLength } from "../../base/exact_json.ts";
import { JsonText, writeJson } from "../../base/json_text.ts";

/** Of the keys and values of one descriptor. */
const MAX_DESCRIPTOR_BYTES = 8_192;

/** The keys and values of a descriptor. Rules match them in their order, which an object does not keep. */
export type LimitDescriptor = readonly (readonly [key: string, value: string])[];

/** The rate limit request of a trigger; values may have templates of `input`. */
interface TriggerLimit {
  readonly domain: string;
  readonly descriptors: readonly LimitDescriptor[];
}

/** Reads the JSON of a valid limit, whose descriptors are objects. */
export function readTriggerLimit(json: string): TriggerLimit {
  const limit = new JsonText(json);
  const descriptors = [...limit.get("descriptors")?.members.values() ?? []];
  return {
    domain: textOf(limit.get("domain")),
    descriptors: descriptors.map(({ members }) => [...members].map(([key, value]) => [key, textOf(value)])),
  };
}

/** The JSON of a limit: keys in their order, each once. */
export function triggerLimitJson({ domain, descriptors }: TriggerLimit): string {
  const objects = descriptors.map((entries) =>
    new JsonText(`{${entries.map((entry) => entry.map((text) => JSON.stringify(text)).join(":")).join(",")}}`)
  );
  return writeJson({ domain, descriptors: objects });
}

function textOf(value: JsonText | undefined): string {
  return String(JSON.parse(value?.text ?? '""'));
}

/** A decision of the decision service. */
export interface LimitDecision {
  readonly code: "OK" | "OVER_LIMIT";
  /** Until the window ends; absent where no limit applies. */
  readonly resetMs?: number | undefined;
}

/** Asks the decision service; throws when it cannot decide. */
export type LimitCall = (
  domain: string,
  descriptors: readonly LimitDescriptor[],
) => Promise<LimitDecision>;

/** Why a descriptor is too large for a limit of a trigger or a workflow; nothing when it is not. */
export function descriptorProblem(descriptor: LimitDescriptor): string | undefined {
  if (byteLength(descriptor.flat().join("")) <= MAX_DESCRIPTOR_BYTES) return undefined;
  return `its values have more than ${MAX_DESCRIPTOR_BYTES} bytes`;
}
