/** The prefix of a literal without indexing (RFC 7541). */
const LITERAL_PREFIX_MAX = 15;
const STATUS_200 = 0x88;
/** The index of `:status` in the static table. */
export const INDEX_STATUS = 8;

/** A field of a block. */
export type Field = readonly [name: string | number, value: string];

/**
 * Literals without indexing and Huffman coding, so that a block is the same on every connection. A name may be its index
 * in the static table.
 */
export function literalBlock(fields: readonly Field[]): Uint8Array {
  const bytes: number[] = [];
  for (const [name, value] of fields) {
    if (name === INDEX_STATUS && value === "200") {
      bytes.push(STATUS_200);
      continue;
    }
    if (typeof name === "number") pushInteger(bytes, name, LITERAL_PREFIX_MAX);
    else {
      bytes.push(0);
      pushText(bytes, name);
    }
    pushText(bytes, value);
  }
  return Uint8Array.from(bytes);
}

/** Adds a string without Huffman coding; each character is a byte. */
export function pushText(bytes: number[], text: string): void {
  pushInteger(bytes, text.length, 127);
  for (let index = 0; index < text.length; index++) bytes.push(text.charCodeAt(index));
}

/** Adds an integer after the bits of `kind`, with a prefix that holds up to `prefixMax`. */
export function pushInteger(bytes: number[], value: number, prefixMax: number, kind = 0): void {
  if (value < prefixMax) {
    bytes.push(kind | value);
    return;
  }
  bytes.push(kind | prefixMax);
  let rest = value - prefixMax;
  while (rest >= 128) {
    bytes.push((rest & 127) | 128);
    rest >>>= 7;
  }
  bytes.push(rest);
}
