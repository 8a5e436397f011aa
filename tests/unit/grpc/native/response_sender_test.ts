import { assertEquals } from "#assert";
import { OK_TRAILERS, plainHeaders } from "../../../../src/grpc/native/response_blocks.ts";
import { LIMITS } from "../../../../src/grpc/native/limits.ts";
import type { RequestHead } from "../../../../src/grpc/native/request_head.ts";
import { ResponseSender } from "../../../../src/grpc/native/response_sender.ts";
import { ServerStream } from "../../../../src/grpc/native/server_stream.ts";
import { H2Lines } from "../../../harness/h2_peer.ts";
import { answer } from "../../../harness/connection_bed.ts";

const HEAD: RequestHead = {
  fields: [],
  method: undefined,
  verb: "POST",
  path: "",
  refusal: undefined,
  encoding: "",
  timeout: "",
  timeoutMs: Infinity,
  contentLength: undefined,
};
const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
const HEADERS_LINE = "HEADERS 1 :status=200 content-type=application/grpc";
const END_LINE = "HEADERS 1 end grpc-status=0";

/** A sender whose connection takes note of its calls. */
class Bed {
  readonly events: string[] = [];
  readonly sender: ResponseSender = new ResponseSender({
    finished: (stream) => void this.events.push(`finished ${stream.id}`),
    overflowed: (stream) => {
      this.events.push(`overflowed ${stream.id}`);
      stream.isClosed = true;
      this.sender.forget(stream);
    },
  });
  readonly #lines = new H2Lines();

  stream(id = 1, send = this.sender.initialWindow): ServerStream {
    return new ServerStream(id, HEAD, send, 0);
  }

  sent(): string[] {
    return this.#lines.read(this.sender.output.take().slice());
  }
}

Deno.test("ResponseSender: an answer that the windows let in goes out immediately", () => {
  const bed = new Bed();
  bed.sender.unary(bed.stream(), ascii("hello"));
  assertEquals([bed.sent(), bed.events, bed.sender.window], [answer(1, "hello"), ["finished 1"], 65_525]);
});

Deno.test("ResponseSender: an answer larger than a frame is cut", () => {
  const bed = new Bed();
  bed.sender.unary(bed.stream(), new Uint8Array(40_000));
  const data = ["DATA 1 16384 bytes", "DATA 1 16384 bytes", "DATA 1 7237 bytes"];
  assertEquals([bed.sent(), bed.events], [[HEADERS_LINE, ...data, END_LINE], ["finished 1"]]);
});

Deno.test("ResponseSender: a whole response is sent only if one frame and the windows have room for it", () => {
  const { sender } = new Bed();
  const rooms = () => [10, 11, 16_379, 16_380].map((bytes) => sender.canSend(bytes));
  assertEquals(rooms(), [true, true, true, false]);
  sender.resize(15, []);
  assertEquals(rooms(), [true, false, false, false]);
  sender.resize(65_535, []);
  sender.window = 15;
  assertEquals(rooms(), [true, false, false, false]);
});

Deno.test("ResponseSender: windows of 0, 1 and below 0", () => {
  const bed = new Bed();
  const stream = bed.stream(1, 0);
  bed.sender.unary(stream, ascii("hello"));
  const steps: string[][] = [bed.sent()];
  bed.sender.widenStream(stream, 1);
  steps.push(bed.sent());
  // The window at the start shrinks by more than is left of this one: it is now below 0.
  bed.sender.resize(65_525, [stream]);
  steps.push(bed.sent(), [String(stream.outgoing.window)]);
  bed.sender.widenStream(stream, 10);
  steps.push(bed.sent());
  bed.sender.resize(65_527, [stream]);
  steps.push(bed.sent());
  bed.sender.widenStream(stream, 100);
  steps.push(bed.sent());
  assertEquals([steps, bed.events, stream.outgoing.window], [
    [[HEADERS_LINE], ["DATA 1 1 bytes"], [], ["-10"], [], ["DATA 1 2 bytes"], [
      "DATA 1 7 bytes",
      END_LINE,
    ]],
    ["finished 1"],
    93,
  ]);
});

Deno.test("ResponseSender: trailers wait behind what is queued, without a window", () => {
  const bed = new Bed();
  const stream = bed.stream(1, 3);
  bed.sender.message(stream, ascii("a"));
  bed.sender.message(stream, ascii("b"));
  bed.sender.end(stream, OK_TRAILERS);
  const before = bed.sent();
  bed.sender.widenStream(stream, 9);
  assertEquals([before, bed.sent(), bed.events], [
    [HEADERS_LINE, "DATA 1 3 bytes"],
    ["DATA 1 3 bytes", 'DATA 1 message "b"', END_LINE],
    ["finished 1"],
  ]);
});

Deno.test("ResponseSender: a stream that waits for its window holds up no other", () => {
  const bed = new Bed();
  bed.sender.unary(bed.stream(1, 0), ascii("waits"));
  bed.sender.unary(bed.stream(3), ascii("goes"));
  assertEquals([bed.sent(), bed.events], [[HEADERS_LINE, ...answer(3, "goes")], ["finished 3"]]);
});

Deno.test("ResponseSender: streams that wait for the connection's window take turns", () => {
  const bed = new Bed();
  bed.sender.window = 0;
  for (const id of [1, 3, 5]) bed.sender.unary(bed.stream(id), ascii("x"));
  bed.sent();
  const steps = [4, 4, 8, 100].map((increment) => {
    bed.sender.widen(increment);
    return bed.sent().filter((line) => line.startsWith("DATA"));
  });
  assertEquals([steps, bed.events, bed.sender.window], [
    [
      ["DATA 1 4 bytes"],
      ["DATA 3 4 bytes"],
      ['DATA 5 message "x"', "DATA 1 2 bytes"],
      ["DATA 3 2 bytes"],
    ],
    ["finished 5", "finished 1", "finished 3"],
    98,
  ]);
});

Deno.test("ResponseSender: a stream that also waits for its own window goes on with that", () => {
  const bed = new Bed();
  bed.sender.window = 0;
  const stream = bed.stream(1, 0);
  bed.sender.unary(stream, ascii("x"));
  bed.sender.widenStream(stream, 100);
  bed.sender.resize(65_435, [stream]);
  bed.sender.widen(100);
  const before = bed.sent();
  bed.sender.widenStream(stream, 1);
  bed.sender.widenStream(stream, 10);
  assertEquals([before, bed.sent()], [[HEADERS_LINE], ["DATA 1 1 bytes", "DATA 1 5 bytes", END_LINE]]);
});

Deno.test("ResponseSender: what waits on one stream has a bound, and nothing follows when it is over", () => {
  const bed = new Bed();
  const stream = bed.stream(1, 0);
  bed.sender.message(stream, new Uint8Array(LIMITS.queuedStreamBytes - 5));
  const before = [...bed.events];
  bed.sender.unary(stream, new Uint8Array(0));
  assertEquals([before, bed.events, bed.sent()], [[], ["overflowed 1"], [HEADERS_LINE]]);
});

Deno.test("ResponseSender: what waits over all streams has a bound, which counts what is gone no more", () => {
  const bed = new Bed();
  const piece = new Uint8Array(LIMITS.queuedStreamBytes - 5);
  const streams = Array.from({ length: LIMITS.queuedBytes / LIMITS.queuedStreamBytes }, (_, index) => {
    const stream = bed.stream(2 * index + 1, 0);
    bed.sender.message(stream, piece);
    return stream;
  });
  const [first, second] = streams;
  bed.sender.message(bed.stream(101, 0), ascii("too many"));
  if (first !== undefined) bed.sender.forget(first);
  if (second !== undefined) bed.sender.widenStream(second, 6);
  bed.sender.message(bed.stream(103, 0), piece);
  bed.sender.message(bed.stream(105, 0), ascii("1"));
  bed.sender.message(bed.stream(107, 0), ascii("2"));
  assertEquals(bed.events, ["overflowed 101", "overflowed 107"]);
});

Deno.test("ResponseSender: an answer that is no gRPC ends with its body", () => {
  const bed = new Bed();
  const waiting = bed.stream(3, 2);
  bed.sender.plain(bed.stream(), plainHeaders(415, 3), ascii("no\n"));
  bed.sender.plain(waiting, plainHeaders(415, 3), ascii("no\n"));
  bed.sender.widenStream(waiting, 1);
  bed.sender.plain(bed.stream(5), plainHeaders(415, 3), new Uint8Array(0));
  const block = ":status=415 content-type=text/plain; charset=utf-8 content-length=3";
  assertEquals([bed.sent(), bed.events], [[
    `HEADERS 1 ${block}`,
    "DATA 1 end 3 bytes",
    `HEADERS 3 ${block}`,
    "DATA 3 2 bytes",
    "DATA 3 end 1 bytes",
    `HEADERS 5 end ${block}`,
  ], ["finished 1", "finished 3", "finished 5"]]);
});

Deno.test("ResponseSender: the answers to PINGs confirm what was sent before them, in order", () => {
  const bed = new Bed();
  const stream = bed.stream();
  const arrived: string[] = [];
  const ask = (name: string) => bed.sender.confirm(stream, () => void arrived.push(name));
  const answerTo = (mark: number) => bed.sender.pingAnswered(Uint8Array.of(0, 0, 0, mark, 0, 0, 0, 0));
  bed.sender.message(stream, ascii("hello"));
  assertEquals([ask("one"), ask("two")], [true, true]);
  assertEquals(bed.sent().slice(-2), ["PING 0000000100000000", "PING 0000000200000000"]);
  // Answers to other PINGs, and an answer before its time.
  for (const mark of [0, 2, 7]) answerTo(mark);
  assertEquals(arrived, []);
  answerTo(1);
  assertEquals(arrived, ["one"]);
  stream.isClosed = true;
  answerTo(2);
  assertEquals(arrived, ["one"]);
});

Deno.test("ResponseSender: what waits for a window cannot be confirmed", () => {
  const bed = new Bed();
  const stream = bed.stream(1, 4);
  bed.sender.message(stream, ascii("hello"));
  assertEquals(bed.sender.confirm(stream, () => {}), false);
  bed.sender.widenStream(stream, 100);
  assertEquals(bed.sender.confirm(stream, () => {}), true);
});
