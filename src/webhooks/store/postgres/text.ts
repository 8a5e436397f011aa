import { type Parameter, storedText } from "../work.ts";

/** A statement as PostgreSQL takes it. */
interface PreparedText {
  readonly text: string;
  /** Absent where the server does not keep it. */
  readonly name: string | undefined;
}

// Statements are few, as parts of lists are combined from few parts; a server keeps them as long as the session.
const MAX_PREPARED = 500;

/** A quoted text or name, a comment, or a parameter. */
const PARTS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\?/g;

/** The prepared statements of a connection. */
export class PreparedTexts {
  readonly #texts = new Map<string, PreparedText>();

  /** The statement with `$1`, `$2` … and its name. */
  of(text: string): PreparedText {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    const isKept = this.#texts.size < MAX_PREPARED;
    const prepared = { text: numbered(text), name: isKept ? `weir_${this.#texts.size}` : undefined };
    if (isKept) this.#texts.set(text, prepared);
    return prepared;
  }
}

/** The text with `$1`, `$2` … for each `?`. */
export function numbered(text: string): string {
  let count = 0;
  return text.replace(PARTS, (part) => part === "?" ? `$${++count}` : part);
}

/** A parameter as the client takes it. */
export function boundValue(parameter: Parameter): unknown {
  if (typeof parameter === "string") return storedText(parameter);
  if (typeof parameter === "boolean") return Number(parameter);
  return Array.isArray(parameter) ? parameter.map(boundValue) : parameter;
}

/** The parser of a column of a type, by the number of the type in PostgreSQL. */
export function columnReader(type: number): (text: string) => string | number | Uint8Array {
  return READERS[type] ?? String;
}

const READERS: Readonly<Record<number, (text: string) => number | Uint8Array>> = {
  16: (text) => Number(text === "t"),
  17: (text) => Uint8Array.fromHex(text.slice("\\x".length)),
  20: (text) => {
    const number = Number(text);
    if (!Number.isSafeInteger(number)) throw new RangeError(`the number ${text} is not a safe integer`);
    return number;
  },
  21: Number,
  23: Number,
  26: Number,
  700: Number,
  701: Number,
};
