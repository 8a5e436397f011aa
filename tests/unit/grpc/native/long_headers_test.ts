/** Header blocks that a proxy makes long by what its clients send. */
import { assertEquals } from "#assert";
import { HeaderReader } from "../../../../src/grpc/native/header_reader.ts";
import { FLAG } from "../../../../src/grpc/native/frames.ts";
import { LIMITS } from "../../../../src/grpc/native/limits.ts";
import { answer, ConnectionBed } from "../../../harness/connection_bed.ts";
import {
  blockFrames,
  call,
  callFields,
  concatBytes,
  content,
  headerBlock,
  hpackText,
  message,
} from "../../../harness/h2_peer.ts";
import { Probe, probePath } from "../../../harness/probe.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";
import { SOAK_SEED } from "../../../soak/soak_options.ts";

const { methods: METHODS } = new Probe();
const ECHO = callFields(probePath("Echo"));
const BLOCK = headerBlock(ECHO);
const PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const bytes = (hex: string): Uint8Array => Uint8Array.fromHex(hex);
const field = (name: string, value: string): Uint8Array => headerBlock([[name, value]]);
/** The same, meant for the table. */
const indexed = (name: string, value: string): Uint8Array =>
  concatBytes(bytes("40"), hpackText(name), hpackText(value));
/** A string of zeros in Huffman code, 5 bits each. */
const huffman = (length: number): Uint8Array => {
  const coded = new Uint8Array(Math.ceil(length * 5 / 8));
  const spare = coded.length * 8 - length * 5;
  if (spare > 0) coded[coded.length - 1] = (1 << spare) - 1;
  const head = hpackText("x".repeat(coded.length)).subarray(0, -coded.length);
  head[0] = (head[0] ?? 0) | 0x80;
  return concatBytes(head, coded);
};

/** Blocks that once were an error of the call, or of the connection. */
const LONG: Readonly<Record<string, Uint8Array>> = {
  "a tracestate of 20,000 bytes": field("tracestate", "a".repeat(20_000)),
  "a tracestate of 45,000 bytes": field("tracestate", "a".repeat(45_000)),
  "a tracestate of 1 MB": field("tracestate", "a".repeat(1_000_000)),
  "tracestate and baggage": concatBytes(
    field("tracestate", "a".repeat(30_000)),
    field("baggage", "b".repeat(30_000)),
  ),
  "in Huffman code": concatBytes(bytes("00"), hpackText("baggage"), huffman(200_000)),
  "meant for the table": indexed("tracestate", "a".repeat(45_000)),
  "a long name": field("x".repeat(45_000), "v"),
  "a long name and a long value": field("x".repeat(45_000), "v".repeat(45_000)),
  "10,000 fields": concatBytes(
    ...Array.from({ length: 10_000 }, (_, index) => field("baggage", `k=${index}`)),
  ),
  "10,000 fields for the table": concatBytes(
    ...Array.from({ length: 10_000 }, (_, index) => indexed("baggage", `k=${index}`)),
  ),
  "values that are no text": field("baggage", "\0\r\n\u{ff}".repeat(10_000)),
  "100,000 references to the table": concatBytes(indexed("b3", "0"), new Uint8Array(100_000).fill(0xbe)),
};

for (const [name, more] of Object.entries(LONG)) {
  Deno.test(`long headers: ${name}: the call is answered, and the next ones are`, () => {
    const bed = new ConnectionBed();
    const block = concatBytes(BLOCK, more);
    const lines: string[] = [];
    for (let id = 1; id < 40; id += 4) {
      lines.push(...bed.send(blockFrames(id, block), content(id, message("long"), true)));
      lines.push(...bed.send(call(id + 2, probePath("Echo"), "short")));
    }
    const expected = Array.from({ length: 20 }, (_, index) => {
      return answer(2 * index + 1, index % 2 === 0 ? "long" : "short");
    }).flat();
    assertEquals([lines, bed.connection.isClosing], [expected, false]);
    assertEquals(bed.longHeaders, Array.from({ length: 10 }, () => block.length));
  });
}

Deno.test("long headers: calls without a pause never end the connection, in frames of any size", () => {
  for (const [size, calls] of [[16_384, 100], [1_024, 30], [100, 5]] as const) {
    const bed = new ConnectionBed();
    const block = concatBytes(BLOCK, field("tracestate", "a".repeat(900_000)));
    for (let id = 1; id < 2 * calls; id += 2) {
      bed.send(blockFrames(id, block, size), content(id, message("x"), true));
    }
    assertEquals([size, bed.probe.calls, bed.connection.isClosing], [size, calls, false]);
  }
});

Deno.test("long headers: so do calls with long messages", () => {
  const bed = new ConnectionBed();
  const request = message(new Uint8Array(500_000));
  for (let id = 1; id < 600; id += 2) {
    bed.send(blockFrames(id, headerBlock(callFields(probePath("Size")))));
    for (let at = 0; at < request.length; at += 8_192) {
      bed.send(content(id, request.subarray(at, at + 8_192), at + 8_192 >= request.length));
    }
  }
  assertEquals([bed.probe.calls, bed.connection.isClosing], [300, false]);
});

Deno.test("long headers: the trace of a call is kept, whatever comes before it", () => {
  const cases: Readonly<Record<string, readonly Uint8Array[]>> = {
    "a long baggage": [field("baggage", "b".repeat(45_000))],
    "the table emptied": [indexed("x", "y"), indexed("baggage", "b".repeat(45_000))],
    "a long name": [field("x".repeat(45_000), "v")],
  };
  for (const [name, before] of Object.entries(cases)) {
    const { fields, path } = headOf(concatBytes(BLOCK, ...before, field("traceparent", PARENT)), 16_384);
    assertEquals([name, path, fields], [name, probePath("Echo"), [["traceparent", PARENT]]]);
  }
});

Deno.test("long headers: what is too long for a trace is dropped, or cut if it is in the table", () => {
  const [state, max] = ["a".repeat(2_000), LIMITS.headerTextBytes];
  const { fields } = headOf(concatBytes(BLOCK, field("tracestate", state), indexed("b3", state)), 16_384);
  assertEquals(fields.map(([name, value]) => [name, value.length]), [["b3", max]]);
});

/** The head of a block that comes in frames of this size. */
function headOf(block: Uint8Array, size: number, reader = new HeaderReader(METHODS)) {
  for (let at = 0; at < block.length; at += size) {
    const piece = block.slice(at, at + size);
    const flags = at + size >= block.length ? FLAG.END_HEADERS : 0;
    if (at === 0) reader.blocks.begin(flags, 1, piece);
    else reader.blocks.continue(flags, 1, piece);
    // The bytes of a frame are gone when the next one comes.
    if (flags === 0) piece.fill(0xff);
  }
  return reader.head();
}

Deno.test("long headers: split anywhere, as in the middle of an integer or a Huffman string", () => {
  const tail = [field("x-a", "1"), indexed("traceparent", PARENT), bytes("be")];
  const parts = [indexed("tracestate", "a=1"), indexed("x".repeat(300), "v"), ...tail];
  const coded = concatBytes(bytes("40"), hpackText("b3"), huffman(200));
  const block = concatBytes(BLOCK, coded, ...parts);
  const whole = headOf(block, Infinity);
  assertEquals(whole.fields.map(([name, value]) => [name, value.length]), [
    ["b3", 200],
    ["tracestate", 3],
    ["traceparent", 55],
    ["traceparent", 55],
  ]);
  for (let size = 4; size < block.length; size++) assertEquals([size, headOf(block, size)], [size, whole]);
});

Deno.test("long headers: two readers whose blocks are split in other ways keep the same table", () => {
  const random = seededRandom(7 + SOAK_SEED);
  const upTo = (limit: number): number => Math.floor(random() * limit);
  const lengths = [0, 1, 20, 126, 127, 300, 3_000, 5_000, 17_000, 40_000];
  const [one, other] = [new HeaderReader(METHODS), new HeaderReader(METHODS)];
  for (let round = 0; round < 300; round++) {
    const more = Array.from({ length: upTo(8) }, () => {
      const name = ["b3", "traceparent", "baggage", "x".repeat(upTo(20) + 1)][upTo(4)] ?? "";
      const value = "v".repeat(lengths[upTo(lengths.length)] ?? 0);
      return [field, indexed][upTo(2)]?.(name, value) ?? bytes("");
    });
    const references = [bytes("be"), bytes("bf"), bytes("c0")].filter(() => random() < 0.3);
    // A table that always has three entries.
    const filled = ["a", "b", "c"].map((name) => indexed(name, name));
    const block = concatBytes(BLOCK, ...more, ...filled, ...references);
    assertEquals(headOf(block, 300 + upTo(16_000), one), headOf(block, 100 + upTo(3_000), other));
  }
});
