import { assertEquals, assertMatch, assertThrows } from "#assert";
import { Buffer } from "node:buffer";
import {
  ReplyError,
  respArgument,
  respCommand,
  RespReader,
  RespWriter,
} from "../../../../src/cache/kv/resp.ts";

/** The replies in these pieces; an error stands as its text. */
function repliesIn(...pieces: string[]): unknown[] {
  const reader = new RespReader();
  const replies: unknown[] = [];
  for (const piece of pieces) {
    reader.read(
      Buffer.from(piece),
      (reply) => replies.push(reply instanceof ReplyError ? reply.message : reply),
    );
  }
  return replies;
}

const STREAM = ":12\r\n:-3\r\n+OK\r\n$5\r\nhé\r\n\r\n$-1\r\n*-1\r\n-ERR no\r\n*0\r\n" +
  "*3\r\n:0\r\n*2\r\n$1\r\na\r\n:7001\r\n$0\r\n\r\n:9223372036854775807\r\n";
/** A value has one character a byte. */
const REPLIES = [12, -3, "OK", "h\u00c3\u00a9\r\n", null, null, "ERR no", [], [0, ["a", 7001], ""], 2 ** 63];

Deno.test("kv protocol: replies are the same wherever the stream is cut", () => {
  assertEquals(repliesIn(STREAM), REPLIES);
  assertEquals(repliesIn(...[...STREAM].slice(0, 200)), REPLIES);
});

Deno.test("kv protocol: a long text may come in many pieces", () => {
  const text = "x".repeat(300_000);
  const stream = `$${text.length}\r\n${text}\r\n:1\r\n`;
  const pieces = Array.from({ length: 31 }, (_, at) => stream.slice(at * 10_000, (at + 1) * 10_000));
  assertEquals(repliesIn(...pieces), [text, 1]);
});

for (
  const [name, text] of [
    ["another protocol", "HTTP/1.1 400 Bad Request\r\n"],
    ["a number of letters", ":12a\r\n"],
    ["a number of nothing", ":\r\n"],
    ["a line without its end", ":1\rx"],
    ["a text without its end", "$1\r\nabc"],
    ["a text beyond the limit", "$999999999999\r\nabc"],
    ["lists in lists", "*1\r\n".repeat(20)],
    ["a line without end", "+".repeat(2 ** 20 + 2)],
  ] as const
) {
  Deno.test(`kv protocol: ${name} is refused`, () => {
    assertMatch(assertThrows(() => repliesIn(text)).message, /^it sent /);
  });
}

Deno.test("kv protocol: a command has the lengths of its bytes", () => {
  for (const text of ["", "a", "a_é", "é", "\u007f", "\u0080", "a".repeat(5_000)]) {
    assertEquals(new RespWriter().argument(text).finish(), respArgument(text), text);
  }
  const command = new TextDecoder().decode(respCommand("GET", respArgument("é")));
  assertEquals(command, "*2\r\n$3\r\nGET\r\n$2\r\né\r\n");
});

Deno.test("kv protocol: the bytes of a command stay as they are until they are given back", () => {
  const taken = Array.from({ length: 12 }, (_, index) => new RespWriter().text(`command ${index}`).take());
  const texts = () => taken.map((bytes) => new TextDecoder().decode(bytes)).join();
  const before = texts();
  assertEquals(before, Array.from({ length: 12 }, (_, index) => `command ${index}`).join());
  new RespWriter().text("another one, which is longer").take();
  assertEquals(texts(), before);
  for (const bytes of taken) RespWriter.give(bytes);
  const [one, two] = [new RespWriter().text("one").take(), new RespWriter().text("two").take()];
  assertEquals([one, two].map((bytes) => new TextDecoder().decode(bytes)), ["one", "two"]);
});
