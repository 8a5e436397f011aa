import {
  CACHE_FAILURE_MODES,
  type DescriptorSource,
  type DomainSource,
  type RateLimitSource,
} from "../ratelimit/rule_source.ts";
import type { Problem } from "../base/problem.ts";
import { FieldReader, pathOf } from "../yaml/field_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { checkKeys } from "./rule_keys.ts";
import { readYamlDocument, type YamlDocumentOptions } from "../yaml/document.ts";
import { described, isNull } from "../yaml/scalar.ts";
import type { YamlList, YamlMapping, YamlValue } from "../yaml/value.ts";
import { LIMIT_EVENTS, type LimitEvent, REDACTIONS, type RuleEvents } from "../ratelimit/rule_events.ts";
import { readMetadata } from "./metadata_reader.ts";
import { LIST_KEYS, readRateLimit, readRateLimits } from "./rate_limit_block.ts";
import { readValueMatch } from "./value_match_reader.ts";

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
    fields.warning("descriptors", text);
  }
  if (fields.failed("domain")) return undefined;
  return { at: log.at(fields.offset("domain")), domain, descriptors };
}

/** Reads a list of descriptors; an invalid item is skipped and reported. */
function readDescriptors(log: ProblemLog, list: YamlList, path: string): DescriptorSource[] {
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
  const isList = mapping.entries.has("rate_limits");
  checkKeys(log, mapping, path, "descriptor", isList ? LIST_KEYS : []);
  const fields = new FieldReader(log, mapping, path);
  const metadata = fields.mapping("metadata");
  const nested = fields.list("descriptors");
  const value = mapping.entries.get("value")?.value;
  const match = value?.kind === "mapping" ? readValueMatch(log, value, pathOf(path, "value")) : undefined;
  const isMatchInvalid = value?.kind === "mapping" && match === undefined;
  const descriptor: DescriptorSource = {
    at: log.at(mapping.offset),
    path,
    key: fields.text("key") ?? "",
    value: value?.kind === "mapping" ? "" : fields.anyText("value") ?? "",
    match,
    fallback: fields.choice("fallback", ["parent"]),
    rateLimit: readLimit(fields),
    shadowMode: fields.flag("shadow_mode"),
    quotaMode: fields.flag("quota_mode"),
    onCacheFailure: fields.choice("on_cache_failure", CACHE_FAILURE_MODES),
    detailedMetric: fields.flag("detailed_metric"),
    valueToMetric: fields.flag("value_to_metric"),
    shareThreshold: fields.flag("share_threshold"),
    identifies: fields.flag("identifies"),
    metadata: metadata === undefined ? undefined : readMetadata(log, metadata, pathOf(path, "metadata")),
    events: readRuleEvents(fields),
    descriptors: nested === undefined ? [] : readDescriptors(log, nested, pathOf(path, "descriptors")),
  };
  if (!hasLimit(mapping)) warnWithoutLimit(log, mapping, descriptor);
  return fields.failed("key") || fields.failed("value") || isMatchInvalid ? undefined : descriptor;
}

/** Reads `rate_limit` or `rate_limits`. */
function readLimit(fields: FieldReader): RateLimitSource | undefined {
  if (fields.source.entries.get("rate_limit")?.value.kind === "list") {
    fields.error("rate_limit", "expected a mapping, got a list; use rate_limits for several windows");
    return undefined;
  }
  const limit = fields.mapping("rate_limit");
  const list = fields.list("rate_limits");
  if (limit !== undefined && list !== undefined) {
    fields.error("rate_limits", "is another way to write rate_limit; remove one of them");
  }
  if (list !== undefined) return readRateLimits(fields, list);
  return limit === undefined ? undefined : readRateLimit(fields.log, limit, fields.pathOf("rate_limit"));
}

/** True if it has a limit, which may be invalid. */
function hasLimit({ entries }: YamlMapping): boolean {
  return ["rate_limit", "rate_limits"].some((key) => {
    const value = entries.get(key)?.value;
    return value !== undefined && !(value.kind === "scalar" && isNull(value));
  });
}

/** Reports each field that only changes the limit of its level, where that level has none. */
function warnWithoutLimit(log: ProblemLog, mapping: YamlMapping, descriptor: DescriptorSource): void {
  const fields = {
    shadow_mode: descriptor.shadowMode,
    quota_mode: descriptor.quotaMode,
    on_cache_failure: descriptor.onCacheFailure,
    detailed_metric: descriptor.detailedMetric,
    metadata: descriptor.metadata,
  };
  for (const [key, value] of Object.entries(fields)) {
    const entry = mapping.entries.get(key);
    if (entry === undefined || value === undefined || value === false) continue;
    const text =
      "has no effect without a rate_limit at this level, and nested descriptors do not inherit it; " +
      "move it next to a rate_limit, or remove it";
    log.warning(entry.offset, pathOf(descriptor.path, key), text);
  }
}

/** Reads `events` and `events_redact`; undefined without events, or when one of them is invalid, which is reported. */
function readRuleEvents(fields: FieldReader): RuleEvents | undefined {
  const list = fields.list("events");
  const redact = fields.choice("events_redact", REDACTIONS);
  const events = new Set<LimitEvent>();
  let isValid = !fields.failed("events") && !fields.failed("events_redact");
  for (const [index, item] of list?.items.entries() ?? []) {
    const event = item.kind === "scalar" ? LIMIT_EVENTS.find((known) => known === item.text) : undefined;
    if (event !== undefined && !events.has(event)) {
      events.add(event);
      continue;
    }
    isValid = false;
    if (item.kind === "broken") continue;
    const expected = `expected one of ${LIMIT_EVENTS.join(", ")}${
      event === undefined ? "" : ", each one time"
    }`;
    fields.log.error(
      item.offset,
      `${fields.pathOf("events")}[${index}]`,
      `${expected}; got ${described(item)}`,
    );
  }
  if (!isValid) return undefined;
  if (events.size > 0) {
    const at = fields.log.at(fields.source.offset);
    return { at, overLimit: events.has("over_limit"), nearLimit: events.has("near_limit"), redact };
  }
  if (redact !== undefined) {
    fields.error("events_redact", "requires events; add events, or remove events_redact");
  }
  return undefined;
}
