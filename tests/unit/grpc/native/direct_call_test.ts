import { assertEquals } from "#assert";
import { FLAG, FRAME, PREFACE } from "../../../../src/grpc/native/frames.ts";
import { ConnectionBed } from "../../../harness/connection_bed.ts";
import {
  call,
  callFields,
  cancel,
  concatBytes,
  content,
  frame,
  headerBlock,
  headers,
  message,
  PEER_SETTING,
  uint32,
  windowUpdate,
} from "../../../harness/h2_peer.ts";
import { probePath } from "../../../harness/probe.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";

const PATH = probePath("Echo");
const FIELDS = callFields(PATH);
const END = FLAG.END_STREAM;
const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);
const withFields = (more: Readonly<Record<string, string>>) => callFields(PATH, more);
const setting = (identifier: number, value: number) =>
  frame(FRAME.SETTINGS, 0, concatBytes(bytes(0, identifier), uint32(value)));

/** Calls and frames around them: the usual call, and each way in which a call may differ from it. */
const PIECES: Readonly<Record<string, (id: number, random: () => number) => Uint8Array>> = {
  "usual": (id) => call(id, PATH, "usual"),
  "long": (id) => call(id, PATH, "long".repeat(100)),
  "very long": (id) => call(id, PATH, "long".repeat(2_000)),
  "another method": (id) => call(id, probePath("Size"), "size"),
  "unknown method": (id) => call(id, probePath("None"), ""),
  "empty": (id) => call(id, PATH, ""),
  "in two DATA frames": (id) =>
    concatBytes(headers(id, FIELDS), content(id, message("two")), content(id, bytes(), true)),
  "trailers": (id) =>
    concatBytes(headers(id, FIELDS), content(id, message("three")), headers(id, [["x", "y"]], true)),
  "two messages": (id) =>
    concatBytes(headers(id, FIELDS), content(id, concatBytes(message("a"), message("b")), true)),
  "part of a message": (id) =>
    concatBytes(headers(id, FIELDS), content(id, message("abc").subarray(0, 6), true)),
  "no message": (id) => headers(id, FIELDS, true),
  "compressed": (id) => concatBytes(headers(id, FIELDS), content(id, message("abc", true), true)),
  "padded": (id) =>
    concatBytes(
      headers(id, FIELDS),
      frame(FRAME.DATA, id, concatBytes(bytes(2), message("pad"), bytes(0, 0)), END | FLAG.PADDED),
    ),
  "content-length": (id) =>
    concatBytes(headers(id, withFields({ "content-length": "8" })), content(id, message("abc"), true)),
  "wrong content-length": (id) =>
    concatBytes(headers(id, withFields({ "content-length": "9" })), content(id, message("abc"), true)),
  "in a block that goes on": (id) => {
    const block = headerBlock(FIELDS);
    return concatBytes(
      frame(FRAME.HEADERS, id, block.subarray(0, 9)),
      frame(FRAME.CONTINUATION, id, block.subarray(9), FLAG.END_HEADERS),
      content(id, message("block"), true),
    );
  },
  "DATA of another stream": (id) => concatBytes(headers(id, FIELDS), call(id + 2, PATH, "other")),
  "cancelled": (id) => concatBytes(call(id, PATH, "late"), cancel(id)),
  "cancelled before": (id) => concatBytes(headers(id, FIELDS), cancel(id)),
  "DATA after the end": (id) => concatBytes(headers(id, FIELDS, true), content(id, message("abc"), true)),
  "PING": () => frame(FRAME.PING, 0, new Uint8Array(8)),
  "a stream is left out": (id) => call(id + 4, PATH, "skip"),
  "small windows": () => setting(PEER_SETTING.INITIAL_WINDOW_SIZE, 7),
  "usual windows": () => setting(PEER_SETTING.INITIAL_WINDOW_SIZE, 65_535),
  "wider windows": (id) => concatBytes(windowUpdate(0, 1_000), windowUpdate(id - 2, 100)),
  "held": (id) => call(id, probePath("Hold"), ""),
};
/** Each ends the connection: seldom. */
const BREAKING: typeof PIECES = {
  "even stream": (id) => call(id + 1, PATH, "even"),
  "stream 0": () => call(0, PATH, "zero"),
  "former stream": () => call(1, PATH, "again"),
  "a block that is interrupted": (id) =>
    concatBytes(frame(FRAME.HEADERS, id, headerBlock(FIELDS)), call(id + 2, PATH, "x")),
  "frame too large": (id) => concatBytes(headers(id, FIELDS), content(id, new Uint8Array(16_385), true)),
};

/** Options of the beds that are compared: answers directly, by the handler of a whole call, and frame by frame. */
const WAYS = [{}, { direct: false }, { maxPiece: 8 }] as const;

for (const whole of [true, false]) {
  Deno.test(`direct responses: the same frames as by the handler, ${whole ? "whole calls" : "torn apart"}`, () => {
    let direct = 0;
    for (let seed = 1; seed <= 300; seed++) {
      const random = seededRandom(seed);
      const beds = WAYS.map((options) => new ConnectionBed(options));
      let id = 1;
      for (let step = 0; step < 40; step++) {
        const from = Object.values(random() < 0.01 ? BREAKING : PIECES);
        const usual = () => call(id, PATH, "usual");
        const make = random() < 0.5 ? usual : from[Math.floor(random() * from.length)] ?? usual;
        let piece = make(id, random);
        id += 2 + 4 * Math.floor(random() * 1.1);
        if (random() < 0.3) {
          piece = concatBytes(piece, call(id += 2, PATH, "usual"), call(id += 2, PATH, "more"));
        }
        id += 4;
        const parts = whole ? [piece] : torn(piece, random);
        const now = step * 1_000;
        const [direct, handled, framed] = beds.map((bed) => {
          bed.now = now;
          return [bed.send(...parts), bed.connection.isClosing, bed.faults, bed.probe.calls, bed.probe.ended];
        });
        assertEquals(direct, framed);
        assertEquals(handled, framed);
      }
      direct += beds[0]?.probe.directCalls ?? 0;
      assertEquals(beds.slice(1).map(({ probe }) => probe.directCalls), [0, 0]);
    }
    assertEquals(direct > 1_000, true);
  });
}

Deno.test("direct responses: windows are updated, and full output stalls, as by the handler", () => {
  const [direct, handled, framed] = [{}, { direct: false }, { maxPiece: 64 }].map((options) => {
    const bed = new ConnectionBed({
      ...options,
      settings: [[PEER_SETTING.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]],
    });
    bed.send(windowUpdate(0, 2 ** 31 - 1 - 65_535));
    const lines: string[] = [];
    for (let batch = 0; batch < 4; batch++) {
      const calls = Array.from({ length: 1_000 }, (_, index) => {
        // Every tenth is too long to be answered directly, and fills the windows and the output.
        return call(2_000 * batch + 2 * index + 1, PATH, "x".repeat(index % 10 === 0 ? 16_000 : 90));
      });
      lines.push(...bed.send(concatBytes(...calls)));
    }
    assertEquals(bed.probe.directCalls > 3_000, Object.keys(options).length === 0);
    return lines;
  });
  assertEquals(handled?.some((line) => line.startsWith("WINDOW_UPDATE 0")), true);
  assertEquals(direct, handled);
  assertEquals(direct, framed);
});

const SPECIAL: Readonly<Record<string, (bed: ConnectionBed, options: typeof WAYS[number]) => string[]>> = {
  "before SETTINGS": (_, options) =>
    new ConnectionBed({ ...options, raw: true }).send(concatBytes(PREFACE, call(1, PATH, "early"))),
  "on a connection whose last stream is named": (bed) => {
    bed.send(concatBytes(call(1, probePath("Hold"), ""), call(3, PATH, "one")));
    bed.connection.drain();
    bed.connection.finishDraining();
    return [...bed.sent(), ...bed.send(concatBytes(call(5, PATH, "late"), call(7, PATH, "later")))];
  },
  "while as many streams are open as may be": (bed) => {
    const held = Array.from({ length: 1_000 }, (_, index) => call(2 * index + 3, probePath("Hold"), ""));
    return [
      ...bed.send(call(1, PATH, "one")),
      ...bed.send(concatBytes(...held)),
      ...bed.send(concatBytes(call(3_001, PATH, "no place"), call(3_003, PATH, "either"))),
    ];
  },
  "with frames that ask for nothing between them": (bed) => {
    const lines = bed.send(call(1, PATH, "one"));
    for (let id = 3; id < 30_000 && !bed.connection.isClosing; id += 2) {
      lines.push(
        ...bed.send(
          concatBytes(call(id, PATH, "x"), ...Array.from({ length: 30 }, () => windowUpdate(0, 1))),
        ),
      );
    }
    return [...lines, String(lines.length)];
  },
};

for (const [what, send] of Object.entries(SPECIAL)) {
  Deno.test(`direct responses: the same frames as by the handler ${what}`, () => {
    const [direct, handled, framed] = WAYS.map((options) => send(new ConnectionBed(options), options));
    assertEquals(direct, framed);
    assertEquals(handled, framed);
  });
}

/** The bytes in pieces of random length. */
function torn(whole: Uint8Array, random: () => number): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < whole.length;) {
    const length = 1 + Math.floor(random() * 60);
    parts.push(whole.subarray(at, at + length));
    at += length;
  }
  return parts;
}
