import { WireReader } from "./reader.ts";
import { readStructField, type WireStruct, writeStructField } from "./struct.ts";
import { LENGTH, VARINT } from "./wire_format.ts";
import { WireWriter } from "./writer.ts";

/** One field of a message in both directions. */
interface Field<T> {
  /** `number << 3 | wire type`. */
  readonly tag: number;
  /** The value where the field is absent. */
  empty(): T;
  /** Reads one occurrence; lists and messages continue `before`, as protobuf merges them. */
  read(reader: WireReader, before: T): T;
  write(writer: WireWriter, value: T): void;
}

type NamedField = readonly [name: string, field: Field<unknown>];

/** A message type, read and written by a table of its fields in the order of writing. Not for the hot path. */
export class Message<T extends object> {
  readonly #name: string;
  readonly #fields: readonly NamedField[];
  readonly #byTag: ReadonlyMap<number, NamedField>;

  /** `name` is the name of the message in errors. */
  constructor(name: string, fields: { readonly [Name in keyof T]-?: Field<T[Name]> }) {
    this.#name = name;
    this.#fields = Object.entries(fields);
    this.#byTag = new Map(this.#fields.map((named) => [named[1].tag, named]));
  }

  /** Reads a message. */
  decode(bytes: Uint8Array): T {
    return this.#read(new WireReader(bytes, this.#name), undefined);
  }

  /** Writes a message. */
  encode(message: T): Uint8Array<ArrayBuffer> {
    const writer = new WireWriter();
    this.#write(writer, message);
    return writer.finish();
  }

  /** Reads a message that is the value of a field. */
  readField(reader: WireReader, before: T | undefined): T {
    reader.enter(this.#name);
    const message = this.#read(reader, before);
    reader.leave();
    return message;
  }

  /** Writes a message as the value of a field. */
  writeField(writer: WireWriter, number: number, message: T): void {
    const start = writer.begin(number);
    this.#write(writer, message);
    writer.end(start);
  }

  #read(reader: WireReader, before: T | undefined): T {
    const values = Object.fromEntries(this.#fields.map(([name, field]) => [name, field.empty()]));
    Object.assign(values, before);
    for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
      const named = this.#byTag.get(tag);
      if (named === undefined) reader.skip();
      else values[named[0]] = named[1].read(reader, values[named[0]]);
    }
    return values as T;
  }

  #write(writer: WireWriter, message: T): void {
    const values = message as Readonly<Record<string, unknown>>;
    for (const [name, field] of this.#fields) field.write(writer, values[name]);
  }
}

/** A text. */
export function stringField(number: number): Field<string> {
  return scalar(number, "string", "");
}

/** Bytes. */
export function bytesField(number: number): Field<Uint8Array> {
  return scalar<Uint8Array>(number, "bytes", new Uint8Array());
}

/** A boolean. */
export function boolField(number: number): Field<boolean> {
  return scalar(number, "bool", false);
}

/** An integer or, as `int32`, an enum. */
export function integerField(number: number, type: "int32" | "uint32" | "int64"): Field<number> {
  return scalar(number, type, 0);
}

/** A message, undefined where absent. */
export function messageField<T extends object>(number: number, type: Message<T>): Field<T | undefined> {
  return {
    tag: number << 3 | LENGTH,
    empty: () => undefined,
    read: (reader, before) => type.readField(reader, before),
    write: (writer, value) => value === undefined ? undefined : type.writeField(writer, number, value),
  };
}

/** A list of messages; `type` is a function because a message may contain messages of the same type. */
export function listField<T extends object>(number: number, type: () => Message<T>): Field<readonly T[]> {
  return {
    tag: number << 3 | LENGTH,
    empty: () => [],
    read: (reader, before) => appended(before, type().readField(reader, undefined)),
    write: (writer, items) => items.forEach((item) => type().writeField(writer, number, item)),
  };
}

/** A list of texts. */
export function stringsField(number: number): Field<readonly string[]> {
  return {
    tag: number << 3 | LENGTH,
    empty: () => [],
    read: (reader, before) => appended(before, reader.string()),
    write: (writer, items) => items.forEach((item) => writer.choiceString(number, item)),
  };
}

/** A `google.protobuf.Struct`, undefined where absent. */
export function structField(number: number): Field<WireStruct | undefined> {
  return {
    tag: number << 3 | LENGTH,
    empty: () => undefined,
    read: readStructField,
    write: (writer, value) => value === undefined ? undefined : writeStructField(writer, number, value),
  };
}

function scalar<T>(
  number: number,
  type: "string" | "bytes" | "bool" | "int32" | "uint32" | "int64",
  empty: T,
): Field<T> {
  return {
    tag: number << 3 | (type === "string" || type === "bytes" ? LENGTH : VARINT),
    empty: () => empty,
    read: (reader) => reader[type]() as T,
    write: (writer, value) => writer[type](number, value as never),
  };
}

/** Appends in place: `empty` has created the list for this message. */
function appended<T>(list: readonly T[], item: T): readonly T[] {
  (list as T[]).push(item);
  return list;
}
