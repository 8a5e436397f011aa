import { shownText, surrogatesAsBytes } from "../../base/byte_text.ts";

/** A field of a message; paths and errors show its name. */
interface Field<T> {
  readonly name: string;
  /** Its bit in the set of seen fields. */
  readonly bit: number;
  /** Reads a value other than null into `draft`. */
  readonly read: (reader: JsonReader, draft: T) => void;
}

/** The fields of a message by both spellings of their names. */
export type MessageFields<T> = ReadonlyMap<string, Field<T>>;

const MAX_SHOWN_NAME = 64;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const ESCAPED = '"\\/bfnrt';
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;
const FOUR_HEX_DIGITS = /^[\da-fA-F]{4}$/;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const VALUE_START = /["{[]|-?\d|true|false|null/y;

/** A JSON request that cannot be read. */
export class JsonRequestError extends Error {
  override readonly name = "JsonRequestError";
  /** Path of the field, such as `descriptors[0].hitsAddend`; `body` for the whole text. */
  readonly field: string;
  readonly reason: string;
  /** The place where reading stopped, in UTF-16 code units. */
  readonly offset: number;

  constructor(field: string, reason: string, { offset }: { readonly offset: number }) {
    super(`Cannot read "${field}": ${reason}`);
    this.field = field;
    this.reason = reason;
    this.offset = offset;
  }
}

/**
 * Reads one JSON text (RFC 8259) from front to back into known messages; throws a `JsonRequestError` at the first
 * mistake. Only known fields are read, so that the fields bound the work, and the messages the depth.
 */
export class JsonReader {
  readonly #text: string;
  /** The path of the current value. */
  readonly #path: (string | number)[] = [];
  #offset = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** True when only white space is left. */
  atEnd(): boolean {
    this.#skipSpace();
    return this.#offset >= this.#text.length;
  }

  /**
   * Reads an object into `draft` and returns it. Absent and null fields do not change it; unknown and repeated ones
   * throw.
   */
  message<T>(fields: MessageFields<T>, draft: T): T {
    if (!this.#take("{")) throw this.wrongKind("must be an object");
    if (this.#take("}")) return draft;
    let given = 0;
    do {
      const field = this.#field(fields);
      this.#path.push(field.name);
      if ((given & field.bit) !== 0) throw this.refusal("must be given only once");
      given |= field.bit;
      if (!this.word("null")) field.read(this, draft);
      this.#path.pop();
    } while (this.#take(","));
    this.#expect("}");
    return draft;
  }

  /** Reads a list; of the elements beyond `most`, it reads the first and skips the rest. */
  list<T>(most: number, read: (reader: JsonReader) => T): T[] {
    if (!this.#take("[")) throw this.wrongKind("must be a list");
    const elements: T[] = [];
    if (this.#take("]")) return elements;
    do {
      this.#path.push(elements.length);
      elements.push(read(this));
      this.#path.pop();
      if (elements.length > most) this.#passOver();
    } while (this.#take(","));
    this.#expect("]");
    return elements;
  }

  /** Reads this word, if it is next. */
  word(word: "null" | "true" | "false"): boolean {
    this.#skipSpace();
    if (!this.#text.startsWith(word, this.#offset)) return false;
    this.#offset += word.length;
    return true;
  }

  /** The text of the next number; undefined for another value. */
  number(): string | undefined {
    this.#skipSpace();
    NUMBER.lastIndex = this.#offset;
    const source = NUMBER.exec(this.#text)?.[0];
    this.#offset += source?.length ?? 0;
    return source;
  }

  /** The next string, whose bytes need not be UTF-8 (see `decodeText`); undefined for another value. */
  string(): string | undefined {
    if (!this.#take('"')) return undefined;
    const start = this.#offset;
    const { end, isWhole } = endOfJsonString(this.#text, start);
    this.#offset = end;
    if (!isWhole) throw this.#malformed();
    this.#offset++;
    return stringOf(this.#text.slice(start, end));
  }

  /** The error for a wrong value. */
  refusal(reason: string): JsonRequestError {
    return new JsonRequestError(this.#where(), reason, { offset: this.#offset });
  }

  /** The error for a value of another kind, or for malformed text. */
  wrongKind(reason: string): JsonRequestError {
    this.#skipSpace();
    VALUE_START.lastIndex = this.#offset;
    return VALUE_START.test(this.#text) ? this.refusal(reason) : this.#malformed();
  }

  /** Throws when something is left. */
  end(): void {
    if (!this.atEnd()) throw this.#malformed();
  }

  #field<T>(fields: MessageFields<T>): Field<T> {
    const name = this.string();
    if (name === undefined) throw this.#malformed();
    this.#expect(":");
    const field = fields.get(name);
    if (field !== undefined) return field;
    const isShort = name.length <= MAX_SHOWN_NAME;
    this.#path.push(shownText(isShort ? name : `${name.slice(0, MAX_SHOWN_NAME)}…`));
    throw this.refusal("unknown field");
  }

  /** Skips to the end of the list; only strings and brackets matter. */
  #passOver(): void {
    let depth = 0;
    for (; this.#offset < this.#text.length; this.#offset++) {
      const char = this.#text[this.#offset];
      if (char === '"') this.#offset = endOfJsonString(this.#text, this.#offset + 1).end;
      else if (char === "[" || char === "{") depth++;
      else if ((char === "]" || char === "}") && depth-- === 0) return;
    }
  }

  #take(char: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#offset] !== char) return false;
    this.#offset++;
    return true;
  }

  #expect(char: string): void {
    if (!this.#take(char)) throw this.#malformed();
  }

  #skipSpace(): void {
    for (;; this.#offset++) {
      const char = this.#text[this.#offset];
      if (char !== " " && char !== "\n" && char !== "\r" && char !== "\t") return;
    }
  }

  #malformed(): JsonRequestError {
    let line = 1;
    let lineStart = 0;
    for (let at = 0; at < this.#offset; at++) {
      if (this.#text[at] !== "\n") continue;
      line++;
      lineStart = at + 1;
    }
    const reason = `not valid JSON at line ${line} column ${this.#offset - lineStart + 1}`;
    return new JsonRequestError("body", reason, { offset: this.#offset });
  }

  #where(): string {
    if (this.#path.length === 0) return "body";
    return this.#path.map((step) => typeof step === "number" ? `[${step}]` : `.${step}`).join("").slice(1);
  }
}

/** The fields of a message, at most 31, by their names in lowerCamelCase and in snake_case. */
export function messageFields<T>(
  readers: { readonly [K in keyof T]-?: (reader: JsonReader) => T[K] },
): MessageFields<T> {
  const names = Object.keys(readers) as (keyof T & string)[];
  return new Map(names.flatMap((name, index): [string, Field<T>][] => {
    const readValue = readers[name];
    const read = (reader: JsonReader, draft: T) => {
      draft[name] = readValue(reader);
    };
    const field = { name, bit: 1 << index, read };
    return [[name, field], [snakeCase(name), field]];
  }));
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * The string with this text between its quotes. Bytes that are not UTF-8 stay what they are, also where an escape in
 * front of one is half a surrogate pair; escapes of half a pair are the bytes that they would be in UTF-8.
 */
function stringOf(source: string): string {
  // `JSON.parse` decodes escapes, and copies: a slice would keep the whole text in memory.
  const parsed = (part: string) => surrogatesAsBytes(JSON.parse(`"${part}"`));
  if (source.isWellFormed()) return parsed(source);
  // Parsing between all bytes that are not UTF-8, which may be many, is slow.
  if (!ESCAPED_SURROGATE.test(source)) return JSON.parse(`"${source}"`);
  return source.split(/([\ud800-\udfff]+)/u).map((part, index) => index % 2 === 0 ? parsed(part) : part).join(
    "",
  );
}

/** The end of a string, or its first mistake. */
interface JsonStringEnd {
  readonly end: number;
  readonly isWhole: boolean;
}

/** Finds the end of the JSON string whose first character, after the quote, is at `start`. */
function endOfJsonString(text: string, start: number): JsonStringEnd {
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return { end: at, isWhole: true };
    if (code < SPACE) break;
    const length = code === BACKSLASH ? escapeLength(text, at) : 1;
    if (length === 0) break;
    at += length;
  }
  return { end: at, isWhole: false };
}

/** Length of the escape at `at`; 0 when it is none. */
function escapeLength(text: string, at: number): number {
  const letter = text[at + 1] ?? "";
  if (letter === "u") return FOUR_HEX_DIGITS.test(text.slice(at + 2, at + 6)) ? 6 : 0;
  return letter !== "" && ESCAPED.includes(letter) ? 2 : 0;
}
