import type { DescriptorSource, DomainSource, RateLimitSource } from "../ratelimit/rule_source.ts";
import type { Problem } from "../base/problem.ts";
import { FieldReader, pathOf } from "../yaml/field_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { checkKeys } from "./rule_fields.ts";
import { readYamlDocument, type YamlDocumentOptions } from "../yaml/document.ts";
import { described, isNull, shown } from "../yaml/scalar.ts";
import type { YamlList, YamlMapping, YamlValue } from "../yaml/value.ts";
import { CACHE_FAILURE_MODES } from "../ratelimit/limit.ts";
import { readMetadata } from "./metadata_reader.ts";
import {
  MAX_REQUESTS_PER_UNIT,
  MAX_UNIT_MULTIPLIER,
  type Unit,
  UNIT_NAMES,
  unitOfName,
} from "../ratelimit/limit.ts";

/** The content of a rule file and its problems of syntax and types. */
export interface RuleFile {
  /**
   * Undefined without a domain. With errors among the problems it is only for further checks, and must not become rules.
   */
  readonly source: DomainSource | undefined;
  readonly problems: Problem[];
  /** The cost of reading it, to compare with `maxParts`. */
  readonly parts: number;
}

/** Reads a rule file; `name` begins every position. */
export function readRuleFile(name: string, text: string, options: YamlDocumentOptions = {}): RuleFile {
  const { root, log, parts } = readYamlDocument(name, text, options);
  const source = readRoot(root, log);
  return { source, problems: log.problems(), parts };
}

function readRoot(root: YamlValue | undefined, log: ProblemLog): DomainSource | undefined {
  if (root === undefined || (root.kind === "scalar" && isNull(root))) {
    const isSilent = log.problems().every(({ severity }) => severity !== "error");
    if (isSilent) {
      log.error(0, "", "config file cannot have empty domain; the file is empty: begin with 'domain: a'");
    }
    return undefined;
  }
  if (root.kind === "mapping") return readFile(log, root);
  if (root.kind !== "broken") {
    log.error(root.offset, "", `expected a mapping with domain and descriptors, got ${described(root)}`);
  }
  return undefined;
}

function readFile(log: ProblemLog, mapping: YamlMapping): DomainSource | undefined {
  checkKeys(log, mapping, "", "file");
  const fields = new FieldReader(log, mapping, "");
  const domain = fields.text("domain") ?? "";
  const list = fields.list("descriptors");
  let descriptors: DescriptorSource[] = [];
  if (list !== undefined) {
    descriptors = readDescriptors(log, list, "descriptors");
  } else if (!fields.failed("descriptors")) {
    const text =
      "there are no descriptors, so nothing in this domain is limited; write 'descriptors: []' if that is meant";
    log.warning(fields.offset("descriptors"), "descriptors", text);
  }
  if (fields.failed("domain")) return undefined;
  return { at: log.at(fields.offset("domain")), domain, descriptors };
}

/** Reads a list of descriptors; an invalid item is skipped and reported. */
export function readDescriptors(log: ProblemLog, list: YamlList, path: string): DescriptorSource[] {
  const descriptors: DescriptorSource[] = [];
  for (const [index, item] of list.items.entries()) {
    const itemPath = `${path}[${index}]`;
    if (item.kind === "mapping") {
      const descriptor = readDescriptor(log, item, itemPath);
      if (descriptor !== undefined) descriptors.push(descriptor);
    } else if (item.kind !== "broken") {
      log.error(item.offset, itemPath, `expected a mapping such as 'key: a', got ${described(item)}`);
    }
  }
  return descriptors;
}

function readDescriptor(log: ProblemLog, mapping: YamlMapping, path: string): DescriptorSource | undefined {
  checkKeys(log, mapping, path, "descriptor");
  const fields = new FieldReader(log, mapping, path);
  const rateLimit = fields.mapping("rate_limit");
  const metadata = fields.mapping("metadata");
  const nested = fields.list("descriptors");
  const descriptor: DescriptorSource = {
    at: log.at(mapping.offset),
    path,
    key: fields.text("key") ?? "",
    value: fields.anyText("value") ?? "",
    rateLimit: rateLimit === undefined
      ? undefined
      : readRateLimit(log, rateLimit, pathOf(path, "rate_limit")),
    shadowMode: fields.flag("shadow_mode"),
    quotaMode: fields.flag("quota_mode"),
    onCacheFailure: fields.choice("on_cache_failure", CACHE_FAILURE_MODES),
    detailedMetric: fields.flag("detailed_metric"),
    valueToMetric: fields.flag("value_to_metric"),
    shareThreshold: fields.flag("share_threshold"),
    metadata: metadata === undefined ? undefined : readMetadata(log, metadata, pathOf(path, "metadata")),
    descriptors: nested === undefined ? [] : readDescriptors(log, nested, pathOf(path, "descriptors")),
  };
  return fields.failed("key") || fields.failed("value") ? undefined : descriptor;
}

/** Reads a `rate_limit` block; undefined when a part of it is invalid, which is reported. */
export function readRateLimit(
  log: ProblemLog,
  mapping: YamlMapping,
  path: string,
): RateLimitSource | undefined {
  checkKeys(log, mapping, path, "rateLimit");
  const block: Block = { log, path, fields: new FieldReader(log, mapping, path) };
  const unlimited = block.fields.flag("unlimited");
  // Which other fields are required depends on the flag: without it, nothing is reported about them.
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
