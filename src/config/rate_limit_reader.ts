import {
  MAX_REQUESTS_PER_UNIT,
  MAX_UNIT_MULTIPLIER,
  type Unit,
  UNIT_NAMES,
  unitOfName,
} from "../ratelimit/limit.ts";
import type { RateLimitSource } from "../ratelimit/rule_source.ts";
import { FieldReader, pathOf } from "../yaml/field_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { checkKeys } from "./rule_fields.ts";
import { described, shown } from "../yaml/scalar.ts";
import type { YamlMapping } from "../yaml/value.ts";

/** Reads a `rate_limit` block; absent when something in it is wrong, which is reported. */
export function readRateLimit(
  log: ProblemLog,
  mapping: YamlMapping,
  path: string,
): RateLimitSource | undefined {
  checkKeys(log, mapping, path, "rateLimit");
  const block: Block = { log, path, fields: new FieldReader(log, mapping, path) };
  const unlimited = block.fields.flag("unlimited");
  // Whether the other fields are due hangs on the flag: without it, nothing is said of them.
  const isKnown = !block.fields.failed("unlimited");
  const unit = isKnown ? readUnit(block, unlimited) : undefined;
  const requestsPerUnit = isKnown ? readRequestsPerUnit(block, unlimited) : undefined;
  const unitMultiplier = readUnitMultiplier(block, unlimited);
  const name = block.fields.text("name") ?? "";
  const replaces = readReplaces(block);
  const keys = ["unit", "requests_per_unit", "unit_multiplier", "name", "replaces"];
  if (!isKnown || keys.some((key) => block.fields.failed(key))) return undefined;
  if (!unlimited && (unit === undefined || requestsPerUnit === undefined)) return undefined;
  const at = log.at(mapping.offset);
  return { at, path, unlimited, unit, requestsPerUnit: requestsPerUnit ?? 0, unitMultiplier, name, replaces };
}

interface Block {
  readonly log: ProblemLog;
  readonly path: string;
  readonly fields: FieldReader;
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
