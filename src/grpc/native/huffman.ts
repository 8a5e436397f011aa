import { HUFFMAN_LENGTHS } from "./hpack_tables.ts";

const END_OF_STRING = 256;

/**
 * The code as a binary tree in one array: node n has its children at 2n and 2n + 1. Above 0 stands
 * the next node, below 0 a symbol s as -1 - s; node 0 is the root.
 */
const TREE = buildTree();

/** The text of a Huffman coded string, one character an octet (RFC 7541, section 5.2). */
export function decodeHuffman(bytes: Uint8Array): string {
  let text = "";
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
      text += String.fromCharCode(symbol);
      node = 0;
      unfinishedBits = 0;
      onesOnly = true;
    }
  }
  if (unfinishedBits > 7 || !onesOnly) {
    throw new RangeError("Cannot decode Huffman string: its padding must be fewer than 8 bits, all ones");
  }
  return text;
}

/**
 * Of the places of one depth, from left to right, the first are the symbols whose code is so long, and the others lead
 * on. Few enough turns that it is not worth an optimizing compiler, which takes 4 MB when it is first needed.
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
