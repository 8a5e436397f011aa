import { assertEquals, assertThrows } from "#assert";
import { EventStreamReader } from "../../../src/ui/page/event_stream.ts";

const CASES: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ["one event", ["event: snapshot\ndata: {}\n\n"], ["snapshot {}"]],
  ["pieces of any size", [..."event: a\r\ndata: b\r\n\r\n"], ["a b"]],
  ["three kinds of line ends", ["data: 1\n\ndata: 2\r\n\r\ndata: 3\r\rdata: 4"], [
    "message 1",
    "message 2",
    "message 3",
  ]],
  ["several lines of text", ["data: one\ndata: two\n\n"], ["message one\ntwo"]],
  ["comments and other fields", [": hello\nid: 7\nretry: 5\nevent: x\n\ndata\n\n"], ["message "]],
  ["blanks: the first one is not part of the text", ["data:a\n\ndata:  b\n\n"], ["message a", "message  b"]],
];

for (const [name, pieces, expected] of CASES) {
  Deno.test(`page: the stream is cut into events: ${name}`, () => {
    const reader = new EventStreamReader();
    const events = pieces.flatMap((piece) => reader.read(piece));
    assertEquals(events.map(({ name, text }) => `${name} ${text}`), [...expected]);
  });
}

Deno.test("page: an event without an end is not gathered for ever", () => {
  const reader = new EventStreamReader();
  const error = assertThrows(() => {
    for (let n = 0; n < 10; n++) reader.read("x".repeat(1_000_000));
  });
  assertEquals(error.message, "Cannot read the stream: an event has no end");
});
