import { assertEquals, assertStringIncludes, assertThrows } from "#assert";
import { type HeaderField, HpackDecoder } from "../../../../src/grpc/native/hpack_decoder.ts";
import { dynamicTableOf } from "../../../harness/dynamic_table.ts";

const DATE = "Mon, 21 Oct 2013 20:13:21 GMT";
const LATER_DATE = "Mon, 21 Oct 2013 20:13:22 GMT";
const COOKIE = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
const AUTHORITY: HeaderField = [":authority", "www.example.com"];
const NO_CACHE: HeaderField = ["cache-control", "no-cache"];
const CUSTOM: HeaderField = ["custom-key", "custom-value"];
const PRIVATE: HeaderField = ["cache-control", "private"];
const LOCATION: HeaderField = ["location", "https://www.example.com"];

const REQUEST_FIELDS: readonly (readonly HeaderField[])[] = [
  [[":method", "GET"], [":scheme", "http"], [":path", "/"], AUTHORITY],
  [[":method", "GET"], [":scheme", "http"], [":path", "/"], AUTHORITY, NO_CACHE],
  [[":method", "GET"], [":scheme", "https"], [":path", "/index.html"], AUTHORITY, CUSTOM],
];
const REQUEST_TABLE: readonly HeaderField[] = [CUSTOM, NO_CACHE, AUTHORITY];
const RESPONSE_FIELDS: readonly (readonly HeaderField[])[] = [
  [[":status", "302"], PRIVATE, ["date", DATE], LOCATION],
  [[":status", "307"], PRIVATE, ["date", DATE], LOCATION],
  [[":status", "200"], PRIVATE, ["date", LATER_DATE], LOCATION, ["content-encoding", "gzip"], [
    "set-cookie",
    COOKIE,
  ]],
];
const RESPONSE_TABLE: readonly HeaderField[] = [["set-cookie", COOKIE], ["content-encoding", "gzip"], [
  "date",
  LATER_DATE,
]];

/** RFC 7541, appendix C: blocks that one decoder reads in turn, and its dynamic table after the last. */
const HPACK_EXAMPLES: readonly {
  readonly name: string;
  readonly tableSize?: number;
  readonly blocks: readonly string[];
  readonly fields: readonly (readonly HeaderField[])[];
  readonly table: readonly HeaderField[];
  readonly bytes: number;
}[] = [
  {
    name: "C.2.1 literal with indexing",
    blocks: ["400a637573746f6d2d6b65790d637573746f6d2d686561646572"],
    fields: [[["custom-key", "custom-header"]]],
    table: [["custom-key", "custom-header"]],
    bytes: 55,
  },
  {
    name: "C.2.2 literal without indexing",
    blocks: ["040c2f73616d706c652f70617468"],
    fields: [[[":path", "/sample/path"]]],
    table: [],
    bytes: 0,
  },
  {
    name: "C.2.3 literal never indexed",
    blocks: ["100870617373776f726406736563726574"],
    fields: [[["password", "secret"]]],
    table: [],
    bytes: 0,
  },
  { name: "C.2.4 indexed", blocks: ["82"], fields: [[[":method", "GET"]]], table: [], bytes: 0 },
  {
    name: "C.3 requests without Huffman",
    blocks: [
      "828684410f7777772e6578616d706c652e636f6d",
      "828684be58086e6f2d6361636865",
      "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ],
    fields: REQUEST_FIELDS,
    table: REQUEST_TABLE,
    bytes: 164,
  },
  {
    name: "C.4 requests with Huffman",
    blocks: [
      "828684418cf1e3c2e5f23a6ba0ab90f4ff",
      "828684be5886a8eb10649cbf",
      "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ],
    fields: REQUEST_FIELDS,
    table: REQUEST_TABLE,
    bytes: 164,
  },
  {
    name: "C.5 responses without Huffman, with eviction",
    tableSize: 256,
    blocks: [
      "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54" +
      "6e1768747470733a2f2f7777772e6578616d706c652e636f6d",
      "4803333037c1c0bf",
      "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153" +
      "444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
    ],
    fields: RESPONSE_FIELDS,
    table: RESPONSE_TABLE,
    bytes: 215,
  },
  {
    name: "C.6 responses with Huffman, with eviction",
    tableSize: 256,
    blocks: [
      "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
      "4883640effc1c0bf",
      "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960" +
      "d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    ],
    fields: RESPONSE_FIELDS,
    table: RESPONSE_TABLE,
    bytes: 215,
  },
  {
    name: "C.1.2 an integer of three bytes",
    tableSize: 1337,
    blocks: ["3f9a0a"],
    fields: [[]],
    table: [],
    bytes: 0,
  },
];

for (const example of HPACK_EXAMPLES) {
  Deno.test(`HpackDecoder: RFC 7541 ${example.name}`, () => {
    const decoder = new HpackDecoder(example.tableSize);
    const fields = example.blocks.map((block) => decoder.decode(Uint8Array.fromHex(block)));
    assertEquals(
      { fields, ...dynamicTableOf(decoder) },
      { fields: [...example.fields.map((list) => [...list])], table: example.table, bytes: example.bytes },
    );
  });
}

const BAD_BLOCKS: readonly (readonly [name: string, block: string, message: string])[] = [
  ["index 0", "80", "no table has the index 0"],
  ["index beyond the tables", "be", "no table has the index 62"],
  ["end in a field", "0f", "it ends in the middle of a field"],
  ["string beyond the block", "000161ff", "it ends in the middle of a field"],
  ["value cut off", "0001610562", "a string ends beyond the block"],
  ["integer too large", "ffffffffff0f", "an integer above 16777216"],
  ["integer that does not end", "ff8080808080", "an integer of too many bytes"],
  ["table above the limit", "3fe21f", "a table of 4097 bytes"],
  ["size after a field", "8220", "must come before the first field"],
  ["Huffman padding of zeros", "0001618118", "its padding must be fewer than 8 bits, all ones"],
  ["Huffman padding of 8 bits", "000161821fff", "its padding must be fewer than 8 bits, all ones"],
  ["Huffman end symbol", "00016184ffffffff", "it holds the end symbol"],
];

for (const [name, block, message] of BAD_BLOCKS) {
  Deno.test(`HpackDecoder: bad block: ${name}`, () => {
    const { message: thrown } = assertThrows(() => new HpackDecoder().decode(Uint8Array.fromHex(block)));
    assertStringIncludes(thrown, message);
  });
}

Deno.test("HpackDecoder: what a block unfolds to is bounded, and the table is kept for the next one", () => {
  const decoder = new HpackDecoder(4_096, 100);
  // One field into the table, then many times by its index: 80 bytes a time, each written as one.
  const fields = decoder.decode(
    Uint8Array.fromHex("40" + "01" + "61" + "2f" + "78".repeat(47) + "be".repeat(1_000)),
  );
  const first: HeaderField = ["a", "x".repeat(47)];
  assertEquals([fields, decoder.overflowed], [[first], true]);
  assertEquals([decoder.decode(Uint8Array.fromHex("be")), decoder.overflowed], [[first], false]);
});
