import { CACHE_FAILURE_MODES } from "../ratelimit/limit.ts";
import type { DescriptorSource } from "../ratelimit/rule_source.ts";
import { FieldReader, pathOf } from "../yaml/field_reader.ts";
import { readMetadata } from "./metadata_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { readRateLimit } from "./rate_limit_reader.ts";
import { checkKeys } from "./rule_fields.ts";
import { described } from "../yaml/scalar.ts";
import type { YamlList, YamlMapping } from "../yaml/value.ts";

/** Reads a list of descriptors; an item that is none, or has no readable key and value, is left out and reported. */
export function readDescriptors(log: ProblemLog, list: YamlList, path: string): DescriptorSource[] {
  const descriptors: DescriptorSource[] = [];
  for (const [index, item] of list.items.entries()) {
    const itemPath = `${path}[${index}]`;
    if (item.kind === "mapping") {
      const descriptor = readDescriptor(log, item, itemPath);
      if (descriptor !== undefined) descriptors.push(descriptor);
    } else if (item.kind !== "broken") {
      log.error(
        item.offset,
        itemPath,
        `list item must be a mapping such as 'key: a', not ${described(item)}`,
      );
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
