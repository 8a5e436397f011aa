import type { WireReader } from "./reader.ts";
import { FIXED64, LENGTH, VARINT } from "./wire_format.ts";
import { WireWriter } from "./writer.ts";

/** A `google.protobuf.Value`. */
export type WireValue = null | boolean | number | string | readonly WireValue[] | WireStruct;
/** A `google.protobuf.Struct`. */
export interface WireStruct {
  readonly [key: string]: WireValue;
}

/** A struct that is being read. */
interface GrowingStruct {
  [key: string]: WireValue;
}

/** Reads a struct that is the value of a field; a second occurrence continues the first. */
export function readStructField(reader: WireReader, struct: GrowingStruct = {}): WireStruct {
  reader.enter("Struct");
  readStruct(reader, struct);
  reader.leave();
  return struct;
}

/** Writes a struct as the value of a field. */
export function writeStructField(writer: WireWriter, field: number, struct: WireStruct): void {
  const start = writer.begin(field);
  writeStruct(writer, struct);
  writer.end(start);
}

/** Writes a struct as a message. */
export function encodeStruct(struct: WireStruct): Uint8Array {
  const writer = new WireWriter();
  writeStruct(writer, struct);
  return writer.finish();
}

function readStruct(reader: WireReader, struct: GrowingStruct): void {
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH)) readField(reader, struct);
    else reader.skip();
  }
}

function writeStruct(writer: WireWriter, struct: WireStruct): void {
  for (const [key, value] of Object.entries(struct)) {
    const field = writer.begin(1);
    writer.choiceString(1, key);
    const start = writer.begin(2);
    writeValue(writer, value);
    writer.end(start);
    writer.end(field);
  }
}

function readField(reader: WireReader, struct: GrowingStruct): void {
  let key = "";
  let value: WireValue = null;
  for (const tag of reader.message("Struct.FieldsEntry")) {
    if (tag === (1 << 3 | LENGTH)) key = reader.string();
    else if (tag === (2 << 3 | LENGTH)) value = readValue(reader, value);
    else reader.skip();
  }
  // Assigning this name would set the prototype.
  if (key === "__proto__") {
    Object.defineProperty(struct, key, { value, writable: true, enumerable: true, configurable: true });
  } else struct[key] = value;
}

/** A second struct or list continues the first: protobuf merges them. */
function readValue(reader: WireReader, before: WireValue): WireValue {
  let value = before;
  for (const tag of reader.message("Value")) {
    switch (tag) {
      case 1 << 3 | VARINT:
        reader.int32();
        value = null;
        break;
      case 2 << 3 | FIXED64:
        value = reader.double();
        break;
      case 3 << 3 | LENGTH:
        value = reader.string();
        break;
      case 4 << 3 | VARINT:
        value = reader.bool();
        break;
      case 5 << 3 | LENGTH:
        value = readStructField(reader, isStruct(value) ? value : {});
        break;
      case 6 << 3 | LENGTH:
        value = readList(reader, isList(value) ? value : []);
        break;
      default:
        reader.skip();
    }
  }
  return value;
}

function readList(reader: WireReader, list: WireValue[]): WireValue[] {
  for (const tag of reader.message("ListValue")) {
    if (tag === (1 << 3 | LENGTH)) list.push(readValue(reader, null));
    else reader.skip();
  }
  return list;
}

function writeValue(writer: WireWriter, value: WireValue): void {
  if (value === null) return writer.choiceEnum(1, 0);
  if (typeof value === "number") return writer.choiceDouble(2, value);
  if (typeof value === "string") return writer.choiceString(3, value);
  if (typeof value === "boolean") return writer.choiceBool(4, value);
  const start = writer.begin(isStruct(value) ? 5 : 6);
  if (isStruct(value)) writeStruct(writer, value);
  else writeList(writer, value);
  writer.end(start);
}

function writeList(writer: WireWriter, list: readonly WireValue[]): void {
  for (const item of list) {
    const start = writer.begin(1);
    writeValue(writer, item);
    writer.end(start);
  }
}

function isList(value: WireValue): value is WireValue[] {
  return Array.isArray(value);
}

function isStruct(value: WireValue): value is WireStruct {
  return typeof value === "object" && value !== null && !isList(value);
}
