import { assertEquals } from "#assert";
import { FLAG } from "../../../../src/grpc/native/frames.ts";
import { HeaderReader } from "../../../../src/grpc/native/header_reader.ts";
import { callFields, concatBytes, headerBlock } from "../../../harness/h2_peer.ts";
import { Probe, probePath } from "../../../harness/probe.ts";

const METHODS = new Probe().methods;
const ECHO = headerBlock(callFields(probePath("Echo")));
/** `b3: 1` and `b3: 2`, each written into the table of the decoder. */
const REMEMBER_A = Uint8Array.fromHex("400262330131");
const REMEMBER_B = Uint8Array.fromHex("400262330132");

/** The head of a block that comes in one frame. */
function headOf(reader: HeaderReader, block: Uint8Array): ReturnType<HeaderReader["head"]> {
  reader.blocks.begin(FLAG.END_HEADERS, 1, block);
  return reader.head();
}

Deno.test("HeaderReader: equal blocks share one head, as long as the table stays as it was", () => {
  const reader = new HeaderReader(METHODS);
  const first = headOf(reader, ECHO);
  const same = headOf(reader, ECHO.slice());
  headOf(reader, concatBytes(ECHO, REMEMBER_A));
  const again = headOf(reader, ECHO);
  assertEquals([same === first, again === first, again.path], [true, false, first.path]);
});

Deno.test("HeaderReader: an index means what it means now, though the block is the same", () => {
  const reader = new HeaderReader(METHODS);
  const newest = concatBytes(ECHO, Uint8Array.of(0xbe));
  headOf(reader, concatBytes(ECHO, REMEMBER_A));
  const before = headOf(reader, newest).fields.at(-1);
  headOf(reader, concatBytes(ECHO, REMEMBER_B));
  assertEquals([before, headOf(reader, newest).fields.at(-1)], [["b3", "1"], ["b3", "2"]]);
});

Deno.test("HeaderReader: a block that changes the table changes it each time that it comes", () => {
  const reader = new HeaderReader(METHODS);
  const remember = concatBytes(ECHO, REMEMBER_A);
  headOf(reader, concatBytes(ECHO, REMEMBER_B));
  for (let count = 0; count < 3; count++) headOf(reader, remember);
  const { fields } = headOf(reader, concatBytes(ECHO, Uint8Array.of(0xbe, 0xbf, 0xc0, 0xc1)));
  assertEquals(fields.slice(-4), [["b3", "1"], ["b3", "1"], ["b3", "1"], ["b3", "2"]]);
});
