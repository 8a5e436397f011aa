/**
 * The length of the Huffman code of each byte and of the end of string (RFC 7541, appendix B). The code is canonical:
 * codes count up by length, then by byte.
 */
// deno-fmt-ignore
const HUFFMAN_LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];

const END_OF_STRING = 256;
/** The shortest code has 5 bits. */
export const MAX_EXPANSION = 8 / 5;

/**
 * The code as a binary tree: node n has its children at 2n and 2n + 1. A positive value is the next node, a negative one
 * the symbol s as -1 - s; node 0 is the root.
 */
const TREE = buildTree();

/**
 * Decodes a Huffman coded string (RFC 7541, section 5.2) into a buffer that must be large enough: `MAX_EXPANSION` times
 * as large is. Returns the length.
 */
export function decodeHuffman(bytes: Uint8Array, into: Uint8Array): number {
  let length = 0;
  let node = 0;
  let unfinishedBits = 0;
  let onesOnly = true;
  for (const byte of bytes) {
    for (let shift = 7; shift >= 0; shift--) {
      const bit = (byte >> shift) & 1;
      const next = TREE[2 * node + bit] ?? 0;
      unfinishedBits++;
      if (bit === 0) onesOnly = false;
      if (next > 0) {
        node = next;
        continue;
      }
      const symbol = -1 - next;
      if (symbol === END_OF_STRING) {
        throw new RangeError("Cannot decode Huffman string: it holds the end symbol");
      }
      into[length++] = symbol;
      node = 0;
      unfinishedBits = 0;
      onesOnly = true;
    }
  }
  if (unfinishedBits > 7 || !onesOnly) {
    throw new RangeError("Cannot decode Huffman string: its padding must be fewer than 8 bits, all ones");
  }
  return length;
}

/**
 * Places of one depth from left to right: first the symbols with a code of that length, then inner nodes. Short loops,
 * because the optimizing compiler takes 4 MB when it is first needed.
 */
function buildTree(): Int16Array {
  const symbols = HUFFMAN_LENGTHS.map((length, symbol) => ({ length, symbol }))
    .sort((a, b) => a.length - b.length || a.symbol - b.symbol);
  const tree = new Int16Array(2 * HUFFMAN_LENGTHS.length);
  let nodes = 1;
  let known = 0;
  let places = [0, 1];
  for (let depth = 1; places.length > 0; depth++) {
    const below: number[] = [];
    for (const place of places) {
      const next = symbols[known];
      if (next?.length === depth) {
        tree[place] = -1 - next.symbol;
        known++;
      } else {
        tree[place] = nodes;
        below.push(2 * nodes, 2 * nodes + 1);
        nodes++;
      }
    }
    places = below;
  }
  return tree;
}
