import { sha256OfText, shownText, startOfText } from "../../base/byte_text.ts";
import { byteLength } from "../../base/exact_json.ts";
import type { Entry } from "../request.ts";

/** Up to this size of their keys and values in UTF-8, entries are in keys and names as they are. */
const MAX_DESCRIPTOR_BYTES = 8_192;
/** Longest text that is in them as it is when all of them are larger. */
const MAX_TEXT_BYTES = 256;
/** The readable part of a longer one. */
const START_BYTES = 64;
const MAX_BYTES_PER_UNIT = 3;
/** Between the start of a text and its digest, which is hexadecimal. */
const MARK = "~sha256_";
const MARK_AND_DIGEST_LENGTH = MARK.length + 64;

/**
 * The entries as they are in cache keys, names of metrics and events: those of the descriptor, unless it is very large or
 * holds bytes that are not UTF-8. A text that is too long, or has such bytes, is its start and its SHA-256 there, so that
 * all of these are short and well-formed, and differ where the texts do. `counted` has the positions of the entries that
 * are in the cache key, absent for all: the size of the others is the choice of a client too, and must not lead the same
 * values to another counter.
 */
export function keyEntries(entries: readonly Entry[], counted?: readonly number[]): readonly Entry[] {
  let units = 0;
  let isPlain = true;
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index];
    if (entry === undefined) continue;
    const { key, value } = entry;
    units += key.length + value.length;
    if (isAlwaysHashed(value) || isAlwaysHashed(key)) isPlain = false;
  }
  const isLarge = units * MAX_BYTES_PER_UNIT > MAX_DESCRIPTOR_BYTES && isLargeTogether(entries);
  if (isPlain && !isLarge) return entries;
  const isCounterLarge = isLarge &&
    (counted === undefined || isLargeTogether(counted.flatMap((index) => entries[index] ?? [])));
  return entries.map(({ key, value }, index) => {
    const isShortened = counted?.includes(index) === false ? isLarge : isCounterLarge;
    return { key: keyText(key, isShortened), value: keyText(value, isShortened) };
  });
}

/** A text that names something in a counter, short and well-formed. */
export function nameText(text: string): string {
  return keyText(text, true);
}

/** True if a text of any length is hashed; one that ends as a hashed one does could be taken for it. */
function isAlwaysHashed(text: string): boolean {
  if (!text.isWellFormed()) return true;
  return text.length >= MARK_AND_DIGEST_LENGTH && text.startsWith(MARK, text.length - MARK_AND_DIGEST_LENGTH);
}

function keyText(text: string, isShortened: boolean): string {
  const isPlain = !isAlwaysHashed(text) && !(isShortened && byteLength(text) > MAX_TEXT_BYTES);
  return isPlain ? text : hashedText(text);
}

/** The start of a text and a digest, by default its own; no value of a request is such a text unless it is hashed itself. */
export function hashedText(text: string, hashed: string = text): string {
  return `${startOfText(shownStart(text), START_BYTES)}${MARK}${sha256OfText(hashed)}`;
}

/** Shows no more than is needed: a text may be as large as a message. */
function shownStart(text: string): string {
  return text.isWellFormed() ? text : shownText(text.slice(0, START_BYTES));
}

function isLargeTogether(entries: readonly Entry[]): boolean {
  const size = entries.reduce((sum, { key, value }) => sum + byteLength(key) + byteLength(value), 0);
  return size > MAX_DESCRIPTOR_BYTES;
}
