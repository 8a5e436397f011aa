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
  headers,
  message,
} from "../../../harness/h2_peer.ts";
import { answer, ConnectionBed } from "../../../harness/connection_bed.ts";
import { probePath } from "../../../harness/probe.ts";

const ANNOUNCED = ["GOAWAY 2147483647 NO_ERROR", "PING 7765697200000000"];
const PONG = frame(FRAME.PING, 0, Uint8Array.fromHex("7765697200000000"), FLAG.ACK);
const ONLY = "end :status=200 content-type=application/grpc";
const DEADLINE = `${ONLY} grpc-status=4 grpc-message=Deadline exceeded`;
const STOPPING = "grpc-status=14 grpc-message=the server is stopping";
const asked = (id: number, method: string, more: Readonly<Record<string, string>> = {}) =>
  call(id, probePath(method), "x", more);

/** Lets what was promised happen. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
}

Deno.test("Connection: it goes in two steps, and loses no call that came before the second", async () => {
  const bed = new ConnectionBed();
  bed.send(asked(1, "Hold"));
  bed.connection.drain();
  bed.connection.drain();
  const steps = [bed.sent(), bed.send(asked(3, "Echo")), bed.send(asked(5, "Hold"))];
  steps.push(bed.send(PONG, PONG), bed.send(asked(7, "Echo"), asked(9, "Hold")));
  const open = [bed.connection.isClosing];
  for (const reply of bed.probe.held.slice(0, 1)) reply("one");
  await settle();
  steps.push(bed.sent());
  open.push(bed.connection.isClosing);
  for (const reply of bed.probe.held.slice(1)) reply("five");
  await settle();
  steps.push(bed.sent());
  open.push(bed.connection.isClosing);
  assertEquals([steps, open, bed.probe.calls], [
    [
      ANNOUNCED,
      answer(3, "x"),
      [],
      ["GOAWAY 5 NO_ERROR"],
      ["RST_STREAM 7 REFUSED_STREAM", "RST_STREAM 9 REFUSED_STREAM"],
      answer(1, "one"),
      answer(5, "five"),
    ],
    [false, false, true],
    3,
  ]);
});

Deno.test("Connection: one that has nothing to do goes with the second step", () => {
  const bed = new ConnectionBed();
  bed.connection.drain();
  assertEquals([bed.sent(), bed.connection.isClosing], [ANNOUNCED, false]);
  assertEquals([bed.send(PONG), bed.connection.isClosing], [["GOAWAY 0 NO_ERROR"], true]);
});

Deno.test("Connection: who does not answer the PING gets the second step all the same", () => {
  const bed = new ConnectionBed();
  bed.connection.drain();
  bed.connection.finishDraining();
  bed.connection.finishDraining();
  assertEquals([bed.sent(), bed.connection.isClosing], [[...ANNOUNCED, "GOAWAY 0 NO_ERROR"], true]);
});

Deno.test("Connection: another PING than its own is no sign that the first GOAWAY was read", () => {
  const bed = new ConnectionBed();
  bed.connection.drain();
  bed.sent();
  const other = frame(FRAME.PING, 0, new Uint8Array(8), FLAG.ACK);
  assertEquals([bed.send(other), bed.connection.isClosing], [[], false]);
});

Deno.test("Connection: streams of the server end when it goes, those that come late as well", () => {
  const bed = new ConnectionBed();
  bed.send(asked(1, "Watch"), headers(3, callFields(probePath("Chat"))));
  bed.connection.drain();
  const first = bed.sent();
  const late = bed.send(asked(5, "Watch"));
  const second = bed.send(PONG);
  assertEquals([first, late, second, bed.probe.watchers.size, bed.connection.isClosing], [
    [`HEADERS 1 end ${STOPPING}`, `HEADERS 3 ${ONLY} ${STOPPING}`, "RST_STREAM 3 NO_ERROR", ...ANNOUNCED],
    answer(5, "x").slice(0, 2),
    [`HEADERS 5 end ${STOPPING}`, "GOAWAY 5 NO_ERROR"],
    0,
    true,
  ]);
});

Deno.test("Connection: a call whose handler does not answer in time", async () => {
  const bed = new ConnectionBed();
  bed.send(
    asked(1, "Hold", { "grpc-timeout": "50m" }),
    asked(3, "Hold", { "grpc-timeout": "2S" }),
    asked(5, "Hold"),
  );
  bed.send(
    headers(7, callFields(probePath("Hold"), { "grpc-timeout": "1S" })),
    content(7, message("half").subarray(0, 7)),
  );
  const steps = [49, 50, 1_000, 2_000].map((now) => [bed.connection.expire(now), bed.sent()]);
  for (const reply of bed.probe.held) reply("late");
  await settle();
  assertEquals([steps, bed.sent(), bed.outputs > 0], [
    [
      [true, []],
      [true, [`HEADERS 1 ${DEADLINE}`]],
      [true, [`HEADERS 7 ${DEADLINE}`, "RST_STREAM 7 NO_ERROR"]],
      [false, [`HEADERS 3 ${DEADLINE}`]],
    ],
    answer(5, "late"),
    true,
  ]);
});

Deno.test("Connection: half a request is not waited for, whatever it asks for", () => {
  const bed = new ConnectionBed();
  bed.send(
    headers(1, callFields(probePath("Echo"))),
    concatBytes(headers(3, callFields(probePath("Echo"))), content(3, message("whole"))),
    headers(5, callFields(probePath("Watch"))),
    headers(7, callFields(probePath("Echo"), { "content-type": "text/plain" })),
    headers(9, callFields(probePath("Chat"))),
    asked(11, "Hold"),
    headers(13, callFields("/no/method")),
  );
  bed.now = LIMITS.requestMs;
  const before = [bed.connection.expire(LIMITS.requestMs - 1), bed.sent()];
  const after = [bed.connection.expire(LIMITS.requestMs), bed.sent()];
  assertEquals([before, after, [...bed.connection.streams.keys()]], [
    [false, []],
    [false, [1, 3, 5, 7, 13].map((id) => `RST_STREAM ${id} CANCEL`)],
    [9, 11],
  ]);
});

/** Requests that are refused, besides those of the contract of engines, and the lines that answer them. */
const REFUSED: Readonly<Record<string, readonly [request: Uint8Array, lines: readonly string[]]>> = {
  "another content type": [asked(1, "Echo", { "content-type": "application/json" }), [
    "HEADERS 1 :status=415 content-type=text/plain; charset=utf-8 content-length=62",
    "DATA 1 end 62 bytes",
  ]],
  "HEAD": [headers(1, callFields("/", { ":method": "HEAD" }), true), [
    "HEADERS 1 end :status=415 content-type=text/plain; charset=utf-8 content-length=62",
  ]],
  "half a message": [
    concatBytes(headers(1, callFields(probePath("Echo"))), content(1, message("half").subarray(0, 7), true)),
    [`HEADERS 1 ${ONLY} grpc-status=13 grpc-message=Cannot read a request: it ends within a message`],
  ],
  "two messages in two frames": [
    concatBytes(
      headers(1, callFields(probePath("Echo"))),
      content(1, message("1")),
      content(1, message("2"), true),
    ),
    [`HEADERS 1 ${ONLY} grpc-status=12 grpc-message=Cannot read a request: it has more than one message`],
  ],
  "a message above 4 MiB": [
    concatBytes(headers(1, callFields(probePath("Echo"))), content(1, Uint8Array.fromHex("0000400001"))),
    [
      `HEADERS 1 ${ONLY} grpc-status=8 grpc-message=Received message larger than max (4194305 vs 4194304)`,
      "RST_STREAM 1 NO_ERROR",
    ],
  ],
  "compressed without a word of it": [
    concatBytes(headers(1, callFields(probePath("Echo"))), content(1, message("x", true), true)),
    [
      `HEADERS 1 ${ONLY} grpc-status=13 ` +
      "grpc-message=Cannot read a message: it is compressed, but grpc-encoding names no compression",
    ],
  ],
};

for (const [name, [request, lines]] of Object.entries(REFUSED)) {
  Deno.test(`Connection: a request that is refused: ${name}`, () => {
    const bed = new ConnectionBed();
    assertEquals([bed.send(request), bed.probe.calls, bed.connection.streams.size], [[...lines], 0, 0]);
    assertEquals([bed.send(asked(3, "Echo")), bed.faults], [answer(3, "x"), []]);
  });
}

Deno.test("Connection: a refusal is longer than its text by no more than a header may be", () => {
  const bed = new ConnectionBed();
  const [line = ""] = bed.send(call(1, probePath("Refuse"), "日".repeat(5_000)));
  assertEquals(line.length < 4_200, true);
});

Deno.test("Connection: an answer in time leaves nothing to wait for", () => {
  const bed = new ConnectionBed();
  bed.send(asked(1, "Echo", { "grpc-timeout": "1S" }), asked(3, "Hold", { "grpc-timeout": "1S" }), cancel(3));
  assertEquals([bed.connection.expire(1), bed.connection.streams.size], [false, 0]);
});
