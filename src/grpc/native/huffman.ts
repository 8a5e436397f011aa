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

function buildTree(): Int16Array {
  const symbols = HUFFMAN_LENGTHS.map((length, symbol) => ({ length, symbol }))
    .sort((a, b) => a.length - b.length || a.symbol - b.symbol);
  const tree = new Int16Array(2 * HUFFMAN_LENGTHS.length);
  let nodes = 1;
  let code = 0;
  let codeLength = 0;
  for (const { length, symbol } of symbols) {
    code *= 2 ** (length - codeLength);
    codeLength = length;
    let node = 0;
    for (let shift = length - 1; shift > 0; shift--) {
      const at = 2 * node + ((code >>> shift) & 1);
      if (tree[at] === 0) tree[at] = nodes++;
      node = tree[at] ?? 0;
    }
    tree[2 * node + (code & 1)] = -1 - symbol;
    code++;
  }
  return tree;
}
