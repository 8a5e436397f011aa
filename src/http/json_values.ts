import { wholeNumber } from "./json_number.ts";
import type { JsonReader } from "./json_reader.ts";

/** Reads a text. */
export function readText(reader: JsonReader): string {
  const text = reader.string();
  if (text === undefined) throw reader.wrongKind("must be a string");
  // Half a surrogate pair has no UTF-8, so it would be another key in the cache than in the request.
  if (!text.isWellFormed()) throw reader.refusal("must be well-formed Unicode");
  return text;
}

/** Reads a truth value. */
export function readFlag(reader: JsonReader): boolean {
  if (reader.word("true")) return true;
  if (reader.word("false")) return false;
  throw reader.wrongKind("must be true or false");
}

/** Reads a whole number from 0 to `max`, written as a number or as a string. */
export function readCount(reader: JsonReader, max: number): number {
  const reason = `must be a whole number from 0 to ${max}`;
  const source = reader.number() ?? reader.string();
  if (source === undefined) throw reader.wrongKind(reason);
  const number = wholeNumber(source);
  if (number === undefined || number < 0 || number > max) throw reader.refusal(reason);
  return number + 0; // + 0 makes -0 a plain 0
}
