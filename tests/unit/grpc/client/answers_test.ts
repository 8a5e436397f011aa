import { assertEquals } from "#assert";
import { gzipSync } from "node:zlib";
import { errorName } from "../../../../src/grpc/client/call_status.ts";
import type { GrpcError } from "../../../../src/grpc/grpc_service.ts";
import { ERROR_CODES, FLAG, FRAME } from "../../../../src/grpc/native/frames.ts";
import {
  answerHeaders,
  answerTrailers,
  CALL_PATH,
  ClientBed,
  fieldsOf,
  outcomeOf,
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
  uint32,
} from "../../../harness/h2_peer.ts";

const NO_BYTES = new Uint8Array(0);
const only = (fields: Readonly<Record<string, string>>): Uint8Array =>
  headers(1, fieldsOf({ ":status": "200", "content-type": "application/grpc", ...fields }), true);
const http = (status: string, contentType = "text/html"): Uint8Array =>
  headers(1, fieldsOf({ ":status": status, "content-type": contentType }));
const reset = (code: keyof typeof ERROR_CODES): Uint8Array =>
  frame(FRAME.RST_STREAM, 1, uint32(ERROR_CODES[code]));
const compressed = (payload: Uint8Array, encoding: string): Uint8Array =>
  concatBytes(
    answerHeaders(1, { "grpc-encoding": encoding }),
    content(1, message(payload, true)),
    answerTrailers(1),
  );
const padded = (payload: Uint8Array): Uint8Array =>
  frame(FRAME.DATA, 1, concatBytes(Uint8Array.of(3), payload, new Uint8Array(3)), FLAG.PADDED);
const bomb = gzipSync(new Uint8Array(5_000_000));

interface Case {
  readonly name: string;
  readonly sent: readonly Uint8Array[];
  readonly outcome: string;
}

const OF_HTTP: readonly (readonly [status: string, code: string])[] = [
  ["204", "UNKNOWN"],
  ["302", "UNKNOWN"],
  ["400", "INTERNAL"],
  ["401", "UNAUTHENTICATED"],
  ["403", "PERMISSION_DENIED"],
  ["404", "UNIMPLEMENTED"],
  ["429", "UNAVAILABLE"],
  ["500", "UNKNOWN"],
  ["502", "UNAVAILABLE"],
  ["503", "UNAVAILABLE"],
  ["504", "UNAVAILABLE"],
];

const CASES: readonly Case[] = [
  { name: "one message", sent: [wholeAnswer(1, "hello")], outcome: "hello" },
  {
    name: "an empty message, in their own frames",
    sent: [answerHeaders(1), content(1, message("")), answerTrailers(1)],
    outcome: "",
  },
  {
    name: "a message in pieces, one of them padded and one empty",
    sent: [answerHeaders(1), content(1, message("hello").subarray(0, 3)), content(1, NO_BYTES)]
      .concat([padded(message("hello").subarray(3)), answerTrailers(1)]),
    outcome: "hello",
  },
  {
    name: "headers of 103 before those of the answer",
    sent: [headers(1, fieldsOf({ ":status": "103" })), wholeAnswer(1, "hello")],
    outcome: "hello",
  },
  {
    name: "header blocks of many frames",
    sent: [
      blockFrames(
        1,
        headerBlock(fieldsOf({ ":status": "200", "content-type": "application/grpc+proto" })),
        1,
      ),
      content(1, message("hello")),
      answerTrailers(1),
    ],
    outcome: "hello",
  },
  {
    name: "a message that is compressed with gzip",
    sent: [compressed(gzipSync("hello"), "gzip")],
    outcome: "hello",
  },
  {
    name: "a status without a message",
    sent: [only({ "grpc-status": "5", "grpc-message": "no such thing" })],
    outcome: "NOT_FOUND: no such thing",
  },
  {
    name: "a text that is percent-encoded, well and badly",
    sent: [only({ "grpc-status": "9", "grpc-message": "50%25 of n%C3%B6 %zz %" })],
    outcome: "FAILED_PRECONDITION: 50% of nö %zz %",
  },
  {
    name: "a status that fails after a message",
    sent: [answerHeaders(1), content(1, message("hello")), answerTrailers(1, { "grpc-status": "15" })],
    outcome: "DATA_LOSS: ",
  },
  {
    name: "a status of no known number",
    sent: [only({ "grpc-status": "17", "grpc-message": "new" })],
    outcome: 'UNKNOWN: the server sent the unknown grpc-status "17": new',
  },
  {
    name: "a status that is no number",
    sent: [only({ "grpc-status": "OK" })],
    outcome: 'UNKNOWN: the server sent the unknown grpc-status "OK"',
  },
  {
    name: "a status of gRPC with one of HTTP",
    sent: [headers(1, fieldsOf({ ":status": "429", "grpc-status": "8", "grpc-message": "slow down" }), true)],
    outcome: "RESOURCE_EXHAUSTED: slow down",
  },
  ...OF_HTTP.map(([status, code]): Case => ({
    name: `HTTP status ${status}`,
    sent: [http(status), content(1, new TextEncoder().encode("<html>"), true)],
    outcome: `${code}: the server answered with HTTP status ${status} instead of gRPC`,
  })),
  {
    name: "a page with HTTP status 200",
    sent: [http("200"), content(1, message("hello"), true)],
    outcome: 'UNKNOWN: the server answered with content-type "text/html" instead of gRPC',
  },
  {
    name: "an HTTP status that is no number",
    sent: [http("abc")],
    outcome: "UNKNOWN: the server answered with HTTP status 0 instead of gRPC",
  },
  {
    name: "trailers without a status",
    sent: [answerHeaders(1), content(1, message("hello")), headers(1, fieldsOf({ other: "x" }), true)],
    outcome: "INTERNAL: the server ended the call without a status",
  },
  {
    name: "headers that end the call without a status",
    sent: [only({})],
    outcome: "INTERNAL: the server ended the call without a status",
  },
  {
    name: "no trailers",
    sent: [answerHeaders(1), content(1, message("hello"), true)],
    outcome: "INTERNAL: the server ended the call without a status",
  },
  {
    name: "trailers in the middle of a message",
    sent: [answerHeaders(1), content(1, message("hello").subarray(0, 8)), answerTrailers(1)],
    outcome: "INTERNAL: the server ended the call in the middle of a message",
  },
  {
    name: "the end in the middle of a message",
    sent: [answerHeaders(1), content(1, message("hello").subarray(0, 8), true)],
    outcome: "INTERNAL: the server ended the call in the middle of a message",
  },
  {
    name: "success without a message",
    sent: [only({ "grpc-status": "0" })],
    outcome: "UNIMPLEMENTED: the server answered without a message",
  },
  {
    name: "two messages",
    sent: [answerHeaders(1), content(1, message("one")), content(1, message("two")), answerTrailers(1)],
    outcome: "UNIMPLEMENTED: the server answered with more than one message",
  },
  {
    name: "two messages in one frame",
    sent: [answerHeaders(1), content(1, concatBytes(message("one"), message("two"))), answerTrailers(1)],
    outcome: "UNIMPLEMENTED: the server answered with more than one message",
  },
  {
    name: "a compressed message without an announcement",
    sent: [compressed(gzipSync("hello"), "identity")],
    outcome: "INTERNAL: Cannot read a message: it is compressed, but grpc-encoding names no compression",
  },
  {
    name: "a compression that was not offered",
    sent: [compressed(gzipSync("hello"), "snappy")],
    outcome: 'UNIMPLEMENTED: Received message compressed with unsupported encoding "snappy"',
  },
  {
    name: "a compressed message that is no such",
    sent: [compressed(Uint8Array.of(1, 2, 3), "gzip")],
    outcome: "INTERNAL: Failed to decompress message",
  },
  {
    name: "a compressed message that is too large",
    sent: [compressed(bomb, "gzip")],
    outcome: "RESOURCE_EXHAUSTED: Received message that decompresses to a size larger than 4194304",
  },
  {
    name: "a message that announces too much",
    sent: [answerHeaders(1), content(1, concatBytes(Uint8Array.of(0), uint32(4_194_305)))],
    outcome: "RESOURCE_EXHAUSTED: Received message larger than max (4194305 vs 4194304)",
  },
  {
    name: "a message with an unknown first byte",
    sent: [answerHeaders(1), content(1, Uint8Array.of(2, 0, 0, 0, 0))],
    outcome: "INTERNAL: Cannot read a message: its first byte is unknown",
  },
  ...([
    ["NO_ERROR", "INTERNAL"],
    ["PROTOCOL_ERROR", "INTERNAL"],
    ["INTERNAL_ERROR", "INTERNAL"],
    ["FLOW_CONTROL_ERROR", "INTERNAL"],
    ["STREAM_CLOSED", "INTERNAL"],
    ["REFUSED_STREAM", "UNAVAILABLE"],
    ["CANCEL", "CANCELLED"],
    ["ENHANCE_YOUR_CALM", "RESOURCE_EXHAUSTED"],
    ["INADEQUATE_SECURITY", "PERMISSION_DENIED"],
    ["HTTP_1_1_REQUIRED", "INTERNAL"],
  ] as const).map(([name, code]): Case => ({
    name: `a reset with ${name}`,
    sent: [answerHeaders(1), content(1, message("hello")), reset(name)],
    outcome: `${code}: the server reset the call with ${name}`,
  })),
  {
    name: "a reset with an unknown code",
    sent: [frame(FRAME.RST_STREAM, 1, uint32(77))],
    outcome: "INTERNAL: the server reset the call with code 77",
  },
];

for (const { name, sent, outcome } of CASES) {
  Deno.test(`answer: ${name}`, async () => {
    const { bed, client, call } = await ClientBed.calling();
    bed.send(...sent);
    assertEquals(await call, outcome);
    await bed.frames();
    // The connection serves the next call.
    assertEquals(await bed.answered(client, wholeAnswer(3, "next")), "next");
  });
}

Deno.test("answer: two equal ones are not decoded twice, and the next that differs is", async () => {
  const { bed, client } = await ClientBed.open();
  const outcomes: string[] = [];
  for (const [index, status] of ["0", "0", "0", "7", "0", "0"].entries()) {
    const id = 2 * index + 1;
    const trailers = answerTrailers(id, { "grpc-status": status });
    const answer = concatBytes(answerHeaders(id), content(id, message("x")), trailers);
    outcomes.push(await bed.answered(client, answer));
  }
  assertEquals(outcomes, ["x", "x", "x", "PERMISSION_DENIED: ", "x", "x"]);
});

Deno.test("answer: an error has the metadata of the trailers, without the fields of gRPC", async () => {
  const { bed, client } = await ClientBed.open();
  const call = client.unary(CALL_PATH, NO_BYTES).then(() => undefined, (error: GrpcError) => error);
  await bed.frames();
  const details = {
    "grpc-status": "3",
    "grpc-message": "no",
    "grpc-status-details-bin": "CAMSAm5v",
    "x-a": "1",
  };
  bed.send(answerHeaders(1, { "x-head": "2" }), answerTrailers(1, details));
  assertEquals([...(await call)?.metadata ?? []], [["grpc-status-details-bin", "CAMSAm5v"], ["x-a", "1"]]);
});

Deno.test("answer: error codes of HTTP/2 have names", () => {
  assertEquals([0, 11, 13, 14].map(errorName), [
    "NO_ERROR",
    "ENHANCE_YOUR_CALM",
    "HTTP_1_1_REQUIRED",
    "code 14",
  ]);
});

/** Trailers as a block of HPACK. */
const trailersBlock = (id: number, block: Uint8Array): Uint8Array =>
  concatBytes(answerHeaders(id), content(id, message("x")), headers(id, block, true));
/** `grpc-status` as a new entry of the table, and an entry by its index. */
const entered = (status: string): Uint8Array =>
  concatBytes(Uint8Array.of(0x40), hpackText("grpc-status"), hpackText(status));
const indexed = (index: number): Uint8Array => Uint8Array.of(0x80 + index);

Deno.test("answer: equal blocks mean something else after the table has changed", async () => {
  const { bed, client } = await ClientBed.open();
  const outcomes: string[] = [];
  const blocks = [entered("0"), indexed(62), indexed(62), entered("7"), indexed(62), indexed(63)]
    .concat([entered("7"), entered("7"), indexed(65)]);
  for (const [index, block] of blocks.entries()) {
    outcomes.push(await bed.answered(client, trailersBlock(2 * index + 1, block)));
  }
  const denied = "PERMISSION_DENIED: ";
  assertEquals(outcomes, ["x", "x", "x", denied, denied, "x", denied, denied, "x"]);
});

Deno.test("answer: equal trailers mean something else after headers have changed the table", async () => {
  const { bed, client } = await ClientBed.open();
  const outcomes: string[] = [];
  const plain = headerBlock(fieldsOf({ ":status": "200", "content-type": "application/grpc" }));
  const changing = concatBytes(plain, entered("7"));
  for (
    const [index, [head, trailers]] of [
      [plain, entered("0")],
      [plain, indexed(62)],
      [plain, indexed(62)],
      [changing, indexed(62)],
    ].entries()
  ) {
    const id = 2 * index + 1;
    const end = headers(id, trailers ?? NO_BYTES, true);
    const answer = concatBytes(headers(id, head ?? NO_BYTES), content(id, message("x")), end);
    outcomes.push(await bed.answered(client, answer));
  }
  assertEquals(outcomes, ["x", "x", "x", "PERMISSION_DENIED: "]);
});

Deno.test("answer: a whole one for a call whose answer has begun is an error of the server", async () => {
  const { bed, client } = await ClientBed.open();
  const calls = [1, 2].map(() => outcomeOf(client.unary(CALL_PATH, NO_BYTES)));
  await bed.frames();
  bed.send(wholeAnswer(1, "first"), answerHeaders(3), wholeAnswer(3, "second"));
  assertEquals(await Promise.all(calls), [
    "first",
    "INTERNAL: the server broke HTTP/2: trailers with :status",
  ]);
});

Deno.test("answer: the limit of a call applies to its message, whichever way it arrives", async () => {
  const { bed, client } = await ClientBed.open();
  const calls = [5, 5, 4, 4].map((maxMessageBytes) => client.unary(CALL_PATH, NO_BYTES, { maxMessageBytes }));
  const outcomes = calls.map(outcomeOf);
  await bed.frames();
  bed.send(wholeAnswer(1, "hello"), wholeAnswer(3, "hello"), wholeAnswer(5, "hello"), wholeAnswer(7, "hell"));
  const refused = "RESOURCE_EXHAUSTED: Received message larger than max (5 vs 4)";
  assertEquals(await Promise.all(outcomes), ["hello", "hello", refused, "hell"]);
});

Deno.test("answer: the window of the connection is refilled, whatever becomes of the bytes", async () => {
  const { bed, client } = await ClientBed.open();
  const big = "x".repeat(16_000);
  const refills: number[] = [];
  const refilled = async () => {
    const lines = await bed.frames();
    refills.push(lines.filter((line) => line.startsWith("WINDOW_UPDATE 0")).length);
  };
  let id = -1;
  for (const kind of ["whole", "in frames", "late"]) {
    for (let count = 0; count < 140; count++) {
      id += 2;
      const stop = new AbortController();
      const call = outcomeOf(client.unary(CALL_PATH, NO_BYTES, { signal: stop.signal }));
      if (kind === "late") stop.abort();
      if (kind === "in frames") bed.send(answerHeaders(id), content(id, message(big)), answerTrailers(id));
      else bed.send(wholeAnswer(id, big));
      assertEquals(await call, kind === "late" ? "CANCELLED: the call was cancelled" : big);
    }
    await refilled();
  }
  assertEquals(refills, [1, 1, 1]);
});
