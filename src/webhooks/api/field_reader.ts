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
import type { JsonSchema, SchemaProperties } from "../../base/json_schema.ts";
import { parseMoment } from "../../base/rfc3339.ts";
import { invalidField, refusal, type WebhookRefusal } from "./problem.ts";
import type { ProblemCode } from "./problem_codes.ts";
import { MAX_TEXT_LENGTH } from "./text_forms.ts";

/** How deep the body of a call may be nested. */
export const MAX_NESTING = 64;
/** They would steer a terminal or break a line where the text is shown, and the store ends a text at a NUL. */
// deno-lint-ignore no-control-regex
const CONTROLS = /[\0-\x1f\x7f-\x9f]/;

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

/** What is wrong with an item of a list; nothing when it is valid. */
type ItemProblem = (item: string) => string | undefined;

/**
 * Reads the fields of an object of a request within the bounds of their schemas. Each reader throws a `WebhookRefusal`
 * that names the field; those called `…IfGiven` return nothing for an absent field.
 */
export class FieldReader {
  readonly #object: JsonObject;
  readonly #schemas: SchemaProperties;
  readonly #prefix: string;

  /** Refuses every field without a schema. `prefix` comes before the names in refusals. */
  constructor(object: JsonObject, schemas: SchemaProperties, prefix = "") {
    this.#object = object;
    this.#schemas = schemas;
    this.#prefix = prefix;
    for (const name of Object.keys(object)) {
      if (Object.hasOwn(schemas, name)) continue;
      const known = Object.keys(schemas).join(", ");
      throw this.#invalid(name, `unknown; expected ${known === "" ? "no fields" : known}`);
    }
  }

  /** Whether a field is there and `null`. */
  isNull(name: string): boolean {
    return this.#read(name) === null;
  }

  text(name: string): string {
    return this.#required(name, this.textIfGiven(name));
  }

  textIfGiven(name: string): string | undefined {
    const { maxLength = MAX_TEXT_LENGTH } = this.#schema(name);
    const text = this.#parse(name, `a text of at most ${maxLength} characters`, (value) => {
      return typeof value === "string" && value.length <= maxLength ? value : undefined;
    });
    if (text === undefined || !CONTROLS.test(text)) return text;
    throw this.#invalid(name, "expected a text without control characters");
  }

  flagIfGiven(name: string): boolean | undefined {
    return this.#parse(name, "true or false", (value) => typeof value === "boolean" ? value : undefined);
  }

  wholeIfGiven(name: string): number | undefined {
    const { minimum: min = 0, maximum: max = Infinity } = this.#schema(name);
    return this.#parse(name, `an integer from ${min} to ${max}`, (value) => {
      // A number such as 5.0 keeps its digits.
      const number = isRawNumber(value) ? Number(stringifyJson(value)) : value;
      return Number.isInteger(number) && Number(number) >= min && Number(number) <= max
        ? Number(number)
        : undefined;
    });
  }

  choiceIfGiven<const T extends string>(name: string, choices: readonly T[]): T | undefined {
    const expected = `one of ${choices.join(", ")}`;
    return this.#parse(name, expected, (value) => choices.find((choice) => choice === value));
  }

  /** A list of texts, at least one, each once. */
  texts(name: string, problem: ItemProblem): readonly string[] {
    return this.#required(name, this.textsIfGiven(name, problem));
  }

  textsIfGiven(name: string, problem: ItemProblem): readonly string[] | undefined {
    const texts = this.#listIfGiven(name, "texts")?.map((item: JsonValue, index) => {
      const wrong = typeof item === "string" ? problem(item) : "expected a text";
      if (wrong === undefined) return String(item);
      throw this.#invalid(`${name}[${index}]`, wrong);
    });
    return texts && [...new Set(texts)];
  }

  object(name: string): JsonObject {
    return this.#required(name, this.objectIfGiven(name));
  }

  objectIfGiven(name: string): JsonObject | undefined {
    return this.#parse(name, "a JSON object", (value) => isJsonObject(value) ? value : undefined);
  }

  /** A list of objects, at least one. */
  objects(name: string): readonly JsonObject[] {
    const list = this.#required(name, this.#listIfGiven(name, "JSON objects"));
    if (list.every(isJsonObject)) return list;
    throw this.#invalid(name, "expected a list of JSON objects");
  }

  /** A duration such as `24h`, in milliseconds. */
  durationIfGiven(name: string, { maxMs }: { readonly maxMs: number }): number | undefined {
    return this.#parse(name, "a duration such as 30m or 24h, of at most 30 days", (value) => {
      const ms = typeof value === "string" ? parseDuration(value) : value === 0 ? 0 : undefined;
      return ms === undefined || ms > maxMs ? undefined : Math.round(ms);
    });
  }

  /** A time of RFC 3339, or a duration before `now`, in milliseconds since the Unix epoch. */
  moment(name: string, now: number): number {
    const expected = "a time such as 2026-01-31T12:00:00Z, or a duration such as 48h";
    const time = this.#parse(name, expected, (value) => {
      return typeof value === "string" ? parseMoment(value, now) : undefined;
    });
    return this.#required(name, time);
  }

  #schema(name: string): JsonSchema {
    return this.#schemas[name] ?? {};
  }

  #listIfGiven(name: string, items: string): readonly JsonValue[] | undefined {
    const { maxItems: max = Infinity } = this.#schema(name);
    return this.#parse(name, `a list of 1 to ${max} ${items}`, (value) => {
      return Array.isArray(value) && value.length > 0 && value.length <= max ? value : undefined;
    });
  }

  #parse<T>(name: string, expected: string, parse: (value: JsonValue) => T | undefined): T | undefined {
    const value = this.#read(name);
    const parsed = value === undefined ? undefined : parse(value);
    if (value !== undefined && parsed === undefined) throw this.#invalid(name, `expected ${expected}`);
    return parsed;
  }

  #read(name: string): JsonValue | undefined {
    return Object.hasOwn(this.#object, name) ? this.#object[name] : undefined;
  }

  #required<T>(name: string, value: T | undefined): T {
    if (value === undefined) throw this.#invalid(name, "it is required");
    return value;
  }

  #invalid(name: string, reason: string): Error {
    return invalidField(`${this.#prefix}${name}`, reason);
  }
}
