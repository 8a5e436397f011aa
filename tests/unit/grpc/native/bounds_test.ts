import { assertEquals } from "#assert";
import { FLAG, FRAME } from "../../../../src/grpc/native/frames.ts";
import { LIMITS } from "../../../../src/grpc/native/limits.ts";
import {
  call,
  callFields,
  cancel,
  concatBytes,
  content,
  frame,
  headerBlock,
  headers,
  hpackText,
  message,
  PEER_SETTING,
  repeated,
  uint32,
  windowUpdate,
} from "../../../harness/h2_peer.ts";
import { answer, ConnectionBed } from "../../../harness/connection_bed.ts";
import { probePath } from "../../../harness/probe.ts";

const ECHO = callFields(probePath("Echo"));
const BLOCK = headerBlock(ECHO);
const zeros = (length: number): Uint8Array => new Uint8Array(length);
const PING = frame(FRAME.PING, 0, zeros(8));
const NOISE = LIMITS.noise.burst;
/** The headers of so many streams, from a first one on. */
const opened = (count: number, first = 1) =>
  Array.from({ length: count }, (_, index) => headers(first + 2 * index, ECHO));

/** Number of frames of each kind. */
function summary(lines: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const line of lines) {
    const kind = line.replace(/(HEADERS|DATA|RST_STREAM|WINDOW_UPDATE) \d+/, "$1").replace(
      / [0-9a-f]{16}$/,
      "",
    );
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

/** Maximum number of a frame; one more ends the connection. */
const FLOODS: Readonly<Record<string, { most: number; one: Uint8Array; before?: Uint8Array }>> = {
  // The greeting was one of them.
  "SETTINGS": { most: NOISE - 1, one: frame(FRAME.SETTINGS) },
  "acknowledged SETTINGS": { most: NOISE - 1, one: frame(FRAME.SETTINGS, 0, zeros(0), FLAG.ACK) },
  "PRIORITY": { most: NOISE - 1, one: frame(FRAME.PRIORITY, 1, zeros(5)) },
  "GOAWAY": { most: NOISE - 1, one: frame(FRAME.GOAWAY, 0, zeros(8)) },
  "frames of an unknown type": { most: NOISE - 1, one: frame(99) },
  "PING": { most: LIMITS.pings.burst, one: PING },
  "answers to no PING": { most: LIMITS.pings.burst, one: frame(FRAME.PING, 0, zeros(8), FLAG.ACK) },
  "empty DATA": { most: NOISE - 1, one: content(1, zeros(0)), before: headers(1, ECHO) },
  "DATA of padding alone": {
    most: NOISE - 1,
    one: frame(FRAME.DATA, 1, Uint8Array.of(1, 0), FLAG.PADDED),
    before: headers(1, ECHO),
  },
  "HEADERS on a stream that we have reset": {
    most: NOISE - 1,
    one: headers(1, ECHO),
    before: concatBytes(headers(1, ECHO), windowUpdate(1, 0)),
  },
  "RST_STREAM": { most: LIMITS.resets.burst, one: cancel(1), before: headers(1, ECHO) },
  "streams that we have to reset": {
    most: LIMITS.resets.burst,
    one: windowUpdate(1, 0),
    before: headers(1, ECHO),
  },
};

for (const [name, { most, one, before }] of Object.entries(FLOODS)) {
  Deno.test(`bounds: a flood of ${name}`, () => {
    const bed = new ConnectionBed();
    if (before !== undefined) bed.send(before);
    for (let sent = 0; sent < most; sent += 500) bed.send(repeated(Math.min(500, most - sent), one));
    const open = !bed.connection.isClosing;
    const last = bed.send(one).at(-1);
    assertEquals([open, last?.replace(/\d+/, "n"), bed.connection.isClosing], [
      true,
      "GOAWAY n ENHANCE_YOUR_CALM",
      true,
    ]);
  });
}

Deno.test("bounds: time makes room for more, and content for more PING", () => {
  const bed = new ConnectionBed();
  bed.send(repeated(LIMITS.pings.burst, PING));
  bed.now += 1_000;
  bed.send(repeated(LIMITS.pings.perSecond, PING));
  // As a client does that measures the line with each answer that it gets.
  for (let id = 1; id < 10_000; id += 2) bed.send(concatBytes(call(id, probePath("Echo"), "x"), PING));
  assertEquals([bed.connection.isClosing, bed.probe.calls], [false, 5_000]);
  const last = bed.send(repeated(LIMITS.pings.burst + 1, PING)).at(-1);
  assertEquals(last, "GOAWAY 9999 ENHANCE_YOUR_CALM");
});

Deno.test("bounds: rapid reset", () => {
  const bed = new ConnectionBed();
  const hold = probePath("Hold");
  const last: string[] = [];
  for (let id = 1; id < 20_000 && !bed.connection.isClosing; id += 2) {
    last.push(...bed.send(concatBytes(call(id, hold, ""), cancel(id))));
  }
  assertEquals([last, bed.probe.calls, bed.connection.streams.size], [
    [`GOAWAY ${2 * LIMITS.resets.burst + 1} ENHANCE_YOUR_CALM`],
    LIMITS.resets.burst + 1,
    0,
  ]);
});

/** Resets more calls than the limit of resets, as a proxy does whose clients disconnect. */
const DISCONNECTING: Readonly<Record<string, (bed: ConnectionBed, id: number) => Promise<void> | void>> = {
  "after their answers": (bed, id) => void bed.send(call(id, probePath("Echo"), "x"), cancel(id)),
  "after answers of a handler": (bed, id) => void bed.send(call(id, probePath("Size"), "x"), cancel(id)),
  "after an error": (bed, id) => void bed.send(call(id, probePath("Refuse"), "x"), cancel(id)),
  async "before their answers"(bed, id) {
    bed.send(call(id, probePath("Hold"), ""), cancel(id));
    for (const reply of bed.probe.held.splice(0)) reply("late");
    await Promise.resolve();
  },
};

for (const [name, disconnect] of Object.entries(DISCONNECTING)) {
  Deno.test(`bounds: calls that a proxy resets ${name} never end its connection`, async () => {
    const bed = new ConnectionBed();
    const calls = 5 * LIMITS.resets.burst;
    for (let id = 1; id < 2 * calls; id += 2) await disconnect(bed, id);
    assertEquals([bed.probe.calls, bed.connection.streams.size, bed.connection.isClosing], [calls, 0, false]);
  });
}

Deno.test("bounds: streams at a time", () => {
  const bed = new ConnectionBed();
  const lines = bed.send(...opened(LIMITS.streams + 2));
  const [first, second] = [2 * LIMITS.streams + 1, 2 * LIMITS.streams + 3];
  assertEquals([lines, bed.connection.streams.size], [
    [`RST_STREAM ${first} REFUSED_STREAM`, `RST_STREAM ${second} REFUSED_STREAM`],
    LIMITS.streams,
  ]);
  const id = second + 2;
  assertEquals(bed.send(content(1, message("room"), true), call(id, probePath("Echo"), "taken")), [
    ...answer(1, "room"),
    ...answer(id, "taken"),
  ]);
});

Deno.test("bounds: a header list that its references to the table make too large is answered with 431", () => {
  const bed = new ConnectionBed();
  const remembered = concatBytes(Uint8Array.fromHex("400178"), hpackText("y".repeat(4_000)));
  const bomb = repeated(Math.ceil(LIMITS.headerListBytes / 4_000), Uint8Array.of(0xbe));
  const lines = bed.send(
    frame(FRAME.HEADERS, 1, concatBytes(BLOCK, remembered, bomb), FLAG.END_HEADERS),
    content(1, message("x"), true),
    call(3, probePath("Echo"), "next"),
  );
  assertEquals(lines, [
    "HEADERS 1 :status=431 content-type=text/plain; charset=utf-8 content-length=29",
    "DATA 1 end 29 bytes",
    ...answer(3, "next"),
  ]);
});

Deno.test("bounds: a flood of CONTINUATION", () => {
  const floods: Readonly<Record<string, Uint8Array>> = {
    "empty ones": frame(FRAME.CONTINUATION, 1),
    "full ones": frame(FRAME.CONTINUATION, 1, zeros(16_384)),
    "a byte each": frame(FRAME.CONTINUATION, 1, zeros(1)),
  };
  const found = Object.entries(floods).map(([name, one]) => {
    const bed = new ConnectionBed();
    return [name, bed.send(frame(FRAME.HEADERS, 1, BLOCK), repeated(300, one))];
  });
  assertEquals(found, Object.keys(floods).map((name) => [name, ["GOAWAY 0 ENHANCE_YOUR_CALM"]]));
});

Deno.test("bounds: a table of more than 4,096 bytes", () => {
  const bed = new ConnectionBed();
  // 31 + 4,065 = 4,096 is allowed, 4,097 is not.
  const allowed = bed.send(
    headers(1, concatBytes(Uint8Array.of(0x3f, 0xe1, 0x1f), BLOCK)),
    content(1, message("x"), true),
  );
  const refused = bed.send(headers(3, concatBytes(Uint8Array.of(0x3f, 0xe2, 0x1f), BLOCK)));
  assertEquals([allowed, refused], [answer(1, "x"), ["GOAWAY 3 COMPRESSION_ERROR"]]);
});

Deno.test("bounds: more on a stream than its window lets in", () => {
  const bed = new ConnectionBed();
  bed.send(headers(1, ECHO));
  // What comes is taken immediately and the window renewed, so that only a smaller one can be exceeded.
  const stream = bed.connection.streams.get(1);
  if (stream !== undefined) stream.request.window.take(LIMITS.streamWindow - 16_383);
  const lines = bed.send(content(1, zeros(16_384)), call(3, probePath("Echo"), "next"));
  assertEquals(lines, ["RST_STREAM 1 FLOW_CONTROL_ERROR", ...answer(3, "next")]);
});

Deno.test("bounds: the connection's window is renewed by what came, on whatever stream", () => {
  const bed = new ConnectionBed();
  const lines: string[] = [];
  for (let id = 1; id < 64; id += 2) {
    lines.push(
      ...bed.send(headers(id, ECHO), ...Array.from({ length: 8 }, () => content(id, zeros(16_384)))),
    );
  }
  assertEquals(lines.filter((line) => line.startsWith("WINDOW_UPDATE 0")), [
    "WINDOW_UPDATE 0 2097152",
    "WINDOW_UPDATE 0 2097152",
  ]);
});

for (const [padding, size] of [[0, 16_384], [200, 1_000]] as const) {
  Deno.test(`bounds: windows are renewed for content and ${padding} bytes of padding, so that an upload goes on`, () => {
    const bed = new ConnectionBed();
    const request = message(zeros(2_000_000));
    const lines = bed.send(headers(1, callFields(probePath("Size"))));
    let window = LIMITS.streamWindow;
    for (let at = 0; at < request.length && window > 0; at += size) {
      const piece = request.subarray(at, at + size);
      const payload = padding === 0 ? piece : concatBytes(Uint8Array.of(padding), piece, zeros(padding));
      window -= payload.length;
      const end = at + size >= request.length ? FLAG.END_STREAM : 0;
      const sent = bed.send(frame(FRAME.DATA, 1, payload, (padding === 0 ? 0 : FLAG.PADDED) | end));
      for (const line of sent) if (line.startsWith("WINDOW_UPDATE 1 ")) window += Number(line.split(" ")[2]);
      lines.push(...sent);
    }
    assertEquals([lines.slice(-3), window > 0], [answer(1, "2000000"), true]);
  });
}

Deno.test("bounds: an output that is not read holds up what came", () => {
  const bed = new ConnectionBed({ settings: [[PEER_SETTING.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]] });
  bed.send(windowUpdate(0, 2 ** 31 - 1 - 65_535));
  const { connection } = bed;
  for (let id = 1; id < 40; id += 2) connection.receive(call(id, probePath("Zeros"), "200000"));
  const held = [
    connection.isStalled,
    connection.sender.output.length < LIMITS.unsentBytes + 250_000,
    bed.probe.calls,
  ];
  const lines = bed.sent();
  assertEquals([held, summary(lines)["HEADERS end grpc-status=0"], connection.isStalled], [
    [true, true, 6],
    20,
    false,
  ]);
});

Deno.test("bounds: answers that the peer does not let in", () => {
  const bed = new ConnectionBed({ settings: [[PEER_SETTING.INITIAL_WINDOW_SIZE, 0]] });
  bed.send(headers(1, callFields(probePath("Zeroes"))));
  const lines: string[] = [];
  for (let count = 0; count < 20; count++) lines.push(...bed.send(content(1, message("100000"))));
  assertEquals(lines, [
    "HEADERS 1 :status=200 content-type=application/grpc",
    "RST_STREAM 1 ENHANCE_YOUR_CALM",
  ]);
  const one = bed.send(call(3, probePath("Zeros"), "2000000"));
  assertEquals(one, [
    "HEADERS 3 :status=200 content-type=application/grpc",
    "RST_STREAM 3 ENHANCE_YOUR_CALM",
  ]);
  assertEquals(bed.send(windowUpdate(1, 10), windowUpdate(3, 10), PING), ["PING ack 0000000000000000"]);
});

Deno.test("bounds: a first message of a server's stream that is one too many ends it", () => {
  const bed = new ConnectionBed({ settings: [[PEER_SETTING.INITIAL_WINDOW_SIZE, 0]] });
  const request = message(zeros(LIMITS.queuedStreamBytes));
  bed.send(headers(1, callFields(probePath("Watch"))));
  const lines: string[] = [];
  for (let at = 0; at < request.length; at += 16_384) {
    lines.push(...bed.send(content(1, request.subarray(at, at + 16_384), at + 16_384 >= request.length)));
  }
  const kept = lines.filter((line) => !line.startsWith("WINDOW_UPDATE"));
  assertEquals([kept, bed.probe.watchers.size, bed.connection.streams.size], [
    ["HEADERS 1 :status=200 content-type=application/grpc", "RST_STREAM 1 ENHANCE_YOUR_CALM"],
    0,
    0,
  ]);
});

/** Sends most of a message on a new stream, without its end; answers the frames but for windows. */
function begin(bed: ConnectionBed, id: number, size: number, whole: boolean): string[] {
  const request = message(zeros(size)).subarray(0, whole ? size + 5 : size);
  const lines = bed.send(headers(id, ECHO));
  for (let at = 0; at < request.length; at += 16_384) {
    lines.push(...bed.send(content(id, request.subarray(at, at + 16_384))));
  }
  return lines.filter((line) => !line.startsWith("WINDOW_UPDATE"));
}

const TOO_MANY = "HEADERS 9 end :status=200 content-type=application/grpc grpc-status=8 " +
  "grpc-message=too many incomplete messages on this connection";

for (const whole of [false, true]) {
  Deno.test(`bounds: 16 MiB of ${whole ? "messages whose requests do" : "messages that do"} not end`, () => {
    const bed = new ConnectionBed();
    const first = [1, 3, 5, 7].map((id) => begin(bed, id, 4_194_304, whole));
    const over = [...new Set(begin(bed, 9, 100, whole))];
    assertEquals([first, over], [[[], [], [], []], [TOO_MANY, "RST_STREAM 9 NO_ERROR"]]);
    // What is given up counts no more.
    bed.send(cancel(1));
    assertEquals(begin(bed, 11, 4_194_304 - 200, whole), []);
  });
}

Deno.test("bounds: messages that are refused leave the count of held bytes as it was", () => {
  const bed = new ConnectionBed();
  const bad = concatBytes(Uint8Array.of(0), uint32(0xffffffff), zeros(16_000));
  for (let id = 101; id < 2_101; id += 2) {
    bed.send(headers(id, ECHO), content(id, bad.subarray(0, 4)), content(id, bad.subarray(4)));
  }
  const first = [2_101, 2_103, 2_105, 2_107].map((id) => begin(bed, id, 4_194_304, false));
  const over = begin(bed, 2_109, 100, false);
  assertEquals([first, over.length > 0], [[[], [], [], []], true]);
});
