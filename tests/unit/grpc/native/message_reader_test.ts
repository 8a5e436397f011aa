import { assertEquals } from "#assert";
import { gzipSync } from "node:zlib";
import { GrpcError } from "../../../../src/grpc/grpc_service.ts";
import { MAX_MESSAGE_BYTES, MessageReader } from "../../../../src/grpc/native/message_reader.ts";
import { concatBytes, message, uint32 } from "../../../harness/h2_peer.ts";

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const gzipped = (body: Uint8Array): Uint8Array => message(new Uint8Array(gzipSync(body)), true);

/** Gives a reader bytes in pieces of one size; answers the messages. */
function inPieces(reader: MessageReader, stream: Uint8Array, size: number): Uint8Array[] {
  const messages: Uint8Array[] = [];
  for (let at = 0; at < stream.length; at += size) {
    // The bytes of a piece are gone when the next one comes.
    const piece = stream.slice(at, at + size);
    messages.push(...reader.read(piece).map((whole) => whole.slice()));
    piece.fill(0xff);
  }
  return messages;
}

Deno.test("MessageReader: pieces of every size make the same messages", () => {
  const stream = concatBytes(
    message("first"),
    message(""),
    gzipped(new TextEncoder().encode("second")),
    message("third"),
  );
  for (let size = 1; size <= stream.length; size++) {
    const reader = new MessageReader("gzip");
    const messages = inPieces(reader, stream, size).map(text);
    assertEquals([messages, reader.held], [["first", "", "second", "third"], 0], `pieces of ${size} bytes`);
  }
});

Deno.test("MessageReader: a large message in frames of the largest size, and one behind it", () => {
  const body = Uint8Array.from({ length: 1_000_000 }, (_, index) => index % 251);
  const reader = new MessageReader("");
  const messages = inPieces(reader, concatBytes(message(body), message("next")), 16_384);
  assertEquals([messages.length, messages[0]?.toHex() === body.toHex(), reader.held], [2, true, 0]);
});

Deno.test("MessageReader: what is held is counted", () => {
  const reader = new MessageReader("");
  const stream = message("0123456789");
  const held = [3, 5, 12, 15].map((end, index, ends) => {
    reader.read(stream.subarray(ends[index - 1] ?? 0, end));
    return reader.held;
  });
  assertEquals(held, [3, 5, 12, 0]);
});

const EXPANDED = "Received message that decompresses to a size larger than 4194304";
const REFUSED: readonly (readonly [name: string, encoding: string, stream: Uint8Array, refusal: string])[] = [
  ["the largest", "", message(new Uint8Array(MAX_MESSAGE_BYTES)), ""],
  [
    "one more, by its prefix alone",
    "",
    concatBytes(Uint8Array.of(0), uint32(MAX_MESSAGE_BYTES + 1)),
    "8 Received message larger than max (4194305 vs 4194304)",
  ],
  [
    "the largest prefix",
    "",
    concatBytes(Uint8Array.of(0), uint32(0xffffffff)),
    "8 Received message larger than max (4294967295 vs 4194304)",
  ],
  ["the largest, compressed", "gzip", gzipped(new Uint8Array(MAX_MESSAGE_BYTES)), ""],
  [
    "one more, compressed",
    "gzip",
    gzipped(new Uint8Array(MAX_MESSAGE_BYTES + 1)),
    `8 ${EXPANDED}`,
  ],
  ["a gzip bomb", "gzip", gzipped(new Uint8Array(200_000_000)), `8 ${EXPANDED}`],
  [
    "compressed, but not announced",
    "",
    message("x", true),
    "13 Cannot read a message: it is compressed, but grpc-encoding names no compression",
  ],
  [
    "compressed, but announced as identity",
    "identity",
    message("x", true),
    "13 Cannot read a message: it is compressed, but grpc-encoding names no compression",
  ],
  [
    "an unknown flag",
    "gzip",
    concatBytes(Uint8Array.of(2), uint32(0)),
    "13 Cannot read a message: its first byte is unknown",
  ],
  ["no gzip", "gzip", message("plain text", true), "13 Failed to decompress message"],
  [
    "half a gzip",
    "gzip",
    message(new Uint8Array(gzipSync("text")).subarray(0, 15), true),
    "13 Failed to decompress message",
  ],
  ["an empty gzip", "gzip", message("", true), "13 Failed to decompress message"],
];

Deno.test("MessageReader: what is too large or cannot be read", () => {
  const codes: Readonly<Record<string, number>> = { RESOURCE_EXHAUSTED: 8, INTERNAL: 13 };
  const found = REFUSED.map(([name, encoding, stream]) => {
    try {
      inPieces(new MessageReader(encoding), stream, 16_384);
      return [name, ""];
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      return [name, `${codes[error.code]} ${error.message}`];
    }
  });
  assertEquals(found, REFUSED.map(([name, , , refusal]) => [name, refusal]));
});
