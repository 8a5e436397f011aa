import { assertEquals } from "@std/assert";
import { ConnectionError, FLAG, StreamError } from "../../../../src/grpc/native/frames.ts";
import { HeaderReader } from "../../../../src/grpc/native/header_reader.ts";
import { callFields, concatBytes, headerBlock, uint32 } from "../../../harness/h2_peer.ts";
import { Probe, probePath } from "../../../harness/probe.ts";

const METHODS = new Probe().methods;
const ECHO = headerBlock(callFields(probePath("Echo")));
const { END_HEADERS, END_STREAM, PADDED, PRIORITY } = FLAG;
/** `b3: 1` and `b3: 2`, each written into the table of the decoder. */
const REMEMBER_A = Uint8Array.fromHex("400262330131");
const REMEMBER_B = Uint8Array.fromHex("400262330132");

/** The code and text of what is thrown, with the stream where only that is concerned. */
function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof StreamError) return `stream ${error.streamId} ${error.code} ${error.message}`;
    if (error instanceof ConnectionError) return `${error.code} ${error.message}`;
    throw error;
  }
  return "";
}

Deno.test("HeaderReader: a block in one frame, in many, padded, with a priority", () => {
  const reader = new HeaderReader(METHODS);
  const pieces = [ECHO.subarray(0, 1), ECHO.subarray(1, 40), ECHO.subarray(40, 40), ECHO.subarray(40)];
  const frames: Readonly<Record<string, () => void>> = {
    "one frame": () => reader.blocks.begin(END_HEADERS, 1, ECHO),
    "the end of the stream": () => reader.blocks.begin(END_HEADERS | END_STREAM, 1, ECHO),
    "padded": () =>
      reader.blocks.begin(END_HEADERS | PADDED, 1, concatBytes(Uint8Array.of(2), ECHO, new Uint8Array(2))),
    "a priority": () =>
      reader.blocks.begin(END_HEADERS | PRIORITY, 1, concatBytes(uint32(3), Uint8Array.of(255), ECHO)),
    "four frames": () => {
      pieces.forEach((piece, index) => {
        const flags = index === pieces.length - 1 ? END_HEADERS : 0;
        // The octets of a frame are gone when the next one comes.
        const passing = piece.slice();
        if (index === 0) reader.blocks.begin(END_STREAM, 1, passing);
        else reader.blocks.continue(flags, 1, passing);
        passing.fill(0);
      });
    },
  };
  const found = Object.entries(frames).map(([name, send]) => {
    send();
    return [name, reader.blocks.isOpen, reader.blocks.endsStream, reader.head().path];
  });
  assertEquals(found, [
    ["one frame", false, false, "/test.Probe/Echo"],
    ["the end of the stream", false, true, "/test.Probe/Echo"],
    ["padded", false, false, "/test.Probe/Echo"],
    ["a priority", false, false, "/test.Probe/Echo"],
    ["four frames", false, true, "/test.Probe/Echo"],
  ]);
});

Deno.test("HeaderReader: what is no block", () => {
  const bad: Readonly<Record<string, (reader: HeaderReader) => void>> = {
    "a continuation of nothing": (reader) => reader.blocks.continue(END_HEADERS, 1, ECHO),
    "a continuation of another stream": (reader) => {
      reader.blocks.begin(0, 1, ECHO);
      reader.blocks.continue(END_HEADERS, 3, ECHO);
    },
    "258 continuations": (reader) => {
      reader.blocks.begin(0, 1, ECHO);
      for (let count = 0; count < 258; count++) reader.blocks.continue(0, 1, new Uint8Array(0));
    },
    "more than 1 MiB": (reader) => {
      reader.blocks.begin(0, 1, new Uint8Array(16_384));
      for (let count = 0; count < 63; count++) reader.blocks.continue(0, 1, new Uint8Array(16_384));
      reader.blocks.continue(0, 1, new Uint8Array(1));
    },
    "a field cut off": (reader) => {
      reader.blocks.begin(END_HEADERS, 1, ECHO.subarray(0, -1));
      reader.head();
    },
    "itself as its parent": (reader) => {
      reader.blocks.begin(END_HEADERS | PRIORITY, 5, concatBytes(uint32(5), Uint8Array.of(0), ECHO));
      reader.head();
    },
  };
  const found = Object.entries(bad).map((
    [name, run],
  ) => [name, refusal(() => run(new HeaderReader(METHODS)))]);
  assertEquals(found, [
    ["a continuation of nothing", "PROTOCOL_ERROR CONTINUATION without the beginning of its block"],
    ["a continuation of another stream", "PROTOCOL_ERROR CONTINUATION without the beginning of its block"],
    ["258 continuations", "ENHANCE_YOUR_CALM a header block is too long"],
    ["more than 1 MiB", "ENHANCE_YOUR_CALM a header block is too long"],
    [
      "a field cut off",
      `COMPRESSION_ERROR Cannot decode header block at byte "${ECHO.length}": a string ends beyond the block`,
    ],
    ["itself as its parent", "stream 5 PROTOCOL_ERROR a stream depends on itself"],
  ]);
});

/** The head of a block that comes in one frame. */
function headOf(reader: HeaderReader, block: Uint8Array): ReturnType<HeaderReader["head"]> {
  reader.blocks.begin(END_HEADERS, 1, block);
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
