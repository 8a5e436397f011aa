import { assertEquals, assertThrows } from "#assert";
import { decodeStruct, encodeStruct, type WireStruct } from "../../../src/wire/struct.ts";
import { loadProtoRoot } from "../../harness/proto_root.ts";

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
    assertEquals(Uint8Array.from(codec.encode(codec.decode(bytes)).finish()).toHex(), bytes.toHex());
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
    assertEquals(decodeStruct(Uint8Array.fromHex(hex)), struct);
  });
}

Deno.test("a struct is written as deep as peers read, and no deeper", () => {
  const nested = (depth: number): WireStruct => depth === 0 ? { a: null } : { a: nested(depth - 1) };
  assertEquals(decodeStruct(encodeStruct(nested(32))), nested(32));
  assertEquals(
    assertThrows(() => encodeStruct(nested(33))).message,
    "Cannot write field 2: messages are nested more than 100 deep",
  );
});
