import type { JsonObject, JsonValue } from "../ratelimit/rule_source.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { pathOf } from "../yaml/field_reader.ts";
import { numberOf, scalarType, shown } from "../yaml/scalar.ts";
import type { YamlMapping, YamlScalar, YamlValue } from "../yaml/value.ts";

/** Maximum depth of metadata, so that decoders of the protocol accept a response with it. */
export const MAX_METADATA_DEPTH = 24;

/** The metadata of a rule as JSON; undefined when a part of it is not JSON, which is reported. */
export function readMetadata(log: ProblemLog, mapping: YamlMapping, path: string): JsonObject | undefined {
  return readMapping(log, mapping, path, 1);
}

function readMapping(
  log: ProblemLog,
  mapping: YamlMapping,
  path: string,
  depth: number,
): JsonObject | undefined {
  let whole = true;
  const entries: [string, JsonValue][] = [];
  for (const [key, { value }] of mapping.entries) {
    const read = readValue(log, value, pathOf(path, key), depth);
    if (read === undefined) whole = false;
    else entries.push([key, read]);
  }
  // Not by assignment: `__proto__` is a key like any other.
  return whole ? Object.fromEntries(entries) : undefined;
}

function readValue(log: ProblemLog, value: YamlValue, path: string, depth: number): JsonValue | undefined {
  if (value.kind === "broken") return undefined;
  if (value.kind === "scalar") return readScalar(log, value, path);
  if (depth >= MAX_METADATA_DEPTH) {
    const text = `expected at most ${MAX_METADATA_DEPTH} levels of metadata; use fewer levels`;
    log.error(value.offset, path, text);
    return undefined;
  }
  if (value.kind === "mapping") return readMapping(log, value, path, depth + 1);
  const items: JsonValue[] = [];
  for (const [index, item] of value.items.entries()) {
    const read = readValue(log, item, `${path}[${index}]`, depth + 1);
    if (read !== undefined) items.push(read);
  }
  return items.length === value.items.length ? items : undefined;
}

function readScalar(log: ProblemLog, scalar: YamlScalar, path: string): JsonValue | undefined {
  switch (scalarType(scalar)) {
    case "null":
      return null;
    case "boolean":
      return scalar.text.toLowerCase() === "true";
    case "text":
      return scalar.text;
    case "date":
      return refuse(log, scalar, path, "a value of JSON, got the date");
    case "number":
      return numberOf(scalar) ?? refuse(log, scalar, path, "a value of JSON, got the number");
  }
}

function refuse(log: ProblemLog, scalar: YamlScalar, path: string, why: string): undefined {
  log.error(scalar.offset, path, `expected ${why} ${shown(scalar.text)}; put it in quotes`);
}
