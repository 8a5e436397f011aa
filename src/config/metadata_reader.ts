import type { JsonObject, JsonValue } from "../ratelimit/rule_source.ts";
import { pathOf } from "../yaml/field_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { flagOf, isNull, numberOf, scalarType, shown } from "../yaml/scalar.ts";
import type { YamlMapping, YamlScalar, YamlValue } from "../yaml/value.ts";

/** Maximum depth of metadata, so that decoders of the protocol accept a response with it. */
const MAX_DEPTH = 24;

/** A value of YAML or protobuf: JSON already, or with values inside. */
type OpenedValue<Value> =
  | { readonly json: JsonValue }
  | { readonly entries: Iterable<readonly [key: string, value: Value]> }
  | { readonly items: readonly Value[] };

/** Reads the values of one format. */
interface MetadataFormat<Value> {
  /** Undefined for a value that is not JSON, which is reported. */
  open(value: Value, path: string): OpenedValue<Value> | undefined;
  error(value: Value, path: string, text: string): void;
}

/** The metadata of a rule in a file as JSON; undefined when a part of it is not JSON, which is reported. */
export function readMetadata(log: ProblemLog, mapping: YamlMapping, path: string): JsonObject | undefined {
  const error = (value: YamlValue, at: string, text: string) => log.error(value.offset, at, text);
  return metadataOf<YamlValue>(entriesOf(mapping), path, {
    error,
    open(value, at) {
      if (value.kind === "broken") return undefined;
      if (value.kind === "mapping") return { entries: entriesOf(value) };
      if (value.kind === "list") return value;
      const json = jsonOf(value);
      if (json !== undefined) return { json };
      const text = `expected a value of JSON, got the number ${shown(value.text)}; put it in quotes`;
      return void error(value, at, text);
    },
  });
}

/** As `readMetadata`, of values in any format. */
export function metadataOf<Value>(
  entries: Iterable<readonly [key: string, value: Value]>,
  path: string,
  format: MetadataFormat<Value>,
  depth = 1,
): JsonObject | undefined {
  const read = [...entries].map(([key, value]) => [key, valueOf(value, pathOf(path, key), format, depth)]);
  // Not by assignment: `__proto__` is a key like any other.
  return read.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(read);
}

function valueOf<Value>(
  value: Value,
  path: string,
  format: MetadataFormat<Value>,
  depth: number,
): JsonValue | undefined {
  const opened = format.open(value, path);
  if (opened === undefined) return undefined;
  if ("json" in opened) return opened.json;
  if (depth >= MAX_DEPTH) {
    format.error(value, path, `expected at most ${MAX_DEPTH} levels of metadata; use fewer levels`);
    return undefined;
  }
  if ("entries" in opened) return metadataOf(opened.entries, path, format, depth + 1);
  const read = opened.items.map((item, index) => valueOf(item, `${path}[${index}]`, format, depth + 1));
  const items = read.filter((item) => item !== undefined);
  return items.length === read.length ? items : undefined;
}

function* entriesOf({ entries }: YamlMapping): Generator<readonly [key: string, value: YamlValue]> {
  for (const [key, { value }] of entries) yield [key, value];
}

/** As YAML 1.1 reads it, with flags such as `yes`; undefined for a number that JSON does not have. */
function jsonOf(scalar: YamlScalar): JsonValue | undefined {
  if (isNull(scalar)) return null;
  const json = flagOf(scalar) ?? numberOf(scalar);
  return json ?? (scalarType(scalar) === "number" ? undefined : scalar.text);
}
