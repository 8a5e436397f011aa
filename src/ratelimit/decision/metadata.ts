import { shownText } from "../../base/byte_text.ts";
import type { DescriptorStatus } from "../decision.ts";
import type { Plan } from "./plan.ts";
import type { Descriptor, LimitOverride } from "../request.ts";
import type { JsonObject, JsonValue } from "../rule_source.ts";

/** The request and the metadata of the rules that allowed it, for later filters of the proxy. */
export function dynamicMetadata(plan: Plan, statuses: readonly DescriptorStatus[]): JsonObject {
  const { request } = plan;
  const merged = mergedMetadata(plan, statuses);
  return {
    domain: shownText(request.domain),
    descriptors: request.descriptors.map(describe),
    ...(request.hitsAddend === 0 ? {} : { hitsAddend: request.hitsAddend }),
    ...(merged === undefined ? {} : { metadata: merged }),
  };
}

function describe(descriptor: Descriptor): JsonObject {
  const { entries, limit, hitsAddend } = descriptor;
  return {
    entries: entries.map(({ key, value }) => shownText(`${key}=${value}`)),
    ...(limit === undefined ? {} : { limit: overrideText(limit) }),
    ...(hitsAddend === undefined ? {} : { hitsAddend }),
  };
}

/** The text format of the message, without zero values. */
function overrideText({ requestsPerUnit, unit, unitMultiplier }: LimitOverride): string {
  const parts = [];
  if (requestsPerUnit !== 0) parts.push(`requests_per_unit:${requestsPerUnit}`);
  if (unit !== undefined) parts.push(`unit:${unit}`);
  if (unitMultiplier !== undefined) parts.push(`unit_multiplier:${unitMultiplier}`);
  return parts.join(" ");
}

/** Merges the metadata of all counted rules that allowed their descriptor; the first value of a key wins. */
function mergedMetadata(plan: Plan, statuses: readonly DescriptorStatus[]): JsonObject | undefined {
  let merged: JsonObject | undefined;
  for (const [index, { limit, hit }] of plan.descriptors.entries()) {
    if (hit === undefined || limit?.metadata === undefined || statuses[index]?.code !== "OK") continue;
    merged = merged === undefined ? limit.metadata : merge(merged, limit.metadata);
  }
  return merged;
}

/** `Object.fromEntries` keeps `__proto__` a plain key. */
function merge(first: JsonObject, second: JsonObject): JsonObject {
  const entries = new Map<string, JsonValue>(Object.entries(first));
  for (const [key, value] of Object.entries(second)) {
    const known = entries.get(key);
    if (known === undefined) entries.set(key, value);
    else if (isMapping(known) && isMapping(value)) entries.set(key, merge(known, value));
  }
  return Object.fromEntries(entries);
}

function isMapping(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
