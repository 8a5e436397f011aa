import { assertEquals, assertThrows } from "#assert";
import { WireReader } from "../../../src/wire/reader.ts";
import { readStructField, type WireStruct, writeStructField } from "../../../src/wire/struct.ts";
import { WireWriter } from "../../../src/wire/writer.ts";
import { loadProtoRoot } from "../../harness/proto_root.ts";

/** A message whose first field is a struct. */
function encodeStruct(struct: WireStruct): Uint8Array {
  const writer = new WireWriter();
  writeStructField(writer, 1, struct);
  return writer.finish();
}

function decodeStruct(bytes: Uint8Array): WireStruct {
  const reader = new WireReader(bytes, "Message");
  reader.next();
  return readStructField(reader);
}

/** The bytes of the struct alone. */
function contentOf(bytes: Uint8Array): Uint8Array {
  const reader = new WireReader(bytes, "Message");
  reader.next();
  return reader.bytes();
}

const BOTH_WAYS: readonly { name: string; struct: WireStruct }[] = [
  { name: "nothing", struct: {} },
  { name: "an empty key with an empty text", struct: { "": "" } },
  {
    name: "every kind of value",
    struct: { n: null, t: true, f: false, x: -1.5, z: 0, s: "é", l: [], m: {} },
  },
  {
    name: "numbers at the edge",
    struct: { a: -0, b: Infinity, c: -Infinity, d: NaN, e: 2 ** 53, f: 5e-324 },
  },
  {
    name: "lists in lists and structs in structs",
    struct: { a: [[1, [2]], { b: [{}] }], c: { d: { e: null } } },
  },
  { name: "names that objects have", struct: { constructor: "a", toString: 1, hasOwnProperty: null } },
  { name: "the name of the prototype", struct: JSON.parse('{"__proto__":{"a":1},"b":2}') },
  { name: "a text longer than one length byte", struct: { k: "x".repeat(300), y: ["y".repeat(20_000)] } },
];

for (const { name, struct } of BOTH_WAYS) {
  Deno.test(`a struct holds ${name}, both ways`, () => {
    const bytes = encodeStruct(struct);
    assertEquals(decodeStruct(bytes), struct);
    const codec = loadProtoRoot().lookupType("google.protobuf.Struct");
    const content = contentOf(bytes);
    assertEquals(Uint8Array.from(codec.encode(codec.decode(content)).finish()).toHex(), content.toHex());
  });
}

Deno.test("a struct is written in the order of the keys", () => {
  assertEquals(Object.keys(decodeStruct(encodeStruct({ z: 1, a: 2, m: 3 }))), ["z", "a", "m"]);
});

const MERGED: readonly (readonly [name: string, hex: string, struct: WireStruct])[] = [
  ["the last of two fields with one key", "0a070a0161120220010a070a016112022000", { a: false }],
  ["a value of no kind as null", "0a050a01611200", { a: null }],
  ["a field without value as null", "0a030a0161", { a: null }],
  ["the last of two kinds", "0a0c0a0161120720011a0378797a", { a: "xyz" }],
  ["a list that goes on", "0a110a0161120c32040a02200132040a022000", { a: [true, false] }],
  [
    "a struct that goes on",
    "0a1b0a016112162a090a070a0178120220012a090a070a017912022000",
    { a: { x: true, y: false } },
  ],
];

for (const [name, hex, struct] of MERGED) {
  Deno.test(`a struct is read with ${name}`, () => {
    const content = Uint8Array.fromHex(hex);
    assertEquals(decodeStruct(Uint8Array.of(0x0a, content.length, ...content)), struct);
  });
}

Deno.test("a struct is written as deep as peers read, and no deeper", () => {
  const nested = (depth: number): WireStruct => depth === 0 ? { a: null } : { a: nested(depth - 1) };
  assertEquals(decodeStruct(encodeStruct(nested(32))), nested(32));
  assertEquals(
    assertThrows(() => encodeStruct(nested(33))).message,
    "Cannot write field 1: messages are nested more than 100 deep",
  );
});
