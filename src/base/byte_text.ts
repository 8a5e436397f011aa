import { createHash } from "node:crypto";

// A text that came as bytes may hold bytes that are not UTF-8: each such byte is a lone surrogate, U+DC00 plus the
// byte, which UTF-8 cannot encode. So different bytes are different texts, and every text has its bytes.
const ESCAPED_BYTE = 0xdc00;
const FIRST_ESCAPED = ESCAPED_BYTE + 0x80;
const LAST_ESCAPED = ESCAPED_BYTE + 0xff;
const FIRST_SURROGATE = 0xd800;
const FIRST_LOW = 0xdc00;
const LAST_SURROGATE = 0xdfff;
const SHOWN_SURROGATES = new Array<string | undefined>(LAST_SURROGATE - FIRST_SURROGATE + 1).fill(undefined);
const ESCAPED_SURROGATES = [...SHOWN_SURROGATES];
const MAX_BYTES_PER_UNIT = 3;

const UTF8 = new TextEncoder();

/** The bytes of a text: those that are not UTF-8 as they came, all others as UTF-8. */
export function bytesOfText(text: string): Uint8Array<ArrayBuffer> {
  if (text.isWellFormed()) return UTF8.encode(text);
  const bytes = new Uint8Array(text.length * MAX_BYTES_PER_UNIT);
  let at = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.codePointAt(index) ?? 0;
    if (code > 0xffff) index++;
    at = writeCode(bytes, at, code);
  }
  return bytes.slice(0, at);
}

/** A text for people: bytes that are not UTF-8 as `\xff`, so that every display and every protocol can carry it. */
export function shownText(text: string): string {
  return text.isWellFormed() ? text : replaceSurrogates(text, SHOWN_SURROGATES, shownSurrogate);
}

/** The text of the same bytes that UTF-16 with lone surrogates stands for, as JSON escapes can make it. */
export function surrogatesAsBytes(text: string): string {
  return text.isWellFormed() ? text : replaceSurrogates(text, ESCAPED_SURROGATES, escapedSurrogate);
}

/** The first characters of a text that fit into so many bytes, as a copy: a slice would keep the whole text in memory. */
export function startOfText(text: string, maxBytes: number): string {
  const bytes = new Uint8Array(maxBytes);
  const { written } = UTF8.encodeInto(text.slice(0, maxBytes + 1), bytes);
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, written));
}

/** SHA-256 of the bytes of a text, in lower-case hex. */
export function sha256OfText(text: string): string {
  return createHash("sha256").update(text.isWellFormed() ? text : bytesOfText(text)).digest("hex");
}

/** Writes a code point and returns where it ends. */
function writeCode(bytes: Uint8Array, at: number, code: number): number {
  let end = at;
  if (code >= FIRST_ESCAPED && code <= LAST_ESCAPED) bytes[end++] = code - ESCAPED_BYTE;
  else if (code < 0x80) bytes[end++] = code;
  else {
    if (code < 0x800) bytes[end++] = 0xc0 | code >> 6;
    else {
      if (code < 0x1_0000) bytes[end++] = 0xe0 | code >> 12;
      else {
        bytes[end++] = 0xf0 | code >> 18;
        bytes[end++] = 0x80 | code >> 12 & 0x3f;
      }
      bytes[end++] = 0x80 | code >> 6 & 0x3f;
    }
    bytes[end++] = 0x80 | code & 0x3f;
  }
  return end;
}

/**
 * Replaces halves of pairs, in a loop: a client may send many, and an expression with a function takes ten times as long.
 * `known` has the replacements by `code - FIRST_SURROGATE` as far as they were needed.
 */
function replaceSurrogates(
  text: string,
  known: (string | undefined)[],
  replacementOf: (code: number) => string,
): string {
  let replaced = "";
  let copied = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < FIRST_SURROGATE || code > LAST_SURROGATE) continue;
    if (code < FIRST_LOW && isLow(text.charCodeAt(index + 1))) {
      index++;
      continue;
    }
    if (index > copied) replaced += text.slice(copied, index);
    replaced += known[code - FIRST_SURROGATE] ??= replacementOf(code);
    copied = index + 1;
  }
  return replaced + text.slice(copied);
}

/** False for NaN, as behind the end of a text. */
function isLow(code: number): boolean {
  return code >= FIRST_LOW && code <= LAST_SURROGATE;
}

function shownSurrogate(code: number): string {
  const isByte = code >= FIRST_ESCAPED && code <= LAST_ESCAPED;
  return (isByte ? [code - ESCAPED_BYTE] : surrogateBytes(code)).map((byte) => `\\x${byte.toString(16)}`)
    .join("");
}

function escapedSurrogate(code: number): string {
  return String.fromCharCode(...surrogateBytes(code).map((byte) => ESCAPED_BYTE + byte));
}

/** A surrogate in the form of UTF-8. */
function surrogateBytes(code: number): readonly number[] {
  return [0xe0 | code >> 12, 0x80 | code >> 6 & 0x3f, 0x80 | code & 0x3f];
}
