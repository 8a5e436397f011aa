import { gzipSync } from "node:zlib";
import { assertEquals } from "#assert";
import type { GrpcStream } from "../../../../src/grpc/client/grpc_stream.ts";
import { FRAME, SETTING } from "../../../../src/grpc/native/frames.ts";
import {
  answerHeaders,
  answerTrailers,
  CALL_PATH,
  ClientBed,
  outcomeOf,
} from "../../../harness/client_bed.ts";
import { concatBytes, content, frame, message, uint32, windowUpdate } from "../../../harness/h2_peer.ts";
import { settledTurns } from "../../../harness/until.ts";

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** The messages of a stream and its end, as texts. */
function collected(stream: GrpcStream): string[] {
  const lines: string[] = [];
  void (async () => {
    try {
      for await (const received of stream) lines.push(text(received));
      lines.push("end");
    } catch (error) {
      const { code, message: reason } = Object(error);
      lines.push(`${code}: ${reason}`);
    }
  })();
  return lines;
}

/** A stream whose headers are exchanged. */
async function opened(settings: readonly (readonly [number, number])[] = []) {
  const { bed, client } = await ClientBed.open(settings);
  const stream = client.stream(CALL_PATH);
  const lines = collected(stream);
  await bed.frames();
  bed.send(answerHeaders(1));
  await settledTurns();
  return { bed, client, stream, lines };
}

Deno.test("stream: messages go both ways, and both sides end", async () => {
  const { bed, stream, lines } = await opened();
  await stream.send(ascii("one"));
  bed.send(content(1, message("ONE")));
  await stream.send(ascii("two"));
  stream.closeSend();
  assertEquals(await bed.frames(), ['DATA 1 message "one"', 'DATA 1 message "two"', "DATA 1 end 0 bytes"]);
  bed.send(content(1, concatBytes(message("TWO"), message("THREE"))), answerTrailers(1));
  await settledTurns();
  assertEquals([lines, stream.status?.code], [["ONE", "TWO", "THREE", "end"], "OK"]);
  assertEquals(
    await outcomeOf(stream.send(ascii("late")).then(() => undefined)),
    "FAILED_PRECONDITION: the call has ended",
  );
});

Deno.test("stream: sending after the end of the request is refused", async () => {
  const { stream } = await opened();
  stream.closeSend();
  stream.closeSend();
  const late = await outcomeOf(stream.send(ascii("late")).then(() => undefined));
  assertEquals(late, "FAILED_PRECONDITION: the request has ended");
});

Deno.test("stream: the status of the server is the error of the reader and of the sender", async () => {
  const { bed, stream, lines } = await opened();
  bed.send(content(1, message("one")), answerTrailers(1, { "grpc-status": "8", "grpc-message": "full" }));
  assertEquals(await bed.frames(), ["RST_STREAM 1 CANCEL"]);
  assertEquals(lines, ["one", "RESOURCE_EXHAUSTED: full"]);
  assertEquals(await outcomeOf(stream.send(ascii("x")).then(() => undefined)), "RESOURCE_EXHAUSTED: full");
});

Deno.test("stream: cancelling ends it, and leaving the iteration cancels", async () => {
  const { bed, client, stream, lines } = await opened();
  stream.cancel();
  assertEquals([await bed.frames(), lines], [["RST_STREAM 1 CANCEL"], ["CANCELLED: the call was cancelled"]]);
  const left = client.stream(CALL_PATH);
  const first = (async () => {
    for await (const received of left) return text(received);
    return "none";
  })();
  await bed.frames();
  bed.send(answerHeaders(3), content(3, message("first")), content(3, message("second")));
  assertEquals([await first, await bed.frames(), left.status?.code], [
    "first",
    ["RST_STREAM 3 CANCEL"],
    "CANCELLED",
  ]);
});

Deno.test("stream: what is sent before the server allows the call follows in its order", async () => {
  const { bed, client } = await ClientBed.open([[SETTING.MAX_CONCURRENT_STREAMS, 0]]);
  const [ended, open, closed] = [
    client.stream(CALL_PATH),
    client.stream(CALL_PATH),
    client.stream(CALL_PATH),
  ];
  await Promise.all([ended.send(ascii("a")), ended.send(ascii("b")), open.send(ascii("c"))]);
  ended.closeSend();
  closed.closeSend();
  assertEquals(await bed.frames(), []);
  bed.send(
    frame(FRAME.SETTINGS, 0, concatBytes(Uint8Array.of(0, SETTING.MAX_CONCURRENT_STREAMS), uint32(9))),
  );
  assertEquals((await bed.frames()).filter((line) => !line.startsWith("HEADERS")), [
    "SETTINGS ack",
    'DATA 1 message "a"',
    'DATA 1 end message "b"',
    'DATA 3 message "c"',
    "DATA 5 end 0 bytes",
  ]);
});

Deno.test("stream: sending waits while the server reads nothing, and goes on when it does", async () => {
  const { bed, stream } = await opened();
  let sent = 0;
  const sending = (async () => {
    for (; sent < 20; sent++) await stream.send(new Uint8Array(32_763));
  })();
  await bed.frames();
  // The window of 65,535 bytes and up to 64 KiB that wait.
  assertEquals(sent, 3);
  bed.send(windowUpdate(0, 1_000_000), windowUpdate(1, 1_000_000));
  await sending;
  assertEquals(sent, 20);
});

Deno.test("stream: what waits for a server that reads nothing has a limit for senders that do not wait", async () => {
  const { bed, stream, lines } = await opened();
  const big = new Uint8Array(1_000_000);
  for (let count = 0; count < 100; count++) stream.send(big).catch(() => {});
  await bed.frames();
  assertEquals(lines, ["RESOURCE_EXHAUSTED: too many bytes wait for the server to read them"]);
});

Deno.test("stream: a reader that is slow stops the server at the window, and goes on", async () => {
  const { bed, client } = await ClientBed.open();
  const stream = client.stream(CALL_PATH);
  await bed.frames();
  bed.send(answerHeaders(1));
  let window = 262_144;
  let sent = 0;
  const piece = content(1, message(new Uint8Array(1_000)));
  const widen = async () => {
    for (const line of await bed.frames()) window += Number(/^WINDOW_UPDATE 1 (\d+)$/.exec(line)?.[1] ?? 0);
  };
  for (let round = 0; round < 20; round++) {
    for (; window >= 1_005; window -= 1_005) {
      bed.send(piece);
      sent++;
    }
    await widen();
  }
  // What the reader keeps, and one window that is not refilled.
  assertEquals([sent, window < 1_005], [391, true]);
  const reader = stream[Symbol.asyncIterator]();
  for (let count = 0; count < sent; count++) await reader.next();
  await widen();
  assertEquals(window > 200_000, true);
  await client.close();
});

Deno.test("stream: empty messages count against what a reader keeps", async () => {
  const { bed, client } = await ClientBed.open();
  client.stream(CALL_PATH);
  await bed.frames();
  bed.send(answerHeaders(1));
  const updates: string[] = [];
  for (let count = 0; count < 30; count++) {
    bed.send(content(1, concatBytes(...Array.from({ length: 1_000 }, () => message("")))));
    updates.push(...(await bed.frames()).filter((line) => line.startsWith("WINDOW_UPDATE 1 ")));
  }
  // 30,000 messages of 5 bytes are more than half a window, which is not given back.
  assertEquals(updates, []);
  await client.close();
});

Deno.test("stream: compressed messages that wait for a slow reader are bounded", async () => {
  const { bed, client } = await ClientBed.open();
  const stream = client.stream(CALL_PATH);
  await bed.frames();
  bed.send(answerHeaders(1, { "grpc-encoding": "gzip" }));
  const piece = content(1, message(gzipSync(new Uint8Array(4_000_000)), true));
  const codes = [];
  for (let count = 0; count < 10; count++) {
    bed.send(piece);
    await bed.frames();
    codes.push(stream.status?.code);
  }
  assertEquals(codes, [...Array(9).fill(undefined), "RESOURCE_EXHAUSTED"]);
  assertEquals(client.isOpen, true);
  await client.close();
});

Deno.test("stream: a server that sends more than the window of a slow reader allows ends the call", async () => {
  const { bed, client } = await ClientBed.open();
  const stream = client.stream(CALL_PATH);
  await bed.frames();
  bed.send(answerHeaders(1));
  for (let count = 0; count < 600; count++) bed.send(content(1, message(new Uint8Array(1_000))));
  const resets = (await bed.frames()).filter((line) => line.startsWith("RST_STREAM"));
  assertEquals([resets, stream.status?.code, client.isOpen], [
    ["RST_STREAM 1 FLOW_CONTROL_ERROR"],
    "INTERNAL",
    true,
  ]);
  await client.close();
});
