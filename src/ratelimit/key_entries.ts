import { sha256OfText, shownText, startOfText } from "../base/byte_text.ts";
import { byteLength } from "../base/exact_json.ts";
import type { Entry } from "./request.ts";

/** Up to this size of its keys and values in UTF-8, a descriptor is in keys and names as it is. */
const MAX_DESCRIPTOR_BYTES = 8_192;
/** Longest text that is in them as it is when its descriptor is larger. */
const MAX_TEXT_BYTES = 256;
/** How much of a longer one can be read. */
const START_BYTES = 64;
const MAX_BYTES_PER_UNIT = 3;

/**
 * The entries as they are in cache keys, names of metrics and events: those of the descriptor, unless it is very large or
 * holds bytes that are not UTF-8. A text that is too long, or has such bytes, is its start and its SHA-256 there, so that
 * all of these are short and well-formed, and differ where the texts do.
 */
export function keyEntries(entries: readonly Entry[]): readonly Entry[] {
  let units = 0;
  let isWellFormed = true;
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index];
    if (entry === undefined) continue;
    const { key, value } = entry;
    units += key.length + value.length;
    if (!value.isWellFormed() || !key.isWellFormed()) isWellFormed = false;
  }
  const isLarge = units * MAX_BYTES_PER_UNIT > MAX_DESCRIPTOR_BYTES &&
    sizeOfAll(entries) > MAX_DESCRIPTOR_BYTES;
  if (isWellFormed && !isLarge) return entries;
  return entries.map(({ key, value }) => ({ key: keyText(key, isLarge), value: keyText(value, isLarge) }));
}

function keyText(text: string, isLarge: boolean): string {
  const isPlain = text.isWellFormed() && !(isLarge && byteLength(text) > MAX_TEXT_BYTES);
  return isPlain ? text : `${startOfText(shownStart(text), START_BYTES)}~sha256_${sha256OfText(text)}`;
}

/** Shows no more than is needed: a text may be as large as a message. */
function shownStart(text: string): string {
  return text.isWellFormed() ? text : shownText(text.slice(0, START_BYTES));
}

function sizeOfAll(entries: readonly Entry[]): number {
  return entries.reduce((sum, { key, value }) => sum + byteLength(key) + byteLength(value), 0);
}
