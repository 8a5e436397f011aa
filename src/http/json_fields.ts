import { JsonNumber, wholeNumber } from "./json_number.ts";

const MAX_SHOWN_NAME = 64;

/** A JSON request that cannot be read: which field, and what would be right. */
export class JsonRequestError extends Error {
  override readonly name = "JsonRequestError";
  /** Path of the field, such as `descriptors[0].hitsAddend`; `body` for the whole text. */
  readonly field: string;
  readonly reason: string;

  constructor(field: string, reason: string, options?: ErrorOptions) {
    super(`Cannot read "${field}": ${reason}`, options);
    this.field = field;
    this.reason = reason;
  }
}

/** Both spellings of every field of a message, each with the name that paths and errors use. */
export type FieldNames = ReadonlyMap<string, string>;

/** The fields with these lowerCamelCase names; each may also be written in snake_case. */
export function fieldNames(...names: readonly string[]): FieldNames {
  const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return new Map(names.flatMap((name) => [[name, name], [snake(name), name]]));
}

/** One JSON object that stands for a message, its field names already checked. */
export class Fields {
  readonly #path: string;
  readonly #values = new Map<string, unknown>();

  /** `path` is where the object stands; empty for the whole request. */
  constructor(value: unknown, path: string, names: FieldNames) {
    this.#path = path;
    const where = path === "" ? "body" : path;
    if (!isObject(value)) throw new JsonRequestError(where, "must be an object");
    for (const [given, content] of Object.entries(value)) {
      const name = names.get(given);
      if (name === undefined) throw new JsonRequestError(this.path(shortened(given)), "unknown field");
      if (this.#values.has(name)) throw new JsonRequestError(this.path(name), "must be given only once");
      this.#values.set(name, content);
    }
  }

  /** Where the field with this name stands. */
  path(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }

  /** The value of a field; undefined when it is absent or null, which mean the same. */
  value(name: string): unknown {
    return this.#values.get(name) ?? undefined;
  }

  /** A text; empty when absent. */
  text(name: string): string {
    const value = this.value(name) ?? "";
    if (typeof value !== "string") throw new JsonRequestError(this.path(name), "must be a string");
    // Half a surrogate pair has no UTF-8, so it would be another key in the cache than in the request.
    if (!value.isWellFormed()) throw new JsonRequestError(this.path(name), "must be well-formed Unicode");
    return value;
  }

  /** A truth value; undefined when absent. */
  flag(name: string): boolean | undefined {
    const value = this.value(name);
    if (value === undefined || typeof value === "boolean") return value;
    throw new JsonRequestError(this.path(name), "must be true or false");
  }

  /** A whole number from 0 to `max`, written as a number or as a string; undefined when absent. */
  count(name: string, max: number): number | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    const source = value instanceof JsonNumber ? value.source : value;
    const number = typeof source === "string" ? wholeNumber(source) : undefined;
    if (number !== undefined && number >= 0 && number <= max) return number + 0; // + 0 makes -0 a plain 0
    throw new JsonRequestError(this.path(name), `must be a whole number from 0 to ${max}`);
  }

  /** The elements of a list, each with its path; none when absent. */
  list<T>(name: string, read: (element: unknown, path: string) => T): T[] {
    const value = this.value(name) ?? [];
    if (!Array.isArray(value)) throw new JsonRequestError(this.path(name), "must be a list");
    return value.map((element: unknown, index) => read(element, `${this.path(name)}[${index}]`));
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    !(value instanceof JsonNumber);
}

function shortened(name: string): string {
  return name.length <= MAX_SHOWN_NAME ? name : `${name.slice(0, MAX_SHOWN_NAME)}…`;
}
