import { assertEquals, assertThrows } from "#assert";
import { Buffer } from "node:buffer";
import { McReplyReader } from "../../../../src/cache/mc/reply_reader.ts";

/** No counter, with what would be an end of line and an end of the answer in a shorter one. */
const LONG_VALUE = `\r\nEND\r\n${"x".repeat(3_990)}\r\n`;
const LONG_ERROR = `SERVER_ERROR ${"x".repeat(1_000)}`;

const READ: readonly [name: string, text: string, replies: readonly string[]][] = [
  ["a number", "12\r\n", ["12"]],
  ["the largest number", "18446744073709551615\r\n", ["18446744073709551615"]],
  ["words", "STORED\r\nNOT_STORED\r\nNOT_FOUND\r\nDELETED\r\n", [
    "STORED",
    "NOT_STORED",
    "NOT_FOUND",
    "DELETED",
  ]],
  ["a key that is not there", "END\r\n", ["END"]],
  ["a value", "VALUE key 0 3\r\n12 \r\nEND\r\n5\r\n", ["VALUE 12 ", "5"]],
  ["a value with its version", "VALUE key 0 1 77\r\n1\r\nEND\r\n", ["VALUE 1"]],
  ["a key with a byte that is a space elsewhere", "VALUE à 0 1\r\n1\r\nEND\r\n", ["VALUE 1"]],
  ["an empty value", "VALUE key 0 0\r\n\r\nEND\r\n", ["VALUE "]],
  ["a value that holds an end of line", "VALUE key 7 6\r\nEND\r\n1\r\nEND\r\n", ["VALUE END\r\n1"]],
  ["a value that is too long for a counter", `VALUE key 0 3999\r\n${LONG_VALUE}\r\nEND\r\n12\r\n`, [
    "VALUE 3999 bytes",
    "12",
  ]],
  ["a value that is broken off by an error", "VALUE key 0 1\r\n1\r\nSERVER_ERROR full\r\n", [
    "SERVER_ERROR full",
  ]],
  ["errors", `ERROR\r\nCLIENT_ERROR bad\r\n${LONG_ERROR}\r\n`, ["ERROR", "CLIENT_ERROR bad", LONG_ERROR]],
  ["its own error kind", "ERROR Too many open connections\r\n", ["ERROR Too many open connections"]],
  ["a greeting", "VERSION 1.6.18\r\n", ["VERSION 1.6.18"]],
];

for (const [name, text, replies] of READ) {
  Deno.test(`mc reply reader: ${name}, in one piece and byte by byte`, () => {
    assertEquals(new McReplyReader().read(Buffer.from(text)), replies);
    const reader = new McReplyReader();
    const pieces = [...text].flatMap((byte) => reader.read(Buffer.from(byte)));
    assertEquals(pieces, replies);
  });
}

Deno.test("mc reply reader: nothing is kept of a value as long as a server takes", () => {
  const reader = new McReplyReader();
  const piece = Buffer.alloc(2 ** 20);
  assertEquals(reader.read("VALUE key 0 104857600\r\n"), []);
  for (let count = 0; count < 100; count++) assertEquals(reader.read(piece), []);
  assertEquals(reader.read("\r\nEND\r\n"), ["VALUE 104857600 bytes"]);
});

const UNREADABLE: readonly [name: string, text: string, shown: string][] = [
  ["another protocol", "HTTP/1.1 400 Bad Request\r\n", '"HTTP/1.1 400 Bad Request"'],
  ["an empty line", "\r\n", '""'],
  ["a number of more than 64 bits", "184467440737095516150\r\n", '"184467440737095516150"'],
  ["a number below 0", "-1\r\n", '"-1"'],
  ["a value of no length", "VALUE key 0 x\r\n", '"VALUE key 0 x"'],
  ["a value that no server takes", "VALUE key 0 1073741825\r\n", '"VALUE key 0 1073741825"'],
  ["a long value longer than it was said", `VALUE key 0 1025\r\n${"x".repeat(1_026)}\r\n`, '"x"'],
  ["a value longer than it was said", "VALUE key 0 1\r\n12\r\nEND\r\n", '"12\\r\\nEND\\r\\n"'],
  ["two values for one key", "VALUE a 0 1\r\n1\r\nVALUE b 0 1\r\n1\r\nEND\r\n", '"VALUE b 0 1"'],
  ["a value without its end", "VALUE key 0 1\r\n1\r\n12\r\n", '"12"'],
  ["a line without end", "x".repeat(4_000), `"${"x".repeat(40)}"`],
  ["an error without end", `SERVER_ERROR ${"x".repeat(2_100)}\r\n`, `"SERVER_ERROR ${"x".repeat(27)}"`],
];

for (const [name, text, shown] of UNREADABLE) {
  Deno.test(`mc reply reader: ${name} is not the protocol`, () => {
    const { message } = assertThrows(() => new McReplyReader().read(Buffer.from(text)));
    assertEquals(message, `it sent ${shown}, which is not a reply`);
  });
}
