import { assertEquals } from "#assert";
import { FLAG, FRAME } from "../../../../src/grpc/native/frames.ts";
import type { HeaderField } from "../../../../src/grpc/native/hpack_decoder.ts";
import {
  call,
  callFields,
  cancel,
  concatBytes,
  content,
  frame,
  greeting,
  headerBlock,
  headers,
  message,
  PEER_SETTING,
  uint32,
  windowUpdate,
} from "../../../harness/h2_peer.ts";
import { answer, ConnectionBed } from "../../../harness/connection_bed.ts";
import { probePath } from "../../../harness/probe.ts";

const ECHO = callFields(probePath("Echo"));
const END = FLAG.END_STREAM;
const OPEN = headers(1, ECHO);
const ASKED = call(1, probePath("Hold"), "");
const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);
const zeros = (length: number): Uint8Array => new Uint8Array(length);
const settings = (payload: Uint8Array, flags = 0, streamId = 0): Uint8Array =>
  frame(FRAME.SETTINGS, streamId, payload, flags);
const setting = (identifier: number, value: number): Uint8Array =>
  concatBytes(bytes(0, identifier), uint32(value));
const without = (name: string): HeaderField[] => ECHO.filter(([known]) => known !== name);
const withFields = (...more: HeaderField[]): HeaderField[] => [...ECHO, ...more];

/** Input that breaks a rule of HTTP/2, by the section of RFC 9113, and the one frame that answers it. */
const BROKEN: Readonly<Record<string, readonly [parts: readonly Uint8Array[], line: string]>> = {
  "4.1 a frame of an unknown type is passed over": [[frame(99, 0, zeros(9)), frame(99, 1, zeros(9))], ""],
  "4.1 flags that are not defined are passed over": [[
    frame(FRAME.PING, 0, zeros(8), 0x16),
  ], "PING ack 0000000000000000"],
  "4.2 a frame that is too large": [[OPEN, content(1, zeros(16_385))], "GOAWAY 1 FRAME_SIZE_ERROR"],
  "4.3 a block that cannot be decoded": [[headers(1, bytes(0x80))], "GOAWAY 1 COMPRESSION_ERROR"],
  "4.3 PRIORITY within a block": [
    [frame(FRAME.HEADERS, 1, headerBlock(ECHO)), frame(FRAME.PRIORITY, 1, bytes(0, 0, 0, 0, 1))],
    "GOAWAY 0 PROTOCOL_ERROR",
  ],
  "4.3 HEADERS of another stream within a block": [
    [frame(FRAME.HEADERS, 1, headerBlock(ECHO)), headers(3, ECHO)],
    "GOAWAY 0 PROTOCOL_ERROR",
  ],
  "5.1 idle: DATA": [[content(1, message(""))], "GOAWAY 0 PROTOCOL_ERROR"],
  "5.1 idle: RST_STREAM": [[cancel(1)], "GOAWAY 0 PROTOCOL_ERROR"],
  "5.1 idle: WINDOW_UPDATE": [[windowUpdate(1, 1)], "GOAWAY 0 PROTOCOL_ERROR"],
  "5.1 idle: CONTINUATION": [
    [frame(FRAME.CONTINUATION, 1, zeros(0), FLAG.END_HEADERS)],
    "GOAWAY 0 PROTOCOL_ERROR",
  ],
  "5.1 half closed: DATA": [[ASKED, content(1, message(""))], "RST_STREAM 1 STREAM_CLOSED"],
  "5.1 half closed: HEADERS": [[ASKED, headers(1, ECHO, true)], "RST_STREAM 1 STREAM_CLOSED"],
  "5.1 closed by RST_STREAM: DATA": [
    [OPEN, cancel(1), content(1, message(""))],
    "RST_STREAM 1 STREAM_CLOSED",
  ],
  "5.1 closed by RST_STREAM: HEADERS": [[OPEN, cancel(1), headers(1, ECHO)], "GOAWAY 1 STREAM_CLOSED"],
  "5.1 closed: WINDOW_UPDATE and RST_STREAM are passed over": [[
    OPEN,
    cancel(1),
    windowUpdate(1, 1),
    cancel(1),
  ], ""],
  "5.1.1 an even stream": [[headers(2, ECHO)], "GOAWAY 0 PROTOCOL_ERROR"],
  "5.1.1 a lower stream that was left out": [[headers(5, ECHO), headers(3, ECHO)], "GOAWAY 5 PROTOCOL_ERROR"],
  "5.3.1 HEADERS that depend on themselves": [
    [frame(
      FRAME.HEADERS,
      1,
      concatBytes(uint32(1), bytes(255), headerBlock(ECHO)),
      FLAG.END_HEADERS | FLAG.PRIORITY,
    )],
    "RST_STREAM 1 PROTOCOL_ERROR",
  ],
  "5.3.1 PRIORITY that depends on itself": [
    [frame(FRAME.PRIORITY, 1, bytes(0, 0, 0, 1, 1))],
    "RST_STREAM 1 PROTOCOL_ERROR",
  ],
  "6.1 DATA on stream 0": [[content(0, zeros(1))], "GOAWAY 0 PROTOCOL_ERROR"],
  "6.1 padding as long as the frame": [
    [OPEN, frame(FRAME.DATA, 1, bytes(6, 0, 0, 0, 0, 0), FLAG.PADDED)],
    "GOAWAY 1 PROTOCOL_ERROR",
  ],
  "6.2 HEADERS on stream 0": [[headers(0, ECHO)], "GOAWAY 0 PROTOCOL_ERROR"],
  "6.2 padding longer than the frame": [
    [frame(FRAME.HEADERS, 1, concatBytes(bytes(200), headerBlock(ECHO)), FLAG.END_HEADERS | FLAG.PADDED)],
    "GOAWAY 0 PROTOCOL_ERROR",
  ],
  "6.2 HEADERS too short for their priority": [
    [frame(FRAME.HEADERS, 1, zeros(4), FLAG.END_HEADERS | FLAG.PRIORITY)],
    "GOAWAY 0 FRAME_SIZE_ERROR",
  ],
  "6.3 PRIORITY on stream 0": [[frame(FRAME.PRIORITY, 0, zeros(5))], "GOAWAY 0 PROTOCOL_ERROR"],
  "6.3 PRIORITY of another length": [[frame(FRAME.PRIORITY, 1, zeros(4))], "RST_STREAM 1 FRAME_SIZE_ERROR"],
  "6.4 RST_STREAM on stream 0": [[cancel(0)], "GOAWAY 0 PROTOCOL_ERROR"],
  "6.4 RST_STREAM of another length": [
    [OPEN, frame(FRAME.RST_STREAM, 1, zeros(3))],
    "GOAWAY 1 FRAME_SIZE_ERROR",
  ],
  "6.5 SETTINGS with ACK and a payload": [[settings(zeros(6), FLAG.ACK)], "GOAWAY 0 FRAME_SIZE_ERROR"],
  "6.5 SETTINGS on a stream": [[settings(zeros(0), 0, 1)], "GOAWAY 0 PROTOCOL_ERROR"],
  "6.5 SETTINGS of another length": [[settings(zeros(3))], "GOAWAY 0 FRAME_SIZE_ERROR"],
  "6.5.2 ENABLE_PUSH above 1": [[settings(setting(PEER_SETTING.ENABLE_PUSH, 2))], "GOAWAY 0 PROTOCOL_ERROR"],
  "6.5.2 INITIAL_WINDOW_SIZE too large": [
    [settings(setting(PEER_SETTING.INITIAL_WINDOW_SIZE, 2 ** 31))],
    "GOAWAY 0 FLOW_CONTROL_ERROR",
  ],
  "6.5.2 MAX_FRAME_SIZE too small": [
    [settings(setting(PEER_SETTING.MAX_FRAME_SIZE, 16_383))],
    "GOAWAY 0 PROTOCOL_ERROR",
  ],
  "6.5.2 MAX_FRAME_SIZE too large": [
    [settings(setting(PEER_SETTING.MAX_FRAME_SIZE, 2 ** 24))],
    "GOAWAY 0 PROTOCOL_ERROR",
  ],
  "6.5.3 SETTINGS with an unknown one are acknowledged": [[settings(setting(0xff, 1))], "SETTINGS ack"],
  "6.6 PUSH_PROMISE": [[frame(FRAME.PUSH_PROMISE, 1, zeros(4))], "GOAWAY 0 PROTOCOL_ERROR"],
  "6.7 PING is answered with what it brought": [
    [frame(FRAME.PING, 0, bytes(1, 2, 3, 4, 5, 6, 7, 8))],
    "PING ack 0102030405060708",
  ],
  "6.7 PING with ACK is not": [[frame(FRAME.PING, 0, zeros(8), FLAG.ACK)], ""],
  "6.7 PING on a stream": [[frame(FRAME.PING, 1, zeros(8))], "GOAWAY 0 PROTOCOL_ERROR"],
  "6.7 PING of another length": [[frame(FRAME.PING, 0, zeros(6))], "GOAWAY 0 FRAME_SIZE_ERROR"],
  "6.8 GOAWAY on a stream": [[frame(FRAME.GOAWAY, 1, zeros(8))], "GOAWAY 0 PROTOCOL_ERROR"],
  "6.8 GOAWAY too short": [[frame(FRAME.GOAWAY, 0, zeros(7))], "GOAWAY 0 FRAME_SIZE_ERROR"],
  "6.8 GOAWAY of the client is passed over": [[frame(FRAME.GOAWAY, 0, zeros(8))], ""],
  "6.9 WINDOW_UPDATE of 0 on the connection": [[windowUpdate(0, 0)], "GOAWAY 0 PROTOCOL_ERROR"],
  "6.9 WINDOW_UPDATE of 0 on a stream": [[OPEN, windowUpdate(1, 0)], "RST_STREAM 1 PROTOCOL_ERROR"],
  "6.9 WINDOW_UPDATE of another length": [
    [frame(FRAME.WINDOW_UPDATE, 0, zeros(3))],
    "GOAWAY 0 FRAME_SIZE_ERROR",
  ],
  "6.9.1 the connection's window grows too large": [
    [windowUpdate(0, 2 ** 31 - 65_535)],
    "GOAWAY 0 FLOW_CONTROL_ERROR",
  ],
  "6.9.1 a stream's window grows too large": [
    [OPEN, windowUpdate(1, 2 ** 31 - 65_535)],
    "RST_STREAM 1 FLOW_CONTROL_ERROR",
  ],
  "6.9.2 a stream's window grows too large by SETTINGS": [
    [
      OPEN,
      windowUpdate(1, 2 ** 31 - 1 - 65_535),
      settings(setting(PEER_SETTING.INITIAL_WINDOW_SIZE, 65_536)),
    ],
    "SETTINGS ack; GOAWAY 1 FLOW_CONTROL_ERROR",
  ],
  "6.10 CONTINUATION behind the end of the block": [
    [OPEN, frame(FRAME.CONTINUATION, 1, zeros(0), FLAG.END_HEADERS)],
    "GOAWAY 1 PROTOCOL_ERROR",
  ],
  "6.10 CONTINUATION behind DATA": [
    [OPEN, content(1, zeros(1)), frame(FRAME.CONTINUATION, 1, zeros(0), FLAG.END_HEADERS)],
    "GOAWAY 1 PROTOCOL_ERROR",
  ],
  "6.10 CONTINUATION on another stream": [
    [frame(FRAME.HEADERS, 1, headerBlock(ECHO)), frame(FRAME.CONTINUATION, 3, zeros(0), FLAG.END_HEADERS)],
    "GOAWAY 0 PROTOCOL_ERROR",
  ],
  "8.1 HEADERS in the middle of a request": [
    [OPEN, headers(1, [["x-late", "1"]])],
    "RST_STREAM 1 PROTOCOL_ERROR",
  ],
  "8.1 a pseudo-header among the trailers": [
    [OPEN, headers(1, [[":method", "POST"]], true)],
    "RST_STREAM 1 PROTOCOL_ERROR",
  ],
  "8.2 a name in upper case": [
    [headers(1, withFields(["X-Word", "1"]), true)],
    "RST_STREAM 1 PROTOCOL_ERROR",
  ],
  "8.2.2 a header about the connection": [
    [headers(1, withFields(["connection", "keep-alive"]), true)],
    "RST_STREAM 1 PROTOCOL_ERROR",
  ],
  "8.3 a pseudo-header is missing": [[headers(1, without(":scheme"), true)], "RST_STREAM 1 PROTOCOL_ERROR"],
  "8.1.1 less content than content-length": [
    [headers(1, withFields(["content-length", "6"])), content(1, message(""), true)],
    "RST_STREAM 1 PROTOCOL_ERROR",
  ],
  "8.1.1 more content than content-length, in two frames": [
    [headers(1, withFields(["content-length", "6"])), content(1, message("")), content(1, zeros(2), true)],
    "RST_STREAM 1 PROTOCOL_ERROR",
  ],
  "8.1.1 no content, but a content-length": [
    [headers(1, withFields(["content-length", "1"]), true)],
    "RST_STREAM 1 PROTOCOL_ERROR",
  ],
};

for (const [name, [parts, line]] of Object.entries(BROKEN)) {
  Deno.test(`Connection: RFC 9113 ${name}`, () => {
    const bed = new ConnectionBed();
    const lines = bed.send(...parts);
    assertEquals([lines.join("; "), bed.connection.isClosing], [line, line.includes("GOAWAY")]);
    // What comes behind the end is not looked at, and nothing behind a stream's end concerns the next one.
    const next = bed.connection.isClosing ? [] : answer(101, "next");
    assertEquals([bed.send(call(101, probePath("Echo"), "next")), bed.faults], [next, []]);
  });
}

const GREETED = ["SETTINGS", "WINDOW_UPDATE 0 4128769"];
const PREFACES:
  readonly (readonly [name: string, parts: Uint8Array, lines: readonly string[], closing: boolean])[] = [
    ["nothing yet", zeros(0), GREETED, false],
    ["half a preface", greeting().subarray(0, 10), GREETED, false],
    [
      "HTTP/1.1",
      new TextEncoder().encode("GET / HTTP/1.1\r\n"),
      [...GREETED, "GOAWAY 0 PROTOCOL_ERROR"],
      true,
    ],
    ["another preface", greeting().with(14, 0x32), [...GREETED, "GOAWAY 0 PROTOCOL_ERROR"], true],
    ["the preface without SETTINGS", greeting().subarray(0, 24), GREETED, false],
    ["PING before SETTINGS", concatBytes(greeting().subarray(0, 24), frame(FRAME.PING, 0, zeros(8))), [
      ...GREETED,
      "GOAWAY 0 PROTOCOL_ERROR",
    ], true],
    ["an ACK before SETTINGS", concatBytes(greeting().subarray(0, 24), settings(zeros(0), FLAG.ACK)), [
      ...GREETED,
      "GOAWAY 0 PROTOCOL_ERROR",
    ], true],
    ["the whole of it", greeting(), [...GREETED, "SETTINGS ack"], false],
  ];

Deno.test("Connection: a peer of another protocol is recognized, however few bytes came", () => {
  const cases: readonly (readonly [text: string, spoken: readonly string[]])[] = [
    ["G", ["HTTP/1.1"]],
    ["PU", ["HTTP/1.1"]],
    ["OPTIONS * HTTP/1.1\r\n", ["HTTP/1.1"]],
    ["GET/", []],
    ["get / HTTP/1.1\r\n", []],
    ["PRI  ", []],
    ["INVALID CONNECTION PREFACE", []],
    ["\x16", ["TLS"]],
    ["\x16\x03\x03", ["TLS"]],
    ["\x16\x04", []],
  ];
  const found = cases.map(([text]) => {
    const bed = new ConnectionBed({ raw: true });
    bed.connection.receive(Uint8Array.from(text, (character) => character.charCodeAt(0)));
    assertEquals(bed.connection.isClosing, true, text);
    return [text, bed.otherProtocols];
  });
  assertEquals(found, cases.map((one) => [...one]));
});

Deno.test("Connection: what a peer sends first", () => {
  const found = PREFACES.map(([name, parts]) => {
    const bed = new ConnectionBed({ raw: true });
    return [name, parts, bed.send(parts), bed.connection.isClosing];
  });
  assertEquals(found, PREFACES.map((one) => [...one]));
});

Deno.test("Connection: pieces of every size make the same frames", () => {
  const stream = concatBytes(
    greeting(),
    call(1, probePath("Echo"), "one"),
    call(3, probePath("Echo"), "two"),
    frame(FRAME.PING, 0, zeros(8)),
  );
  const expected = [
    ...GREETED,
    "SETTINGS ack",
    ...answer(1, "one"),
    ...answer(3, "two"),
    "PING ack 0000000000000000",
  ];
  for (let size = 1; size <= stream.length; size += size < 40 ? 1 : 17) {
    const bed = new ConnectionBed({ raw: true });
    for (let at = 0; at < stream.length; at += size) bed.connection.receive(stream.slice(at, at + size));
    assertEquals(bed.sent(), expected, `pieces of ${size} bytes`);
  }
});

Deno.test("Connection: padding and priority make no difference to a call", () => {
  const block = concatBytes(bytes(3), uint32(0), bytes(16), headerBlock(ECHO), zeros(3));
  const flags = FLAG.END_HEADERS | FLAG.PADDED | FLAG.PRIORITY;
  const bed = new ConnectionBed();
  const lines = bed.send(
    frame(FRAME.HEADERS, 1, block, flags),
    frame(FRAME.DATA, 1, concatBytes(bytes(4), message("padded"), zeros(4)), FLAG.PADDED | END),
  );
  assertEquals(lines, answer(1, "padded"));
});

Deno.test("Connection: trailers of a request end it", () => {
  const bed = new ConnectionBed();
  assertEquals(
    bed.send(OPEN, content(1, message("with trailers")), headers(1, [["x-check", "1"]], true)),
    answer(1, "with trailers"),
  );
});

Deno.test("Connection: frames that cross our reset are passed over", () => {
  const bed = new ConnectionBed();
  const lines = bed.send(
    headers(1, callFields(probePath("Nothing"))),
    content(1, message("early")),
    content(1, message("late")),
    windowUpdate(1, 10),
    headers(1, [["x-late", "1"]], true),
    call(3, probePath("Echo"), "next"),
  );
  assertEquals(lines, [
    "HEADERS 1 end :status=200 content-type=application/grpc grpc-status=12 " +
    "grpc-message=The server does not implement the method /test.Probe/Nothing",
    "RST_STREAM 1 NO_ERROR",
    ...answer(3, "next"),
  ]);
});

Deno.test("Connection: a call that is cancelled is not answered, late or at all", async () => {
  const bed = new ConnectionBed();
  bed.send(call(1, probePath("Hold"), ""), call(3, probePath("Hold"), ""));
  const before = bed.send(cancel(1));
  for (const reply of bed.probe.held) reply("late");
  await Promise.resolve().then(() => {});
  assertEquals([before, bed.sent(), bed.connection.streams.size], [[], answer(3, "late"), 0]);
});

Deno.test("Connection: a stream of the server ends once, for whatever reason", () => {
  const watch = call(1, probePath("Watch"), "first");
  const ends: Readonly<Record<string, (bed: ConnectionBed) => void>> = {
    "cancelled": (bed) => bed.send(cancel(1)),
    "the peer is gone": (bed) => bed.connection.abandon(),
    "the connection fails": (bed) => bed.send(frame(FRAME.PING, 1, zeros(8))),
    "the server stops": (bed) => bed.connection.drain(),
  };
  const found = Object.entries(ends).map(([name, end]) => {
    const bed = new ConnectionBed();
    const lines = bed.send(watch);
    const [send] = bed.probe.watchers;
    end(bed);
    bed.sent();
    send?.(bytes(1));
    return [name, lines, bed.probe.watchers.size, bed.sent()];
  });
  const first = answer(1, "first").slice(0, 2);
  assertEquals(found, Object.keys(ends).map((name) => [name, first, 0, []]));
});

Deno.test("Connection: a fault of a handler tells the peer nothing", () => {
  const bed = new ConnectionBed();
  const lines = bed.send(call(1, probePath("Break"), ""));
  assertEquals([lines, bed.faults], [
    ["HEADERS 1 end :status=200 content-type=application/grpc grpc-status=13 grpc-message=internal error"],
    ["/test.Probe/Break: TypeError: secret detail"],
  ]);
});
