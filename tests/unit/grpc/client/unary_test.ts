import { assertEquals } from "#assert";
import { ClientCall } from "../../../../src/grpc/client/client_call.ts";
import {
  answerHeaders,
  answerTrailers,
  CALL_PATH,
  ClientBed,
  outcomeOf,
  wholeAnswer,
} from "../../../harness/client_bed.ts";
import {
  concatBytes,
  content,
  frame,
  message,
  PEER_SETTING,
  uint32,
  windowUpdate,
} from "../../../harness/h2_peer.ts";
import { ERROR_CODES, FRAME, SETTING } from "../../../../src/grpc/native/frames.ts";

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
const NO_BYTES = new Uint8Array(0);
const HEAD =
  ":method=POST :scheme=http :path=/test.Peer/Call :authority=peer:80 content-type=application/grpc " +
  "te=trailers user-agent=grpc-weir";
const CANCEL = uint32(ERROR_CODES.CANCEL);

/** The frames without the fields that all calls have. */
const short = (lines: readonly string[]): string[] => lines.map((line) => line.replace(` ${HEAD}`, ""));

Deno.test("unary call: three on one connection, answered in another order", async () => {
  const { bed, client } = await ClientBed.open();
  const calls = [1, 2, 3].map((count) => outcomeOf(client.unary(CALL_PATH, ascii(`call ${count}`))));
  assertEquals(
    await bed.frames(),
    [1, 3, 5].flatMap((id, index) => [`HEADERS ${id} ${HEAD}`, `DATA ${id} end message "call ${index + 1}"`]),
  );
  bed.send(concatBytes(wholeAnswer(5, "third"), wholeAnswer(1, "first")), wholeAnswer(3, "second"));
  assertEquals(await Promise.all(calls), ["first", "second", "third"]);
});

Deno.test("unary call: metadata and a timeout are sent", async () => {
  const { bed, client } = await ClientBed.open();
  const metadata = [["authorization", "Bearer x"], ["key-bin", "AAE="]] as const;
  for (const timeoutMs of [undefined, 1, 2_500.5, 200_000_000]) {
    void outcomeOf(client.unary(CALL_PATH, NO_BYTES, { metadata, timeoutMs }));
  }
  const more = "authorization=Bearer x key-bin=AAE=";
  assertEquals(short(await bed.frames()).filter((line) => line.startsWith("HEADERS")), [
    `HEADERS 1 ${more}`,
    `HEADERS 3 grpc-timeout=1m ${more}`,
    `HEADERS 5 grpc-timeout=2501m ${more}`,
    `HEADERS 7 grpc-timeout=200000S ${more}`,
  ]);
});

Deno.test("unary call: metadata that cannot be sent is refused, and the connection is not affected", async () => {
  const { bed, client } = await ClientBed.open();
  const refused = await Promise.all(
    ([["Upper", ""], ["", ""], ["a b", ""], ["grpc-status", "0"], [":path", "/"], ["te", ""], [
      "x",
      "\n",
    ]] as const)
      .map((field) => outcomeOf(client.unary(CALL_PATH, NO_BYTES, { metadata: [field] })))
      .concat(outcomeOf(client.unary(CALL_PATH, NO_BYTES, { metadata: [["a-bin", "???"]] })))
      .concat(outcomeOf(client.unary(CALL_PATH, NO_BYTES, { metadata: [["a", "x".repeat(8_192)]] }))),
  );
  const name = "expected a name of lower case letters, digits, - . _";
  const own = "it belongs to the call itself";
  const states = [["Upper", name], ["", name], ["a b", name], ["grpc-status", own], [":path", name], [
    "te",
    own,
  ]]
    .concat([["x", "expected a value in visible ASCII characters"], ["a-bin", "expected a value in base64"]]);
  assertEquals(refused, [
    ...states.map(([field, state]) => `undefined: Cannot send metadata ${JSON.stringify(field)}: ${state}`),
    "undefined: Cannot send metadata of 8225 bytes: at most 8192 are allowed",
  ]);
  assertEquals(await bed.frames(), []);
});

Deno.test("unary call: those beyond the number that the server allows wait in their order", async () => {
  const { bed, client } = await ClientBed.open([[SETTING.MAX_CONCURRENT_STREAMS, 2]]);
  const calls = ["a", "b", "c", "d"].map((text) => outcomeOf(client.unary(CALL_PATH, ascii(text))));
  const begun = async () => (await bed.frames()).filter((line) => line.startsWith("DATA"));
  assertEquals(await begun(), ['DATA 1 end message "a"', 'DATA 3 end message "b"']);
  bed.send(wholeAnswer(1, "A"));
  assertEquals(await begun(), ['DATA 5 end message "c"']);
  bed.send(wholeAnswer(5, "C"), wholeAnswer(3, "B"));
  assertEquals(await begun(), ['DATA 7 end message "d"']);
  bed.send(wholeAnswer(7, "D"));
  assertEquals(await Promise.all(calls), ["A", "B", "C", "D"]);
});

Deno.test("unary call: those that wait for a server that allows none have a limit, a deadline and a signal", async () => {
  const { bed, client } = await ClientBed.open([[SETTING.MAX_CONCURRENT_STREAMS, 0]]);
  const stop = new AbortController();
  const cancelled = outcomeOf(client.unary(CALL_PATH, NO_BYTES, { signal: stop.signal }));
  const late = outcomeOf(client.unary(CALL_PATH, NO_BYTES, { timeoutMs: 100 }));
  const waiting = Array.from({ length: 9_998 }, () => outcomeOf(client.unary(CALL_PATH, NO_BYTES)));
  const refused = await outcomeOf(client.unary(CALL_PATH, NO_BYTES));
  stop.abort();
  await bed.clock.advance(100);
  assertEquals([refused, await cancelled, await late], [
    "RESOURCE_EXHAUSTED: more than 10000 calls wait for the server",
    "CANCELLED: the call was cancelled",
    "DEADLINE_EXCEEDED: no answer before the deadline",
  ]);
  assertEquals(await bed.frames(), []);
  await client.close();
  assertEquals(new Set(await Promise.all(waiting)), new Set(["UNAVAILABLE: the connection is closed"]));
});

Deno.test("unary call: a long message goes out as the windows of call and connection allow", async () => {
  const { bed, client } = await ClientBed.open([[PEER_SETTING.INITIAL_WINDOW_SIZE, 20_000]]);
  const call = outcomeOf(client.unary(CALL_PATH, new Uint8Array(99_995)));
  const sent = async () => (await bed.frames()).filter((line) => line.startsWith("DATA"));
  assertEquals(await sent(), ["DATA 1 16384 bytes", "DATA 1 3616 bytes"]);
  bed.send(windowUpdate(1, 60_000));
  assertEquals((await sent()).at(-1), "DATA 1 12767 bytes");
  bed.send(windowUpdate(0, 1));
  assertEquals(await sent(), ["DATA 1 1 bytes"]);
  bed.send(windowUpdate(0, 100_000));
  assertEquals((await sent()).at(-1), "DATA 1 14464 bytes");
  bed.send(
    frame(FRAME.SETTINGS, 0, concatBytes(Uint8Array.of(0, PEER_SETTING.INITIAL_WINDOW_SIZE), uint32(40_000))),
  );
  assertEquals(await sent(), ["DATA 1 16384 bytes", "DATA 1 end 3616 bytes"]);
  bed.send(wholeAnswer(1, "done"));
  assertEquals(await call, "done");
});

Deno.test("unary call: an answer before the end of the request ends the call, and the rest is not sent", async () => {
  const { bed, client } = await ClientBed.open();
  const call = outcomeOf(client.unary(CALL_PATH, new Uint8Array(100_000)));
  await bed.frames();
  bed.send(wholeAnswer(1, "enough"));
  assertEquals([await call, await bed.frames()], ["enough", ["RST_STREAM 1 CANCEL"]]);
  bed.send(windowUpdate(0, 100_000), windowUpdate(1, 100_000));
  assertEquals(await bed.frames(), []);
});

Deno.test("unary call: a signal cancels it; what the server still sends has no effect", async () => {
  const { bed, client } = await ClientBed.open();
  const stop = new AbortController();
  const call = outcomeOf(client.unary(CALL_PATH, NO_BYTES, { signal: stop.signal }));
  await bed.frames();
  stop.abort();
  assertEquals([await call, await bed.frames()], ["CANCELLED: the call was cancelled", [
    "RST_STREAM 1 CANCEL",
  ]]);
  bed.send(wholeAnswer(1, "late"), frame(FRAME.RST_STREAM, 1, CANCEL), windowUpdate(1, 10));
  const next = outcomeOf(client.unary(CALL_PATH, NO_BYTES));
  await bed.frames();
  bed.send(wholeAnswer(3, "next"));
  assertEquals(await next, "next");
});

Deno.test("unary call: a signal that is aborted before cancels it", async () => {
  const { bed, client } = await ClientBed.open();
  const call = outcomeOf(client.unary(CALL_PATH, ascii("x"), { signal: AbortSignal.abort() }));
  assertEquals(await call, "CANCELLED: the call was cancelled");
  assertEquals(short(await bed.frames()), ["HEADERS 1", "RST_STREAM 1 CANCEL"]);
});

Deno.test("unary call: an answer larger than the window of a call arrives, and the window is refilled", async () => {
  const { bed, client } = await ClientBed.open();
  const call = client.unary(CALL_PATH, NO_BYTES, { maxMessageBytes: 1_000_000 });
  await bed.frames();
  const size = 600_000;
  const body = concatBytes(Uint8Array.of(0), uint32(size), new Uint8Array(size).fill(7));
  const answer = wholeAnswer(1, "");
  const headEnd = 9 + ((answer[1] ?? 0) << 8 | (answer[2] ?? 0));
  bed.send(answer.subarray(0, headEnd));
  let window = 262_144;
  for (let at = 0; at < body.length;) {
    const piece = body.subarray(at, at + Math.min(16_384, window));
    bed.send(frame(FRAME.DATA, 1, piece));
    at += piece.length;
    window -= piece.length;
    for (const line of await bed.frames()) {
      const [, id, increment] = /^WINDOW_UPDATE (\d+) (\d+)$/.exec(line) ?? [];
      if (id === "1") window += Number(increment);
    }
    assertEquals(window > 0, true);
  }
  bed.send(answer.subarray(headEnd + 9 + 5));
  const received = await call;
  assertEquals([received.length, received.every((byte) => byte === 7)], [size, true]);
});

Deno.test("low level: whole calls begin while there is room, and their answers come to objects that are used again", async () => {
  const reads: number[] = [];
  const settings = [[SETTING.MAX_CONCURRENT_STREAMS, 2], [SETTING.INITIAL_WINDOW_SIZE, 20]] as const;
  const { bed, client } = await ClientBed.open(settings, { onRead: (now) => void reads.push(now) });
  const before = reads.length;
  const events: string[] = [];
  const taker = {
    message: (bytes: Uint8Array, start: number, end: number) =>
      void events.push(new TextDecoder().decode(bytes.subarray(start, end))),
    ended: ({ code }: { readonly code: string }) => void events.push(code),
  };
  const [one, other, third] = [1, 2, 3].map(() => new ClientCall(client.head(CALL_PATH), taker));
  const begin = (call = third, payload = message("hello")) =>
    call !== undefined && client.calls.beginWhole(call, content(0, payload, true), payload.length);
  assertEquals([begin(one, message("x".repeat(30))), begin(one), begin(other), begin()], [
    false,
    true,
    true,
    false,
  ]);
  client.flush();
  const sent = ["HEADERS 1", 'DATA 1 end message "hello"', "HEADERS 3", 'DATA 3 end message "hello"'];
  assertEquals(short(await bed.frames()), sent);
  const inFrames = [answerHeaders(3), content(3, message("b")), answerTrailers(3)];
  bed.send(...inFrames, concatBytes(wholeAnswer(1, "a"), frame(FRAME.PING, 0, new Uint8Array(8))));
  await bed.frames();
  assertEquals([events, reads.length - before, begin(other), begin(one)], [
    ["b", "OK", "a", "OK"],
    4,
    true,
    true,
  ]);
  client.flush();
  bed.send(wholeAnswer(5, "c"), wholeAnswer(7, "d"));
  await bed.frames();
  assertEquals([events.slice(4), begin(other)], [["c", "OK", "d", "OK"], true]);
  await client.close();
  assertEquals(events.slice(8), ["UNAVAILABLE"]);
});
