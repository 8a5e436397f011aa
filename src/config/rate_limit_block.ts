import type { AlgorithmSource, RateLimitSource } from "../ratelimit/rule_source.ts";
import {
  type Algorithm,
  ALGORITHMS,
  MAX_REQUESTS_PER_UNIT,
  MAX_UNIT_MULTIPLIER,
  type Unit,
  UNIT_NAMES,
  unitOfName,
  UNITS,
} from "../ratelimit/limit.ts";
import { MAX_BURST } from "../ratelimit/algorithms/bucket.ts";
import { parseDuration } from "../base/duration.ts";
import { FieldReader, pathOf } from "../yaml/field_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { described, shown } from "../yaml/scalar.ts";
import type { YamlMapping } from "../yaml/value.ts";
import { checkKeys } from "./rule_fields.ts";

const MAX_LEASE_MS = 24 * 3_600_000;
/** The longest window that is not a fixed one: its microseconds are exact. */
const MAX_WINDOW_SECONDS = 100 * UNITS.YEAR.seconds;
/** Keys that belong to one algorithm. */
const OWN_KEYS = { burst: "token_bucket", max_in_flight: "concurrency", lease: "concurrency" } as const;
const UNIT_KEYS = ["unit", "requests_per_unit", "unit_multiplier"];

/** Reads a `rate_limit` block; undefined when a part of it is invalid, which is reported. */
export function readRateLimit(
  log: ProblemLog,
  mapping: YamlMapping,
  path: string,
): RateLimitSource | undefined {
  checkKeys(log, mapping, path, "rateLimit");
  const block: Block = { log, path, mapping, fields: new FieldReader(log, mapping, path), isInvalid: false };
  const unlimited = block.fields.flag("unlimited");
  const algorithm = block.fields.choice("algorithm", ALGORITHMS) ?? "fixed_window";
  // Which other fields are required depends on these two: without them, nothing is reported about the fields.
  const isKnown = !block.fields.failed("unlimited") && !block.fields.failed("algorithm");
  const amount = isKnown ? readAmount(block, { unlimited, algorithm }) : undefined;
  const name = block.fields.text("name") ?? "";
  const replaces = readReplaces(block);
  if (amount === undefined || block.isInvalid) return undefined;
  if (block.fields.failed("name") || block.fields.failed("replaces")) return undefined;
  return { at: log.at(mapping.offset), path, unlimited, ...amount, name, replaces };
}

interface Block {
  readonly log: ProblemLog;
  readonly path: string;
  readonly mapping: YamlMapping;
  readonly fields: FieldReader;
  isInvalid: boolean;
}

type Amount = Pick<RateLimitSource, "unit" | "requestsPerUnit" | "unitMultiplier" | "algorithm">;

/** The number of hits that pass in a time. */
function readAmount(
  block: Block,
  { unlimited, algorithm }: { readonly unlimited: boolean; readonly algorithm: Algorithm },
): Amount | undefined {
  if (unlimited) {
    refuseKeys(block, ["algorithm"], "has no meaning with 'unlimited: true'; remove one of them");
  }
  for (const [key, owner] of Object.entries(OWN_KEYS)) {
    if (owner !== algorithm) {
      refuseKeys(block, [key], `requires 'algorithm: ${owner}'; set it, or remove ${key}`);
    }
  }
  if (algorithm === "concurrency") return readConcurrency(block);
  const unit = readUnit(block, unlimited);
  const requestsPerUnit = readRequestsPerUnit(block, unlimited);
  const unitMultiplier = readUnitMultiplier(block, unlimited);
  if (UNIT_KEYS.some((key) => block.fields.failed(key))) return undefined;
  if (unlimited) return { unit: undefined, requestsPerUnit: requestsPerUnit ?? 0, unitMultiplier };
  if (unit === undefined || requestsPerUnit === undefined) return undefined;
  const amount = { unit, requestsPerUnit, unitMultiplier };
  if (algorithm === "fixed_window") return amount;
  if (UNITS[unit].seconds * unitMultiplier > MAX_WINDOW_SECONDS) {
    refuseKeys(block, ["unit_multiplier"], `expected at most 100 years with 'algorithm: ${algorithm}'`);
    return undefined;
  }
  const at = positionOf(block, "algorithm");
  if (algorithm === "sliding_window") return { ...amount, algorithm: { at, name: algorithm } };
  const burst = readBurst(block, requestsPerUnit);
  return burst === undefined ? undefined : { ...amount, algorithm: { at, name: algorithm, burst } };
}

function readConcurrency(block: Block): Amount | undefined {
  const { log, path, fields } = block;
  const text = "has no meaning with 'algorithm: concurrency', which counts hits in flight; " +
    "use max_in_flight and lease";
  refuseKeys(block, UNIT_KEYS, text);
  const most = fields.count("max_in_flight", { min: 0, max: MAX_REQUESTS_PER_UNIT });
  if (most === undefined && !fields.failed("max_in_flight")) {
    const missing =
      `expected a whole number from 0 to ${MAX_REQUESTS_PER_UNIT} (0 blocks every request); got nothing`;
    log.error(fields.offset("max_in_flight"), pathOf(path, "max_in_flight"), missing);
  }
  const leaseSeconds = readLease(block);
  if (most === undefined || leaseSeconds === undefined) return undefined;
  const algorithm: AlgorithmSource = {
    at: positionOf(block, "algorithm"),
    name: "concurrency",
    leaseSeconds,
  };
  return { unit: undefined, requestsPerUnit: most, unitMultiplier: 1, algorithm };
}

function readLease({ log, path, fields }: Block): number | undefined {
  const text = fields.text("lease");
  if (fields.failed("lease")) return undefined;
  const leaseMs = parseDuration(text ?? "") ?? 0;
  if (leaseMs > 0 && leaseMs % 1_000 === 0 && leaseMs <= MAX_LEASE_MS) return leaseMs / 1_000;
  const got = text === undefined ? "nothing" : `'${shown(text)}'`;
  const expected = "expected whole seconds up to 24h, longer than any request, such as 60s";
  log.error(fields.offset("lease"), pathOf(path, "lease"), `${expected}; got ${got}`);
  return undefined;
}

function readBurst(block: Block, requestsPerUnit: number): number | undefined {
  const { log, path, fields } = block;
  const burst = fields.count("burst", { min: 1, max: MAX_BURST });
  if (fields.failed("burst")) return undefined;
  if (burst !== undefined && requestsPerUnit === 0) {
    refuseKeys(block, ["burst"], "has no meaning with 'requests_per_unit: 0', which blocks every request");
  }
  if (burst !== undefined || requestsPerUnit <= MAX_BURST) return burst ?? requestsPerUnit;
  const text = `the burst is ${MAX_BURST}, the largest one; set 'burst' to this or less`;
  log.warning(fields.offset("requests_per_unit"), pathOf(path, "requests_per_unit"), text);
  return MAX_BURST;
}

/** Reports each of these keys that is there. */
function refuseKeys(block: Block, keys: readonly string[], text: string): void {
  const { log, path, mapping, fields } = block;
  for (const key of keys) {
    if (!mapping.entries.has(key)) continue;
    block.isInvalid = true;
    log.error(fields.offset(key), pathOf(path, key), text);
  }
}

function positionOf({ log, fields }: Block, key: string): string {
  return log.at(fields.offset(key));
}

function readUnit({ log, path, fields }: Block, unlimited: boolean): Unit | undefined {
  const text = fields.text("unit");
  if (fields.failed("unit")) return undefined;
  const unit = unitOfName(text ?? "");
  const offset = fields.offset("unit");
  const at = pathOf(path, "unit");
  if (unlimited) {
    if (unit !== undefined) {
      log.error(offset, at, "should not specify rate limit unit when unlimited; remove unit, or unlimited");
    } else if (text !== undefined) {
      log.warning(offset, at, `rate limit unit '${shown(text)}' has no effect with unlimited; remove it`);
    }
    return undefined;
  }
  if (unit === undefined) {
    const names = UNIT_NAMES.map((name) => name.toLowerCase()).join(", ");
    log.error(offset, at, `invalid rate limit unit '${shown(text ?? "")}'; expected ${names}`);
  }
  return unit;
}

function readRequestsPerUnit({ log, path, fields }: Block, unlimited: boolean): number | undefined {
  const count = fields.count("requests_per_unit", { min: 0, max: MAX_REQUESTS_PER_UNIT });
  if (count === undefined && !unlimited && !fields.failed("requests_per_unit")) {
    const text = `expected a whole number from 0 to ${MAX_REQUESTS_PER_UNIT} (0 blocks every request), or ` +
      "'unlimited: true'; got nothing";
    log.error(fields.offset("requests_per_unit"), pathOf(path, "requests_per_unit"), text);
  }
  return count;
}

function readUnitMultiplier({ log, path, fields }: Block, unlimited: boolean): number {
  const count = fields.count("unit_multiplier", { min: 1, max: MAX_UNIT_MULTIPLIER });
  if (count !== undefined && unlimited) {
    const text = "has no effect with unlimited; remove it";
    log.warning(fields.offset("unit_multiplier"), pathOf(path, "unit_multiplier"), text);
  }
  return count ?? 1;
}

function readReplaces({ log, path, fields }: Block): RateLimitSource["replaces"] {
  const replaces: { at: string; path: string; name: string }[] = [];
  for (const [index, item] of fields.list("replaces")?.items.entries() ?? []) {
    const itemPath = `${pathOf(path, "replaces")}[${index}]`;
    if (item.kind === "broken") continue;
    if (item.kind !== "mapping") {
      log.error(item.offset, itemPath, `expected a mapping such as 'name: a', got ${described(item)}`);
      continue;
    }
    checkKeys(log, item, itemPath, "replaces");
    const itemFields = new FieldReader(log, item, itemPath);
    const name = itemFields.text("name") ?? "";
    if (itemFields.failed("name")) continue;
    if (name !== "") {
      replaces.push({ at: log.at(item.offset), path: itemPath, name });
    } else {
      const text = "should not have an empty replaces entry; write the name of a rule, such as 'name: a'";
      log.error(itemFields.offset("name"), itemPath, text);
    }
  }
  return replaces;
}
