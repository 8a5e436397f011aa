import { assertEquals } from "#assert";
import { FLAG, FRAME, SETTING } from "../../../../src/grpc/native/frames.ts";
import {
  answerHeaders,
  answerTrailers,
  CALL_PATH,
  ClientBed,
  fieldsOf,
  outcomeOf,
  PING,
  wholeAnswer,
} from "../../../harness/client_bed.ts";
import {
  blockFrames,
  concatBytes,
  content,
  frame,
  headerBlock,
  headers,
  hpackText,
  message,
  repeated,
  uint32,
  windowUpdate,
} from "../../../harness/h2_peer.ts";

const NO_BYTES = new Uint8Array(0);
const zeros = (length: number): Uint8Array => new Uint8Array(length);
const setting = (identifier: number, value: number): Uint8Array =>
  frame(FRAME.SETTINGS, 0, concatBytes(Uint8Array.of(0, identifier), uint32(value)));
const reset = (id: number): Uint8Array => frame(FRAME.RST_STREAM, id, uint32(8));
const early = headers(1, fieldsOf({ ":status": "103" }));
const broke = (text: string): string => `UNAVAILABLE: the server broke HTTP/2: ${text}`;
const NOISE = broke("too many frames that carry nothing");
const idle = (what: string, id: number): string =>
  broke(`${what} on stream ${id}, which the client did not open`);
const malformed = (text: string): string => `INTERNAL: the server broke HTTP/2: ${text}`;

/** A large entry of the table, and a block that names it many times. */
const bombEntry = concatBytes(Uint8Array.of(0x40), hpackText("x"), hpackText("y".repeat(4_000)));
const bomb = concatBytes(
  headerBlock(fieldsOf({ ":status": "200" })),
  bombEntry,
  repeated(16_000, Uint8Array.of(0xbe)),
);
const wide = headerBlock(Array.from({ length: 10_000 }, (_, index) => [`name-${index}`, "value"] as const));

interface Attack {
  readonly name: string;
  readonly sent: Uint8Array;
  /** End of the call; `hello` when the answer that follows was taken. */
  readonly outcome: string;
}

/** Input that ends the connection, or the one call, or has no effect. */
const ATTACKS: readonly Attack[] = [
  { name: "a flood of PING", sent: repeated(20_000, PING), outcome: NOISE },
  { name: "a flood of SETTINGS", sent: repeated(20_000, frame(FRAME.SETTINGS)), outcome: NOISE },
  {
    name: "a flood of SETTINGS with ACK",
    sent: repeated(20_000, frame(FRAME.SETTINGS, 0, NO_BYTES, 1)),
    outcome: NOISE,
  },
  { name: "a flood of WINDOW_UPDATE", sent: repeated(20_000, windowUpdate(0, 1)), outcome: NOISE },
  {
    name: "a flood of WINDOW_UPDATE of the call",
    sent: repeated(20_000, windowUpdate(1, 1)),
    outcome: NOISE,
  },
  { name: "a flood of PRIORITY", sent: repeated(20_000, frame(FRAME.PRIORITY, 1, zeros(5))), outcome: NOISE },
  { name: "a flood of unknown frames", sent: repeated(20_000, frame(200, 7, zeros(9))), outcome: NOISE },
  {
    name: "a flood of DATA without content",
    sent: concatBytes(answerHeaders(1), repeated(20_000, content(1, NO_BYTES))),
    outcome: NOISE,
  },
  {
    name: "a flood of DATA with nothing but padding",
    sent: concatBytes(
      answerHeaders(1),
      repeated(20_000, frame(FRAME.DATA, 1, Uint8Array.of(0), FLAG.PADDED)),
    ),
    outcome: NOISE,
  },
  { name: "a flood of early headers", sent: repeated(20_000, early), outcome: NOISE },
  {
    name: "a flood of resets of a call that is over",
    sent: concatBytes(wholeAnswer(1, "first"), repeated(20_000, reset(1))),
    outcome: "first",
  },
  {
    name: "a flood of DATA of a call that is over",
    sent: concatBytes(wholeAnswer(1, "first"), repeated(20_000, content(1, zeros(1)))),
    outcome: "first",
  },
  {
    name: "a flood of answers of a call that is over",
    sent: concatBytes(wholeAnswer(1, "first"), repeated(20_000, wholeAnswer(1, "again"))),
    outcome: "first",
  },
  {
    name: "a flood of CONTINUATION without content",
    sent: concatBytes(frame(FRAME.HEADERS, 1, NO_BYTES), repeated(20_000, frame(FRAME.CONTINUATION, 1))),
    outcome: broke("a header block is too long"),
  },
  {
    name: "a header block of more than a megabyte",
    sent: blockFrames(1, repeated(120, wide)),
    outcome: broke("a header block is too long"),
  },
  {
    name: "ten thousand headers",
    sent: blockFrames(1, wide),
    outcome: "RESOURCE_EXHAUSTED: the headers of the answer are too large",
  },
  {
    name: "headers that grow when they are decoded",
    sent: blockFrames(1, bomb),
    outcome: "RESOURCE_EXHAUSTED: the headers of the answer are too large",
  },
  {
    name: "trailers that grow when they are decoded",
    sent: concatBytes(
      answerHeaders(1),
      blockFrames(1, bomb).map((byte, at) => at === 4 ? byte | FLAG.END_STREAM : byte),
    ),
    outcome: "RESOURCE_EXHAUSTED: the headers of the answer are too large",
  },
  {
    name: "headers with a value of 15 KiB, which is no attack",
    sent: concatBytes(
      answerHeaders(1, { "x-long": "x".repeat(15_000) }),
      content(1, message("hello")),
      answerTrailers(1),
    ),
    outcome: "hello",
  },
  {
    name: "a header block that names no entry",
    sent: headers(1, Uint8Array.of(0xff, 0x00), true),
    outcome: broke('Cannot decode header block at byte "2": no table has the index 127'),
  },
  {
    name: "a header block that is cut",
    sent: headers(1, Uint8Array.of(0x00, 0x05), true),
    outcome: broke('Cannot decode header block at byte "7": a string ends beyond the block'),
  },
  {
    name: "a table larger than announced",
    sent: headers(1, Uint8Array.of(0x3f, 0xe2, 0x1f), true),
    outcome: broke('Cannot decode header block at byte "3": a table of 4097 bytes; expected at most 4096'),
  },
  {
    name: "a header block that is interrupted",
    sent: concatBytes(frame(FRAME.HEADERS, 1, NO_BYTES), PING),
    outcome: broke("a header block is interrupted"),
  },
  {
    name: "CONTINUATION without a beginning",
    sent: frame(FRAME.CONTINUATION, 1),
    outcome: broke("CONTINUATION without the beginning of its block"),
  },
  {
    name: "CONTINUATION on another stream",
    sent: concatBytes(frame(FRAME.HEADERS, 1, NO_BYTES), frame(FRAME.CONTINUATION, 3)),
    outcome: broke("CONTINUATION without the beginning of its block"),
  },
  {
    name: "a push",
    sent: frame(
      FRAME.PUSH_PROMISE,
      1,
      concatBytes(uint32(2), headerBlock(fieldsOf({ ":method": "GET" }))),
      4,
    ),
    outcome: broke("push is disabled"),
  },
  { name: "headers on a stream of the server", sent: answerHeaders(2), outcome: idle("HEADERS", 2) },
  { name: "DATA on a stream of the server", sent: content(2, zeros(1)), outcome: idle("DATA", 2) },
  { name: "headers on stream 0", sent: answerHeaders(0), outcome: idle("HEADERS", 0) },
  { name: "DATA on stream 0", sent: content(0, zeros(1)), outcome: idle("DATA", 0) },
  { name: "headers on a stream that never was", sent: answerHeaders(99), outcome: idle("HEADERS", 99) },
  { name: "DATA on a stream that never was", sent: content(99, zeros(1)), outcome: idle("DATA", 99) },
  {
    name: "a reset of a stream that never was",
    sent: reset(99),
    outcome: broke("RST_STREAM on idle stream 99"),
  },
  { name: "a reset of stream 0", sent: reset(0), outcome: broke("RST_STREAM on idle stream 0") },
  {
    name: "WINDOW_UPDATE of a stream that never was",
    sent: windowUpdate(99, 1),
    outcome: broke("WINDOW_UPDATE on idle stream 99"),
  },
  { name: "WINDOW_UPDATE of 0", sent: windowUpdate(0, 0), outcome: broke("WINDOW_UPDATE of 0") },
  {
    name: "WINDOW_UPDATE of 0 on the call",
    sent: windowUpdate(1, 0),
    outcome: malformed("WINDOW_UPDATE of 0"),
  },
  {
    name: "a window of the connection beyond 2^31 - 1",
    sent: windowUpdate(0, 2 ** 31 - 1),
    outcome: broke("the window is too large"),
  },
  {
    name: "a window of the call beyond 2^31 - 1",
    sent: windowUpdate(1, 2 ** 31 - 1),
    outcome: malformed("the window is too large"),
  },
  {
    name: "an initial window beyond 2^31 - 1",
    sent: setting(SETTING.INITIAL_WINDOW_SIZE, 2 ** 31),
    outcome: broke("INITIAL_WINDOW_SIZE is 2147483648"),
  },
  {
    name: "frames that are too small",
    sent: setting(SETTING.MAX_FRAME_SIZE, 1),
    outcome: broke("MAX_FRAME_SIZE is 1"),
  },
  {
    name: "a setting that enables push",
    sent: setting(SETTING.ENABLE_PUSH, 1),
    outcome: broke("ENABLE_PUSH is 1"),
  },
  {
    name: "SETTINGS that are cut",
    sent: frame(FRAME.SETTINGS, 0, zeros(5)),
    outcome: broke("SETTINGS is not a multiple of 6 bytes"),
  },
  { name: "SETTINGS on a stream", sent: frame(FRAME.SETTINGS, 1), outcome: broke("SETTINGS on stream 1") },
  { name: "PING on a stream", sent: frame(FRAME.PING, 1, zeros(8)), outcome: broke("PING on stream 1") },
  { name: "PING of 7 bytes", sent: frame(FRAME.PING, 0, zeros(7)), outcome: broke("PING of 7 bytes") },
  {
    name: "GOAWAY on a stream",
    sent: frame(FRAME.GOAWAY, 1, zeros(8)),
    outcome: broke("GOAWAY on stream 1"),
  },
  {
    name: "GOAWAY of 7 bytes",
    sent: frame(FRAME.GOAWAY, 0, zeros(7)),
    outcome: broke("GOAWAY has fewer than 8 bytes"),
  },
  {
    name: "a frame that is too long",
    sent: Uint8Array.of(0, 64, 1, 0, 0, 0, 0, 0, 1),
    outcome: broke("a frame has 16385 bytes"),
  },
  {
    name: "padding as long as the frame",
    sent: concatBytes(answerHeaders(1), frame(FRAME.DATA, 1, Uint8Array.of(4, 0, 0, 0), FLAG.PADDED)),
    outcome: broke("the padding is as long as the frame"),
  },
  {
    name: "DATA before headers",
    sent: content(1, message("hello")),
    outcome: malformed("DATA before HEADERS"),
  },
  {
    name: "headers in the middle of an answer",
    sent: concatBytes(answerHeaders(1), answerHeaders(1)),
    outcome: malformed("trailers with :status"),
  },
  {
    name: "trailers that do not end the call",
    sent: concatBytes(answerHeaders(1), headers(1, fieldsOf({ "grpc-status": "0" }))),
    outcome: malformed("HEADERS in the middle of an answer"),
  },
  {
    name: "headers without :status",
    sent: headers(1, fieldsOf({ "content-type": "application/grpc" })),
    outcome: malformed("headers without :status"),
  },
  {
    name: "a pseudo-header of a request",
    sent: headers(1, fieldsOf({ ":path": "/" })),
    outcome: malformed("a wrong pseudo-header"),
  },
  {
    name: "a pseudo-header after a field",
    sent: headers(1, fieldsOf({ a: "1", ":status": "200" })),
    outcome: malformed("a wrong pseudo-header"),
  },
  {
    name: "a name in upper case",
    sent: headers(1, fieldsOf({ ":status": "200", "Grpc-Status": "0" })),
    outcome: malformed("a header name in upper case"),
  },
];

for (const { name, sent, outcome } of ATTACKS) {
  for (const size of [Infinity, 1]) {
    // A flood byte by byte takes long and shows nothing more.
    if (size === 1 && sent.length > 20_000) continue;
    Deno.test(`hostile server: ${name}${size === 1 ? ", byte by byte" : ""}`, async () => {
      const { bed, client, call } = await ClientBed.calling();
      for (let at = 0; at < sent.length; at += size) {
        bed.send(sent.subarray(at, at + Math.min(size, sent.length)));
      }
      const isLost = outcome.startsWith("UNAVAILABLE") || name.includes("that is over");
      assertEquals(await call, outcome);
      const answers = await bed.frames();
      assertEquals(answers.length < 11_000, true);
      const next = outcomeOf(client.unary(CALL_PATH, NO_BYTES));
      await bed.frames();
      if (!isLost) bed.send(wholeAnswer(3, "next"));
      const lost = outcome.startsWith("UNAVAILABLE") ? outcome : NOISE;
      assertEquals(await next, isLost ? lost : "next");
      assertEquals([bed.socket.destroyed, client.isOpen], [isLost, !isLost]);
      await client.close();
    });
  }
}
