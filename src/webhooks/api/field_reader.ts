import { parseDuration } from "../../base/duration.ts";
import {
  isJsonObject,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  nestingProblem,
  parseJson,
  stringifyJson,
} from "../../base/exact_json.ts";
import { memberText } from "../../base/json_text.ts";
import { parseMoment, parseTime } from "../../base/rfc3339.ts";
import { eventKindProblem, eventPatternProblem, MAX_KIND_LENGTH } from "../model/event.ts";
import { callConditionProblem } from "../model/call_condition.ts";
import type { ConditionProblem } from "../model/condition.ts";
import { eventFilterProblem } from "../model/event_filter.ts";
import { readTriggerLimit, triggerLimitJson } from "../model/limit_call.ts";
import { bodyTemplateProblem } from "../model/delivery_body.ts";
import { parseTemplate } from "../model/template.ts";
import type { Field, Fields, FieldType, Sent } from "../resources/field.ts";
import {
  HTTP_HEADERS,
  MAX_ENTRIES,
  MAX_HEADER_VALUE,
  MAX_HEADERS,
  MAX_TEXT_LENGTH,
  PEM,
  SENDER_HEADERS,
  SIGNED_HEADER,
} from "./field_schemas.ts";
import { invalidField, refusal, type WebhookRefusal } from "./problem.ts";
import type { ProblemCode } from "./problem_codes.ts";

/** Deepest nesting of the body of a call. */
const MAX_NESTING = 64;
const MAX_DELAY_MS = 30 * 86_400_000;
/** They would steer a terminal or break a line where the text is shown, and the store ends a text at a NUL. */
// deno-lint-ignore no-control-regex
const CONTROLS = /[\0-\x1f\x7f-\x9f]/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
const HEADER_VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
const SENDER_HEADER = new RegExp(`^(?:${SENDER_HEADERS})$`);

/**
 * The object of a body, its numbers with every digit. Throws a `WebhookRefusal`: 400 for what is not JSON, 422 for what
 * is not an object or nested too deep.
 */
export function jsonObjectOf(body: string): JsonObject {
  let value: JsonValue;
  try {
    value = JSON.parse(body);
  } catch {
    throw badBody("malformed_json", body === "" ? "it is empty" : "it is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw badBody("not_an_object", "expected a JSON object");
  }
  // The parser of the runtime accepts any depth.
  const problem = nestingProblem(body, MAX_NESTING);
  if (problem !== undefined) throw badBody("too_deep", `nested deeper than ${MAX_NESTING}`);
  return parseJson(body, value) as JsonObject;
}

function badBody(code: ProblemCode, state: string): WebhookRefusal {
  return refusal(code, `Cannot read the body: ${state}`, { field: "body" });
}

/** Facts about the object that fields are read of. */
interface ReadOptions {
  /** Its JSON, which keeps the order of keys; required for limits. */
  readonly text?: string | undefined;
  /** The time of durations before now; required for moments. */
  readonly now?: number | undefined;
  /** Comes before the names in refusals. */
  readonly prefix?: string | undefined;
}

/**
 * The values of the fields of an object within the bounds of their rows. Throws a `WebhookRefusal` that names the first
 * field that is unknown, missing or invalid.
 */
export function readFields<F extends Fields>(
  object: JsonObject,
  fields: F,
  options: ReadOptions = {},
): Sent<F> {
  const { prefix = "" } = options;
  const names = Object.keys(fields);
  const unknown = Object.keys(object).find((name) => !Object.hasOwn(fields, name));
  if (unknown !== undefined) {
    const known = names.length === 0 ? "no fields" : names.join(", ");
    throw invalidField(`${prefix}${unknown}`, `unknown; expected ${known}`);
  }
  const values = Object.entries(fields as Fields).map(([key, field]) => {
    const name = `${prefix}${key}`;
    const value = Object.hasOwn(object, key) ? object[key] : undefined;
    if (value === undefined && field.isRequired === true) throw invalidField(name, "it is required");
    if (value === undefined || value === null && field.isNullable === true) return [key, value];
    return [key, READERS[field.type]?.(value, { name, field, key, options })];
  });
  return Object.fromEntries(values);
}

/** A value that is read. */
interface Place {
  /** As refusals name it. */
  readonly name: string;
  readonly key: string;
  readonly field: Field;
  readonly options: ReadOptions;
}

/** Returns the value of a field, or throws its refusal. */
type Reader = (value: JsonValue, place: Place) => unknown;

/** Requests have no fields of the other types. */
const READERS: Readonly<Partial<Record<FieldType, Reader>>> = {
  text: readText,
  url: readText,
  secret: readText,
  pem(value, place) {
    const { max = MAX_TEXT_LENGTH } = place.field;
    if (typeof value === "string" && value.length <= max && new RegExp(PEM).test(value)) return value;
    throw expected(place, `a text in PEM of at most ${max} characters`);
  },
  header(value, place) {
    const { max = 1 } = place.field;
    const text = readText(value, { ...place, field: { ...place.field, max: MAX_TEXT_LENGTH } });
    const names = max === 1 ? [text] : text.split(/, ?/);
    if (names.length > max) throw expected(place, `at most ${max} headers`);
    return names.map((name) => readHeaderName(name, place)).join(", ");
  },
  choice(value, place) {
    const { choices = [] } = place.field;
    if (choices.includes(value as string)) return value;
    throw expected(place, `one of ${choices.join(", ")}`);
  },
  flag(value, place) {
    if (typeof value === "boolean") return value;
    throw expected(place, "true or false");
  },
  integer: readInteger,
  milliseconds: readInteger,
  seconds: readInteger,
  id(value, place) {
    const id = readText(value, place);
    if (UUID.test(id)) return id;
    throw expected(place, place.field.expected ?? "an identifier");
  },
  time(value, place) {
    const time = typeof value === "string" ? parseTime(value) : undefined;
    if (time !== undefined) return time;
    throw expected(place, "a time such as 2026-01-31T12:00:00Z");
  },
  moment(value, place) {
    const time = typeof value === "string" ? parseMoment(value, place.options.now ?? 0) : undefined;
    if (time !== undefined) return time;
    throw expected(place, "a time such as 2026-01-31T12:00:00Z, or a duration such as 48h");
  },
  delay(value, place) {
    const ms = typeof value === "string" ? parseDuration(value) : value === 0 ? 0 : undefined;
    if (ms !== undefined && ms <= MAX_DELAY_MS) return Math.round(ms);
    throw expected(place, "a duration such as 30m or 24h, of at most 30 days");
  },
  kind(value, place) {
    const kind = readText(value, { ...place, field: { ...place.field, max: MAX_KIND_LENGTH } });
    refuse(place.name, eventKindProblem(kind));
    return kind;
  },
  kinds(value, place) {
    const kinds = readList(value, place, "texts").map((item, index) => {
      refuse(
        `${place.name}[${index}]`,
        typeof item === "string" ? eventPatternProblem(item) : "expected a text",
      );
      return String(item);
    });
    return [...new Set(kinds)];
  },
  texts(value, place) {
    const texts = readList(value, place, "texts").map((item, index) =>
      readText(item, {
        ...place,
        name: `${place.name}[${index}]`,
        field: { ...place.field, type: "text", max: MAX_TEXT_LENGTH },
      })
    );
    return [...new Set(texts)];
  },
  rate(value, place) {
    return readFields(readObject(value, place), place.field.fields ?? {}, { prefix: `${place.name}.` });
  },
  headers: readHeaders,
  filter: (value, place) => readConditions(value, place, eventFilterProblem),
  condition: (value, place) => readConditions(value, place, callConditionProblem),
  template(value, place) {
    const object = readObject(value, place);
    refuse(place.name, bodyTemplateProblem(object));
    return stringifyJson(object);
  },
  limit(value, place) {
    readFields(readObject(value, place), place.field.fields ?? {}, { prefix: `${place.name}.` });
    // As it was sent, since an object would not keep the order of keys.
    return triggerLimitJson(readTriggerLimit(memberText(place.options.text ?? "{}", place.key)));
  },
  descriptors(value, place) {
    const list = readList(value, place, "JSON objects");
    if (!list.every(isJsonObject)) throw expected(place, "a list of JSON objects");
    list.forEach((descriptor, index) => checkDescriptor(descriptor, `${place.name}[${index}]`));
    return list;
  },
  verification: readObject,
  credentials: readObject,
  object: readObject,
};

function readConditions(
  value: JsonValue,
  place: Place,
  problemOf: (object: JsonObject) => ConditionProblem | undefined,
): string {
  const object = readObject(value, place);
  const problem = problemOf(object);
  if (problem === undefined) return stringifyJson(object);
  const { path, reason } = problem;
  throw invalidField(path === undefined ? place.name : `${place.name}.${path}`, reason);
}

function readText(value: JsonValue, place: Place): string {
  const { type, min = 0, max = MAX_TEXT_LENGTH, pattern, expected: form = "" } = place.field;
  if (typeof value !== "string" || value.length > max) {
    throw expected(place, `a text of at most ${max} characters`);
  }
  if (CONTROLS.test(value)) throw expected(place, "a text without control characters");
  if (pattern !== undefined && !new RegExp(pattern).test(value)) throw expected(place, form);
  if (type !== "text") return value;
  if (value.length < min) throw expected(place, "a text that is not empty");
  return value;
}

function readHeaderName(header: string, place: Place): string {
  if (new RegExp(SIGNED_HEADER).test(header)) return header.toLowerCase();
  const isOwn = HTTP_HEADERS.includes(header.toLowerCase());
  throw expected(place, isOwn ? "a header that HTTP does not define" : "1 to 64 letters, digits and -");
}

function readInteger(value: JsonValue, place: Place): number {
  const { min = 0, max = Infinity } = place.field;
  // A number such as 5.0 keeps its digits.
  const number = isRawNumber(value) ? Number(stringifyJson(value)) : value;
  if (Number.isInteger(number) && Number(number) >= min && Number(number) <= max) return Number(number);
  throw expected(place, `an integer from ${min} to ${max}`);
}

function readObject(value: JsonValue, place: Place): JsonObject {
  if (isJsonObject(value)) return value;
  throw expected(place, "a JSON object");
}

function readList(value: JsonValue, place: Place, items: string): readonly JsonValue[] {
  const { max = Infinity } = place.field;
  if (Array.isArray(value) && value.length > 0 && value.length <= max) return value;
  throw expected(place, `a list of 1 to ${max} ${items}`);
}

function readHeaders(value: JsonValue, place: Place): readonly (readonly [string, string])[] {
  const entries = Object.entries(readObject(value, place));
  if (entries.length > MAX_HEADERS) throw expected(place, `at most ${MAX_HEADERS} headers`);
  const seen = new Set<string>();
  return entries.map(([name, value]) => {
    const at = `${place.name}.${name}`;
    const lower = name.toLowerCase();
    if (!HEADER_NAME.test(name)) throw expected(place, "names of headers");
    if (SENDER_HEADER.test(lower)) throw invalidField(at, "this header is set by the service alone");
    if (seen.has(lower)) throw invalidField(at, "expected it once");
    seen.add(lower);
    if (typeof value !== "string" || value.length > MAX_HEADER_VALUE || !HEADER_VALUE.test(value)) {
      throw invalidField(at, `expected 1 to ${MAX_HEADER_VALUE} visible ASCII characters`);
    }
    return [name, value] as const;
  });
}

function checkDescriptor(object: JsonObject, name: string): void {
  const entries = Object.entries(object);
  if (entries.length === 0 || entries.length > MAX_ENTRIES) {
    throw invalidField(name, `expected 1 to ${MAX_ENTRIES} keys with their values`);
  }
  for (const [key, value] of entries) {
    if (key === "") throw invalidField(name, "expected a key that is not empty");
    refuse(
      `${name}.${key}`,
      typeof value === "string" ? parseTemplate(value, ["input"]).problem : "expected a text",
    );
  }
}

function refuse(name: string, reason: string | undefined): void {
  if (reason !== undefined) throw invalidField(name, reason);
}

function expected({ name }: Place, what: string): WebhookRefusal {
  return invalidField(name, `expected ${what}`);
}
