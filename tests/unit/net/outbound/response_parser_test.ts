import { assert, assertEquals } from "#assert";
import { Buffer } from "node:buffer";
import { headerText, type ResponseHead } from "../../../../src/net/outbound/response_head.ts";
import { ResponseParser } from "../../../../src/net/outbound/response_parser.ts";
import {
  CHUNKED,
  cut,
  LENGTH,
  OK,
  type Read,
  read,
  readAtRandom,
  type ReadOptions,
} from "../../../harness/answer_reading.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";

const BAD_LENGTH = { status: 200, body: "", state: "HPE_INVALID_CONTENT_LENGTH" };
const BAD_CODING = { status: 200, body: "", state: "HPE_INVALID_TRANSFER_ENCODING" };
const BAD_HEADER = { status: 200, body: "", state: "HPE_INVALID_HEADER_TOKEN" };
const BAD_STATUS = { body: "", state: "HPE_INVALID_STATUS" };
const BAD_VERSION = { body: "", state: "HPE_INVALID_VERSION" };
const NO_HTTP = { body: "", state: "HPE_INVALID_CONSTANT" };
const OVERFLOW = { body: "", state: "HPE_HEADER_OVERFLOW" };
const DONE = { status: 200, body: "ok", state: "clean" };
/** Read as meant, on a connection that is not used again. */
const ODD = { ...DONE, state: "over" };

/** Answers, and what is read of them however they are cut into pieces. */
const ANSWERS: Readonly<Record<string, readonly [answer: string, expected: Read, options?: ReadOptions]>> = {
  "a length": [`${OK}${LENGTH}`, DONE],
  "a length of none": [`${OK}content-length: 0\r\n\r\n`, { status: 200, body: "", state: "clean" }],
  "a length that is not reached": [`${OK}content-length: 3\r\n\r\nok`, {
    status: 200,
    body: "ok",
    state: "open",
  }],
  "a length that the connection cuts": [
    `${OK}content-length: 3\r\n\r\nok`,
    { status: 200, body: "ok", state: "cut" },
    { isEnded: true },
  ],
  "more than the length": [`${OK}${LENGTH}HTTP/1.1 200 OK\r\n`, { ...DONE, state: "over" }],
  "chunks": [`${OK}${CHUNKED}1\r\no\r\n1\r\nk\r\n0\r\n\r\n`, DONE],
  "chunks in many forms": [
    `${OK}Transfer-Encoding:Chunked\r\n\r\n00A ;a="b"\r\n0123456789\r\n1\t\r\nx\r\n0;e\r\nx-t: 1\r\n\r\n`,
    { status: 200, body: "0123456789x", state: "clean" },
  ],
  "chunks of another coding": [
    `${OK}transfer-encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    {
      ...DONE,
      body: "",
    },
  ],
  "a coding without chunks": [
    `${OK}transfer-encoding: chunked, gzip\r\n\r\nok`,
    { ...DONE, state: "over" },
    { isEnded: true },
  ],
  "no length": [`${OK}\r\nok`, { ...DONE, state: "open" }],
  "no length, to the end": [`${OK}\r\nok`, { ...DONE, state: "over" }, { isEnded: true }],
  "HTTP/1.0": [`HTTP/1.0 200 OK\r\n${LENGTH}`, { ...DONE, state: "over" }],
  "HTTP/2.0, which is none": [`HTTP/2.0 200\r\n${LENGTH}`, { ...DONE, state: "over" }],
  "a connection that is closed": [`${OK}Connection: Keep-Alive, Close\r\n${LENGTH}`, {
    ...DONE,
    state: "over",
  }],
  "a connection that is kept": [`${OK}connection: keep-alive\r\n${LENGTH}`, DONE],
  "the answer to HEAD": [`${OK}content-length: 100\r\n\r\n`, { status: 200, body: "", state: "clean" }, {
    isHeadOnly: true,
  }],
  "204": ["HTTP/1.1 204 None\r\ncontent-length: 0\r\n\r\n", { status: 204, body: "", state: "clean" }],
  "204 with a length": ["HTTP/1.1 204 None\r\ncontent-length: 2\r\n\r\n", {
    status: 204,
    body: "",
    state: "over",
  }],
  "204 in chunks": [`HTTP/1.1 204 None\r\n${CHUNKED}`, { status: 204, body: "", state: "over" }],
  "chunks in chunks": [`${OK}transfer-encoding: chunked\r\n${CHUNKED}0\r\n\r\n`, BAD_CODING],
  "chunks in chunks, in a list": [`${OK}transfer-encoding: chunked, Chunked\r\n\r\n0\r\n\r\n`, BAD_CODING],
  "a CR behind a size": [`${OK}${CHUNKED}2;\rx\r\nok\r\n`, {
    status: 200,
    body: "",
    state: "HPE_INVALID_CHUNK_SIZE",
  }],
  "a NUL behind the last chunk": [`${OK}${CHUNKED}0\r\nx-t: \0\r\n\r\n`, { ...ODD, body: "" }],
  "an end behind the last chunk": [`${OK}${CHUNKED}0\r\n`, { ...ODD, body: "" }, { isEnded: true }],
  "a status of zeros": [`HTTP/1.1 000 Odd\r\n${LENGTH}`, BAD_STATUS],
  "304 in chunks": [`HTTP/1.1 304 Same\r\n${CHUNKED}`, { status: 304, body: "", state: "clean" }],
  "101": ["HTTP/1.1 101 Switch\r\nupgrade: x\r\n\r\nraw", { status: 101, body: "", state: "over" }],
  "999": ["HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n", { status: 999, body: "", state: "clean" }],
  "answers before the answer": [
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: a\r\n\r\n${OK}${LENGTH}`,
    DONE,
  ],
  "only answers before the answer": ["HTTP/1.1 100 Continue\r\n\r\n".repeat(100), {
    body: "",
    state: "open",
  }],
  "too many answers before the answer": ["HTTP/1.1 100 Continue\r\n\r\n".repeat(101), OVERFLOW],
  "empty lines in front": [`\r\n\r\n${OK}${LENGTH}`, DONE],
  "no reason": [`HTTP/1.1 200\r\n${LENGTH}`, DONE],
  "an empty reason": [`HTTP/1.1 200 \r\n${LENGTH}`, DONE],
  "a reason beyond ASCII": [`HTTP/1.1 200 \xfc\r\n${LENGTH}`, DONE],
  "nothing": ["", { body: "", state: "cut" }, { isEnded: true }],
  "half a status line": ["HTTP/1.1 200 O", { body: "", state: "cut" }, { isEnded: true }],
  "half a head": [`${OK}content-len`, { status: 200, body: "", state: "cut" }, { isEnded: true }],
  "the longest head": [`${OK}a: ${"x".repeat(16_341)}\r\n${LENGTH}`, DONE],
  "a head of more than 16 KiB": [
    `${OK}a: ${"x".repeat(9_000)}\r\na: ${"x".repeat(9_000)}\r\n${LENGTH}`,
    DONE,
  ],
  "the longest header": [`${OK}a: ${"x".repeat(16_380)}\r\n${LENGTH}`, DONE],
  "a header that is too long": [`${OK}a: ${"x".repeat(16_381)}\r\n${LENGTH}`, ODD],
  "a header of 200 kB": [`${OK}a: ${"x".repeat(200_000)}\r\n${LENGTH}`, ODD],
  "a length that is too long": [
    `${OK}content-length: ${" ".repeat(20_000)}2\r\n\r\nok`,
    BAD_HEADER,
  ],
  "a head that is too long": [`${OK}${`a: ${"x".repeat(9_995)}\r\n`.repeat(105)}${LENGTH}`, {
    ...BAD_HEADER,
    state: "HPE_HEADER_OVERFLOW",
  }],
  "the most headers": [`${OK}${"a:\r\n".repeat(127)}${LENGTH}`, DONE],
  "more headers": [`${OK}${"a:\r\n".repeat(300)}${LENGTH}`, ODD],
  "too many lengths": [`${OK}${"content-length: 2\r\n".repeat(300)}${LENGTH}`, BAD_HEADER],
  "a line without an end": [`${OK}a: ${"x".repeat(20_000)}`, { status: 200, body: "", state: "open" }],
  "a reason of 20 kB": [`HTTP/1.1 200 ${"x".repeat(20_000)}`, OVERFLOW],
  "empty lines without an end": ["\r\n".repeat(10_000), OVERFLOW],
  "another protocol": ["SSH-2.0-OpenSSH_9\r\n", NO_HTTP],
  "another protocol, without an end": ["\x15\x03\x01", NO_HTTP],
  "small letters": [`http/1.1 200 OK\r\n${LENGTH}`, NO_HTTP],
  "a version that is none": [`HTTP/1.2 200 OK\r\n${LENGTH}`, BAD_VERSION],
  "a tab behind the version": [`HTTP/1.1\t200 OK\r\n${LENGTH}`, BAD_VERSION],
  "two digits": [`HTTP/1.1 20 OK\r\n${LENGTH}`, BAD_STATUS],
  "four digits": [`HTTP/1.1 2000 OK\r\n${LENGTH}`, BAD_STATUS],
  "two spaces": [`HTTP/1.1  200 OK\r\n${LENGTH}`, BAD_STATUS],
  "lines that end with LF": ["HTTP/1.1 200 OK\ncontent-length: 2\n\nok", ODD],
  "an empty line that ends with LF": [`${OK}content-length: 2\r\n\nok`, ODD],
  "lines that end with LF, before the answer": [`HTTP/1.1 103 Early\nlink: a\n\n${OK}${LENGTH}`, DONE],
  "a line that goes on": [`${OK}x-a: b\r\n c\r\n${LENGTH}`, ODD],
  "a length that goes on": [`${OK}content-length:\r\n\t2\r\n\r\nok`, ODD],
  "a length that goes on for too long": [
    `${OK}content-length: 2\r\n${` ${"x".repeat(9_000)}\r\n`.repeat(2)}\r\nok`,
    BAD_HEADER,
  ],
  "a line that goes on from nothing": [`${OK} c\r\n${LENGTH}`, ODD],
  "a line that goes on from one that is none": [`${OK}bad header\r\n c: d\r\n${LENGTH}`, ODD],
  "no colon": [`${OK}bad header\r\n${LENGTH}`, ODD],
  "no name": [`${OK}: b\r\n${LENGTH}`, ODD],
  "a space behind the name": [`${OK}content-length : 2\r\n\r\nok`, ODD],
  "a NUL": [`${OK}x-a: b\0c\r\n${LENGTH}`, ODD],
  "a CR": [`${OK}x-a: b\rc\r\n${LENGTH}`, ODD],
  "a NUL in a length": [`${OK}content-length: 2\0\r\n\r\nok`, BAD_HEADER],
  "a NUL in the reason": [`HTTP/1.1 200 O\0K\r\n${LENGTH}`, ODD],
  "two equal lengths": [`${OK}content-length: 2\r\n${LENGTH}`, ODD],
  "two lengths": [`${OK}content-length: 3\r\n${LENGTH}`, BAD_LENGTH],
  "a list of equal lengths": [`${OK}content-length: 2, 2\r\n\r\nok`, ODD],
  "a list of lengths": [`${OK}content-length: 2, 3\r\n\r\nok`, BAD_LENGTH],
  "no number": [`${OK}content-length: -2\r\n\r\nok`, BAD_LENGTH],
  "an empty length": [`${OK}content-length:\r\n\r\nok`, BAD_LENGTH],
  "a length beyond all numbers": [`${OK}content-length: 9999999999999999\r\n\r\nok`, BAD_LENGTH],
  "a length and chunks": [`${OK}content-length: 2\r\n${CHUNKED}3\r\nall\r\n0\r\n\r\n`, {
    ...ODD,
    body: "all",
  }],
  "a length and a coding that is none": [`${OK}transfer-encoding: identity\r\n${LENGTH}`, ODD],
  "a length and chunks, of an answer before": [
    `HTTP/1.1 100 Continue\r\ncontent-length: 2\r\n${CHUNKED}${OK}${LENGTH}`,
    DONE,
  ],
  "no size": [`${OK}${CHUNKED}zz\r\n`, { status: 200, body: "", state: "HPE_INVALID_CHUNK_SIZE" }],
  "an empty size": [`${OK}${CHUNKED}\r\n`, { status: 200, body: "", state: "HPE_INVALID_CHUNK_SIZE" }],
  "a size below none": [`${OK}${CHUNKED}-1\r\n`, { status: 200, body: "", state: "HPE_INVALID_CHUNK_SIZE" }],
  "a size beyond all numbers": [`${OK}${CHUNKED}${"f".repeat(13)}\r\n`, {
    status: 200,
    body: "",
    state: "HPE_INVALID_CHUNK_SIZE",
  }],
  "a size that is too long": [`${OK}${CHUNKED}1;${"x".repeat(300)}`, {
    status: 200,
    body: "",
    state: "HPE_INVALID_CHUNK_SIZE",
  }],
  "chunks whose lines end with LF": [`${OK}${CHUNKED}2\nok\n0\n\n`, ODD],
  "a chunk that is longer than its size": [`${OK}${CHUNKED}2\r\nokk\r\n`, {
    status: 200,
    body: "ok",
    state: "HPE_HEADER_OVERFLOW",
  }],
  "too much behind the last chunk": [`${OK}${CHUNKED}0\r\n${"x-t: 1\r\n".repeat(3_000)}`, {
    ...ODD,
    body: "",
  }],
};

for (const [name, [answer, expected, options = {}]] of Object.entries(ANSWERS)) {
  Deno.test(`an answer is read however it is cut: ${name}`, () => {
    const bytes = Buffer.from(answer, "latin1");
    assertEquals(read([bytes], options), expected);
    // A million pieces would take seconds; 7 bytes end at every place of lines of 10,000.
    const shortest = bytes.length > 50_000 ? 7 : 1;
    assertEquals(read(cut(bytes, () => shortest), options), expected);
    const random = seededRandom(1);
    for (let count = 0; count < 20; count++) {
      assertEquals(read(cut(bytes, () => 1 + Math.floor(random() ** 3 * 2_000)), options), expected);
    }
  });
}

Deno.test("of bytes at random the same is read however they are cut, and nothing else is thrown", () =>
  readAtRandom(300, 7));

Deno.test("of an answer of many small chunks no more is looked at than its lines may hold", () => {
  const chunks = 100_000;
  const bytes = Buffer.from(`${OK}${CHUNKED}${"1\r\nx\r\n".repeat(chunks)}0\r\n\r\n`, "latin1");
  let most = 0;
  let length = 0;
  const reader = new ResponseParser({
    onHead: () => {},
    onBody(piece) {
      length += piece.byteLength;
      most = Math.max(most, piece.byteLength);
    },
  }, false);
  let looked = 0;
  for (const piece of cut(bytes, () => 65_536)) {
    const textOf = piece.toString.bind(piece);
    piece.toString = (encoding, from = 0, to = piece.length) => {
      looked += to - from;
      return textOf(encoding, from, to);
    };
    reader.push(piece);
  }
  assertEquals([length, most, reader.isClean], [chunks, 1, true]);
  // For each chunk no more than the longest line that one may begin with: to look at the whole piece would be 32,768.
  assert(looked > chunks && looked < 300 * chunks, `looked at ${looked} bytes`);
});

Deno.test("headers keep their order, in lower case and without the spaces around them", () => {
  const heads: ResponseHead[] = [];
  const reader = new ResponseParser({ onHead: (head) => void heads.push(head), onBody: () => {} }, false);
  reader.push(Buffer.from(`${OK}X-A: \t 1 \t\r\nx-b:\r\nx-A:2  3\r\nx-c: \xa0\xfc\r\n${LENGTH}`, "latin1"));
  const [head] = heads;
  assert(head !== undefined);
  assertEquals(head.headers, [["x-a", "1"], ["x-b", ""], ["x-a", "2  3"], ["x-c", "\xa0\xfc"], [
    "content-length",
    "2",
  ]]);
  assertEquals([headerText(head, "x-a"), headerText(head, "x-b"), headerText(head, "x-d")], [
    "1, 2  3",
    "",
    undefined,
  ]);
});
