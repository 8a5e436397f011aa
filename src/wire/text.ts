import { Buffer } from "node:buffer";

const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });
/** Replacement by the decoder for bytes that are not UTF-8; a text may hold it too. */
const REPLACEMENT = "\ufffd";
const ESCAPED_BYTE = 0xdc00;

/**
 * The text of bytes, which need not be UTF-8: each byte that is not part of a character becomes the lone surrogate
 * U+DC00 plus the byte, so that different bytes are different texts.
 */
export function decodeText(bytes: Uint8Array): string {
  const text = UTF8.decode(bytes);
  return text.includes(REPLACEMENT) ? decodeEach(bytes) : text;
}

function decodeEach(bytes: Uint8Array): string {
  const units = new Uint16Array(bytes.length);
  let used = 0;
  for (let at = 0; at < bytes.length;) {
    const first = bytes[at] ?? 0;
    const length = first < 0x80 ? 1 : characterLength(bytes, at, first);
    if (length <= 1) units[used++] = length === 0 ? ESCAPED_BYTE + first : first;
    else {
      let code = first & 0xff >> (length + 1);
      for (let index = 1; index < length; index++) code = code << 6 | (bytes[at + index] ?? 0) & 0x3f;
      if (code > 0xffff) {
        units[used++] = 0xd800 + (code - 0x1_0000 >> 10);
        code = 0xdc00 + (code & 0x3ff);
      }
      units[used++] = code;
    }
    at += Math.max(1, length);
  }
  // Keeps lone surrogates, which `TextDecoder` would replace.
  return Buffer.from(units.buffer, 0, used * 2).toString("utf16le");
}

/** The length of the character beyond ASCII that begins with this byte; 0 for none. */
function characterLength(bytes: Uint8Array, at: number, first: number): number {
  const length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length === 0 || at + length > bytes.length) return 0;
  const second = bytes[at + 1] ?? 0;
  // Others would encode a code point that has a shorter form, a surrogate, or nothing.
  const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const greatest = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > greatest) return 0;
  for (let index = 2; index < length; index++) {
    if (((bytes[at + index] ?? 0) & 0xc0) !== 0x80) return 0;
  }
  return length;
}
