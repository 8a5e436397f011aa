import type { JsonReader } from "./json_reader.ts";

/** One field of a message: the name that paths and errors use, and how its value is read. */
export interface Field<T> {
  readonly name: string;
  /** Its own bit among the fields of its message. */
  readonly bit: number;
  /** Reads the value, which is not null, into `draft`. */
  readonly read: (reader: JsonReader, draft: T) => void;
}

/** The fields of a message by both spellings of their names. */
export type MessageFields<T> = ReadonlyMap<string, Field<T>>;

/**
 * The fields of a message, at most 31, by their lowerCamelCase names, each with what reads its value; each
 * may also be written in snake_case.
 */
export function messageFields<T>(
  readers: { readonly [K in keyof T]-?: (reader: JsonReader) => T[K] },
): MessageFields<T> {
  const names = Object.keys(readers) as (keyof T & string)[];
  return new Map(names.flatMap((name, index): [string, Field<T>][] => {
    const readValue = readers[name];
    const read = (reader: JsonReader, draft: T) => {
      draft[name] = readValue(reader);
    };
    const field = { name, bit: 1 << index, read };
    return [[name, field], [snakeCase(name), field]];
  }));
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
