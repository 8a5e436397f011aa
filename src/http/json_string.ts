const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const ESCAPED = '"\\/bfnrt';
const FOUR_HEX_DIGITS = /^[\da-fA-F]{4}$/;

/** Where a string ends, or where it goes wrong. */
export interface JsonStringEnd {
  /** Offset of the closing quote, or of the first thing that no JSON string may hold. */
  readonly end: number;
  readonly isWhole: boolean;
}

/** Finds the end of the JSON string whose first character, after the quote, is at `start`. */
export function endOfJsonString(text: string, start: number): JsonStringEnd {
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
