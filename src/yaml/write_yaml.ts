import { isJsonObject, type JsonValue, parseJson } from "../base/exact_json.ts";
import { JsonText } from "../base/json_text.ts";

/** Strings that need no quotes, unless YAML reads them as another type. */
const PLAIN = /^[A-Za-z_][\w./-]*(?: [\w./-]+)*$/;
const OTHER_TYPES = /^(?:true|false|yes|no|on|off|y|n|null|nan|inf)$/i;
/** Characters that JSON allows in strings and YAML does not, or that steer a terminal. */
const NOT_PRINTED = /[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]/g;
const INDENTATION = "  ";

/**
 * A JSON value as a YAML document in block style, without a line break at its end; numbers keep their digits, and the
 * keys of a `JsonText` their order.
 */
export function writeYaml(value: JsonValue): string {
  return linesOf(value).join("\n");
}

function linesOf(value: JsonValue): string[] {
  const items = itemsOf(value);
  if (items !== undefined) return items.length === 0 ? ["[]"] : items.flatMap(itemLines);
  const entries = entriesOf(value);
  if (entries === undefined) return [scalarText(value instanceof JsonText ? parseJson(value.text) : value)];
  return entries.length === 0 ? ["{}"] : entries.flatMap(([key, field]) => fieldLines(key, field));
}

function itemsOf(value: JsonValue): readonly JsonValue[] | undefined {
  if (!(value instanceof JsonText)) return isList(value) ? value : undefined;
  return value.kind === "list" ? [...value.members.values()] : undefined;
}

function entriesOf(value: JsonValue): readonly (readonly [string, JsonValue])[] | undefined {
  if (!(value instanceof JsonText)) return isJsonObject(value) ? Object.entries(value) : undefined;
  return value.kind === "object" ? [...value.members] : undefined;
}

/** The first line of a value follows its dash. */
function itemLines(item: JsonValue): string[] {
  return linesOf(item).map((line, index) => `${index === 0 ? "- " : INDENTATION}${line}`);
}

function fieldLines(key: string, value: JsonValue): string[] {
  const lines = linesOf(value);
  const isBlock = ((itemsOf(value) ?? entriesOf(value))?.length ?? 0) > 0;
  const name = stringText(key);
  return isBlock ? [`${name}:`, ...lines.map((line) => `${INDENTATION}${line}`)] : [`${name}: ${lines[0]}`];
}

function scalarText(value: JsonValue): string {
  return typeof value === "string" ? stringText(value) : JSON.stringify(value);
}

/** A text in double quotes is one of YAML, too. */
function stringText(text: string): string {
  if (PLAIN.test(text) && !OTHER_TYPES.test(text)) return text;
  return JSON.stringify(text).replace(NOT_PRINTED, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
