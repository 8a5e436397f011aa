import { parseDuration } from "../../base/duration.ts";
import { isRawNumber, type JsonObject, type JsonValue } from "../../base/exact_json.ts";
import { invalidField } from "./problem.ts";
import { parseMoment } from "../../base/rfc3339.ts";

/** They would steer a terminal or break a line where the text is shown, and the store ends a text at a NUL. */
// deno-lint-ignore no-control-regex
const CONTROLS = /[\0-\x1f\x7f-\x9f]/;

/** Bounds of a number. */
export interface WholeRange {
  readonly min: number;
  readonly max: number;
}

/** Bounds of a list. */
export interface ListBounds {
  readonly max: number;
  /** What is wrong with an item; nothing when it is good. */
  readonly problem: (item: string) => string | undefined;
}

/**
 * Reads the fields of an object that came in. Each reader throws a `WebhookRefusal` that names the field; those called
 * `…IfGiven` answer nothing for a field that is not there.
 */
export class FieldReader {
  readonly #object: JsonObject;
  readonly #prefix: string;

  /** Refuses every field that is not known. `prefix` stands before the names that refusals give. */
  constructor(object: JsonObject, known: readonly string[], prefix = "") {
    this.#object = object;
    this.#prefix = prefix;
    for (const name of Object.keys(object)) {
      if (known.includes(name)) continue;
      const good = known.length === 0 ? "no field is wanted" : `${known.join(", ")} would be`;
      throw this.#invalid(name, `it is not known; ${good}`);
    }
  }

  /** Whether a field is there and `null`. */
  isNull(name: string): boolean {
    return this.#read(name) === null;
  }

  text(name: string, { maxLength = 1_024 } = {}): string {
    return this.#wanted(name, this.textIfGiven(name, { maxLength }));
  }

  textIfGiven(name: string, { maxLength = 1_024 } = {}): string | undefined {
    const value = this.#read(name);
    if (value === undefined) return undefined;
    if (typeof value !== "string" || value.length > maxLength) {
      throw this.#invalid(name, `a text of at most ${maxLength} characters is wanted`);
    }
    if (!CONTROLS.test(value)) return value;
    throw this.#invalid(name, "a text without control characters is wanted");
  }

  flagIfGiven(name: string): boolean | undefined {
    const value = this.#read(name);
    if (value === undefined || typeof value === "boolean") return value;
    throw this.#invalid(name, "true or false is wanted");
  }

  wholeIfGiven(name: string, { min, max }: WholeRange): number | undefined {
    const value = this.#read(name);
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
    throw this.#invalid(name, `a whole number from ${min} to ${max} is wanted`);
  }

  choiceIfGiven<const T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.#read(name);
    if (value === undefined) return undefined;
    const choice = choices.find((one) => one === value);
    if (choice !== undefined) return choice;
    throw this.#invalid(name, `one of ${choices.join(", ")} is wanted`);
  }

  /** A list of texts, at least one, each once. */
  textsIfGiven(name: string, { max, problem }: ListBounds): readonly string[] | undefined {
    const value = this.#read(name);
    if (value === undefined) return undefined;
    if (!Array.isArray(value) || value.length === 0 || value.length > max) {
      throw this.#invalid(name, `a list of 1 to ${max} texts is wanted`);
    }
    const texts = value.map((item: JsonValue, index) => {
      const wrong = typeof item === "string" ? problem(item) : "a text is wanted";
      if (wrong === undefined) return String(item);
      throw this.#invalid(`${name}[${index}]`, wrong);
    });
    return [...new Set(texts)];
  }

  texts(name: string, bounds: ListBounds): readonly string[] {
    return this.#wanted(name, this.textsIfGiven(name, bounds));
  }

  object(name: string): JsonObject {
    return this.#wanted(name, this.objectIfGiven(name));
  }

  objectIfGiven(name: string): JsonObject | undefined {
    const value = this.#read(name);
    if (value === undefined) return undefined;
    if (isObject(value)) return value;
    throw this.#invalid(name, "a JSON object is wanted");
  }

  /** Items that are objects. */
  objects(name: string, { max }: { readonly max: number }): readonly JsonObject[] {
    const value = this.#wanted(name, this.#read(name));
    if (Array.isArray(value) && value.length > 0 && value.length <= max && value.every(isObject)) {
      return value;
    }
    throw this.#invalid(name, `a list of 1 to ${max} JSON objects is wanted`);
  }

  /** A duration such as `24h`, in milliseconds. */
  durationIfGiven(name: string, { maxMs }: { readonly maxMs: number }): number | undefined {
    const value = this.#read(name);
    if (value === undefined) return undefined;
    const ms = typeof value === "string" ? parseDuration(value) : value === 0 ? 0 : undefined;
    if (ms !== undefined && ms <= maxMs) return Math.round(ms);
    throw this.#invalid(name, "a duration such as 30m or 24h is wanted, of at most 30 days");
  }

  /** A time of RFC 3339, or a duration before `now`, in milliseconds since the Unix epoch. */
  moment(name: string, now: number): number {
    const value = this.#wanted(name, this.#read(name));
    const time = typeof value === "string" ? parseMoment(value, now) : undefined;
    if (time !== undefined) return time;
    throw this.#invalid(name, "expected a time such as 2026-01-31T12:00:00Z, or a duration such as 48h");
  }

  #invalid(name: string, wanted: string): Error {
    return invalidField(`${this.#prefix}${name}`, wanted);
  }

  #read(name: string): JsonValue | undefined {
    return Object.hasOwn(this.#object, name) ? this.#object[name] : undefined;
  }

  #wanted<T>(name: string, value: T | undefined): T {
    if (value === undefined) throw this.#invalid(name, "it is wanted");
    return value;
  }
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawNumber(value);
}
