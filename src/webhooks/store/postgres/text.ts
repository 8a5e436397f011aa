import { type Parameter, storedText } from "../work.ts";

/** A statement with the parameters as PostgreSQL counts them. */
export interface PreparedText {
  readonly text: string;
  /** What the server knows it by; absent where it is not to keep it. */
  readonly name: string | undefined;
}

// Texts are few, as parts of lists are put together from few parts; a server keeps what it is given until the end.
const MAX_PREPARED = 500;

/** A text in quotes, a name in quotes, a comment, or a parameter. */
const PARTS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\?/g;

/** Number and name of the statements of a connection, each made once. */
export class PreparedTexts {
  readonly #texts = new Map<string, PreparedText>();

  /** The statement as PostgreSQL takes it. */
  of(text: string): PreparedText {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    const isKept = this.#texts.size < MAX_PREPARED;
    const made = { text: numbered(text), name: isKept ? `weir_${this.#texts.size}` : undefined };
    if (isKept) this.#texts.set(text, made);
    return made;
  }
}

/** The text with `$1`, `$2` … for its parameters, which we write as `?`. */
export function numbered(text: string): string {
  let count = 0;
  return text.replace(PARTS, (part) => part === "?" ? `$${++count}` : part);
}

/** A parameter as the client takes it; what a receiver has answered may hold anything, and is written nevertheless. */
export function boundValue(parameter: Parameter): unknown {
  if (typeof parameter === "string") return storedText(parameter);
  if (typeof parameter === "boolean") return Number(parameter);
  if (!Array.isArray(parameter)) return parameter;
  return parameter.map((one: string | number) => typeof one === "string" ? storedText(one) : one);
}

/** Makes of a column's text what `Row` has; the numbers are those of the types in PostgreSQL. */
export function columnReader(type: number): (text: string) => string | number | Uint8Array {
  return READERS[type] ?? String;
}

const READERS: Readonly<Record<number, (text: string) => number | Uint8Array>> = {
  16: (text) => Number(text === "t"),
  17: octets,
  20: wholeNumber,
  21: Number,
  23: Number,
  26: Number,
  700: Number,
  701: Number,
};

function octets(text: string): Uint8Array {
  return Uint8Array.fromHex(text.slice("\\x".length));
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) {
    throw new RangeError(`the number ${text} is too large to be told exactly`);
  }
  return number;
}
