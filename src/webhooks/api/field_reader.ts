import { parseDuration } from "../../base/duration.ts";
import {
  isRawNumber,
  type JsonObject,
  type JsonValue,
  nestingProblem,
  parseJson,
} from "../../base/exact_json.ts";
import { parseMoment } from "../../base/rfc3339.ts";
import { invalidField, refusal, type WebhookRefusal } from "./problem.ts";

/** How deep the body of a call may be nested. */
export const MAX_NESTING = 64;
/** They would steer a terminal or break a line where the text is shown, and the store ends a text at a NUL. */
// deno-lint-ignore no-control-regex
const CONTROLS = /[\0-\x1f\x7f-\x9f]/;

/** Bounds of a list of texts. */
export interface ListBounds {
  readonly max: number;
  /** What is wrong with an item; nothing when it is good. */
  readonly problem: (item: string) => string | undefined;
}

/**
 * The object of a body, its numbers with every digit. Throws a `WebhookRefusal`: 400 for what is not JSON, 422 for what
 * is not an object or nested too deep.
 */
export function jsonObjectOf(body: string): JsonObject {
  let value: JsonValue;
  try {
    value = JSON.parse(body);
  } catch {
    throw badBody(400, "malformed_json", body === "" ? "it is empty" : "it is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw badBody(422, "not_an_object", "expected a JSON object");
  }
  // The parser of the runtime accepts any depth.
  const problem = nestingProblem(body, MAX_NESTING);
  if (problem !== undefined) throw badBody(422, "too_deep", `nested deeper than ${MAX_NESTING}`);
  return parseJson(body, value) as JsonObject;
}

function badBody(status: number, code: string, state: string): WebhookRefusal {
  return refusal(status, code, `Cannot read the body: ${state}`, { field: "body" });
}

/**
 * Reads the fields of an object of a request. Each reader throws a `WebhookRefusal` that names the field; those called
 * `…IfGiven` return nothing for an absent field.
 */
export class FieldReader {
  readonly #object: JsonObject;
  readonly #prefix: string;

  /** Refuses every field that is not known. `prefix` comes before the names in refusals. */
  constructor(object: JsonObject, known: readonly string[], prefix = "") {
    this.#object = object;
    this.#prefix = prefix;
    for (const name of Object.keys(object)) {
      if (known.includes(name)) continue;
      throw this.#invalid(name, `unknown; expected ${known.length === 0 ? "no fields" : known.join(", ")}`);
    }
  }

  /** Whether a field is there and `null`. */
  isNull(name: string): boolean {
    return this.#read(name) === null;
  }

  text(name: string, options: { readonly maxLength?: number } = {}): string {
    return this.#required(name, this.textIfGiven(name, options));
  }

  textIfGiven(name: string, { maxLength = 1_024 } = {}): string | undefined {
    const text = this.#parse(name, `a text of at most ${maxLength} characters`, (value) => {
      return typeof value === "string" && value.length <= maxLength ? value : undefined;
    });
    if (text === undefined || !CONTROLS.test(text)) return text;
    throw this.#invalid(name, "expected a text without control characters");
  }

  flagIfGiven(name: string): boolean | undefined {
    return this.#parse(name, "true or false", (value) => typeof value === "boolean" ? value : undefined);
  }

  wholeIfGiven(
    name: string,
    { min, max }: { readonly min: number; readonly max: number },
  ): number | undefined {
    return this.#parse(name, `an integer from ${min} to ${max}`, (value) => {
      return Number.isInteger(value) && Number(value) >= min && Number(value) <= max
        ? Number(value)
        : undefined;
    });
  }

  choiceIfGiven<const T extends string>(name: string, choices: readonly T[]): T | undefined {
    const expected = `one of ${choices.join(", ")}`;
    return this.#parse(name, expected, (value) => choices.find((choice) => choice === value));
  }

  /** A list of texts, at least one, each once. */
  texts(name: string, bounds: ListBounds): readonly string[] {
    return this.#required(name, this.textsIfGiven(name, bounds));
  }

  textsIfGiven(name: string, { max, problem }: ListBounds): readonly string[] | undefined {
    const texts = this.#listIfGiven(name, max, "texts")?.map((item: JsonValue, index) => {
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
    return this.#parse(name, "a JSON object", (value) => isObject(value) ? value : undefined);
  }

  /** A list of objects, at least one. */
  objects(name: string, max: number): readonly JsonObject[] {
    const list = this.#required(name, this.#listIfGiven(name, max, "JSON objects"));
    if (list.every(isObject)) return list;
    throw this.#invalid(name, `expected a list of 1 to ${max} JSON objects`);
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

  #listIfGiven(name: string, max: number, items: string): readonly JsonValue[] | undefined {
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

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawNumber(value);
}
