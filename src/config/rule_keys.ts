import { pathOf, unknownKeyText } from "../yaml/field_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { described, isOddNumber, shown } from "../yaml/scalar.ts";
import type { YamlMapping, YamlValue } from "../yaml/value.ts";

/** A kind of mapping in a rule file. */
type Level = "file" | "descriptor" | "rateLimit" | "replaces";

/** The name of each mapping and the keys that it may have. */
const LEVELS: Readonly<Record<Level, { readonly place: string; readonly keys: readonly string[] }>> = {
  file: { place: "at the top of the file", keys: ["domain", "descriptors"] },
  descriptor: {
    place: "in a descriptor",
    keys: [
      "key",
      "value",
      "rate_limit",
      "rate_limits",
      "descriptors",
      "shadow_mode",
      "quota_mode",
      "on_cache_failure",
      "detailed_metric",
      "value_to_metric",
      "share_threshold",
      "fallback",
      "identifies",
      "metadata",
      "events",
      "events_redact",
    ],
  },
  rateLimit: {
    place: "in 'rate_limit'",
    keys: [
      "unit",
      "requests_per_unit",
      "unit_multiplier",
      "calendar",
      "timezone",
      "algorithm",
      "burst",
      "max_in_flight",
      "lease",
      "unlimited",
      "name",
      "replaces",
    ],
  },
  replaces: { place: "in an item of 'replaces'", keys: ["name"] },
};

const EVERY_KEY = [...new Set(Object.values(LEVELS).flatMap(({ keys }) => keys))];

/** Reports unknown keys, and keys without effect at their place; `also` lists further ones that it may have. */
export function checkKeys(
  log: ProblemLog,
  mapping: YamlMapping,
  path: string,
  level: Level,
  also: readonly string[] = [],
): void {
  const known = [...LEVELS[level].keys, ...also];
  for (const [key, { offset, value }] of mapping.entries) {
    if (known.includes(key)) continue;
    const places = Object.values(LEVELS).filter(({ keys }) => keys.includes(key)).map(({ place }) => place);
    if (places.length > 0) {
      log.warning(offset, pathOf(path, key), `has no effect here; it belongs ${places.join(" or ")}`);
      checkIgnored(log, { key, value, path: pathOf(path, key) });
    } else {
      log.error(offset, path, unknownKeyText(key, known));
    }
  }
}

interface Ignored {
  readonly key: string;
  readonly value: YamlValue;
  readonly path: string;
}

/** Checks the value of a key without effect all the same: it was meant to have one. */
function checkIgnored(log: ProblemLog, { key, value, path }: Ignored): void {
  if (key === "metadata" || key === "events") return;
  if (value.kind === "scalar" && key !== "value" && isOddNumber(value)) {
    const text = `expected a 64-bit integer, got '${shown(value.text)}'; remove it, or put it in quotes`;
    log.error(value.offset, path, text);
  } else if (value.kind === "mapping") {
    checkIgnoredKeys(log, value, path);
  } else if (value.kind === "list") {
    for (const [index, item] of value.items.entries()) {
      const itemPath = `${path}[${index}]`;
      if (item.kind === "mapping") checkIgnoredKeys(log, item, itemPath);
      else if (item.kind !== "broken") {
        log.error(item.offset, itemPath, `expected a mapping, got ${described(item)}`);
      }
    }
  }
}

function checkIgnoredKeys(log: ProblemLog, mapping: YamlMapping, path: string): void {
  for (const [key, { offset, value }] of mapping.entries) {
    if (EVERY_KEY.includes(key)) checkIgnored(log, { key, value, path: pathOf(path, key) });
    else log.error(offset, path, unknownKeyText(key, EVERY_KEY));
  }
}
