import { assertEquals } from "#assert";
import { FLAG, FRAME } from "../../../../src/grpc/native/frames.ts";
import {
  answerHeaders,
  answerTrailers,
  CALL_PATH,
  ClientBed,
  outcomeOf,
  PING,
  wholeAnswer,
} from "../../../harness/client_bed.ts";
import { concatBytes, content, frame, message, uint32 } from "../../../harness/h2_peer.ts";
import { settledTurns } from "../../../harness/until.ts";

const NO_BYTES = new Uint8Array(0);
const KEEPALIVE = { everyMs: 60_000, withinMs: 10_000 };
const goAway = (lastId: number, code = 0, text = ""): Uint8Array =>
  frame(FRAME.GOAWAY, 0, concatBytes(uint32(lastId), uint32(code), new TextEncoder().encode(text)));
const PONG = frame(FRAME.PING, 0, new Uint8Array(8), FLAG.ACK);
const CLOSED = "UNAVAILABLE: the server closed the connection";

/** End of an attempt or a connection. */
const ended = (state: Promise<unknown>): Promise<string> =>
  outcomeOf(state.then((error) => {
    if (error !== undefined) throw error;
    return undefined;
  }));

Deno.test("opening: a server that says nothing is given up after the timeout", async () => {
  const bed = new ClientBed({ connectTimeoutMs: 3_000 });
  await bed.frames();
  bed.clock.advance(2_999);
  await settledTurns();
  assertEquals(bed.socket.destroyed, false);
  bed.clock.advance(1);
  assertEquals(await ended(bed.opening), "UNAVAILABLE: no connection within 3000 ms");
  assertEquals([bed.socket.destroyed, bed.clock.waiting], [true, 0]);
});

Deno.test("opening: a signal ends it, before and during", async () => {
  const stop = new AbortController();
  const beds = [new ClientBed({ signal: stop.signal }), new ClientBed({ signal: AbortSignal.abort() })];
  await settledTurns();
  stop.abort();
  for (const bed of beds) {
    assertEquals(await ended(bed.opening), "CANCELLED: the call was cancelled");
    assertEquals([bed.socket.destroyed, bed.clock.waiting], [true, 0]);
  }
});

for (
  const [name, bytes] of [
    ["a page of HTTP/1.1", new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n")],
    ["an alert of TLS", Uint8Array.of(21, 3, 1, 0, 2, 2, 70, 0, 0, 0)],
    ["a frame before SETTINGS", PING],
    ["SETTINGS that acknowledge", frame(FRAME.SETTINGS, 0, NO_BYTES, FLAG.ACK)],
  ] as const
) {
  Deno.test(`opening: a server that begins with ${name} does not speak HTTP/2`, async () => {
    const bed = new ClientBed();
    bed.send(bytes);
    assertEquals(await ended(bed.opening), "UNAVAILABLE: the server does not speak HTTP/2");
    await settledTurns();
    assertEquals([bed.socket.destroyed, bed.clock.waiting], [true, 0]);
  });
}

Deno.test("opening: a server that closes before its greeting", async () => {
  const bed = new ClientBed();
  bed.end();
  assertEquals(await ended(bed.opening), CLOSED);
});

Deno.test("deadline: a call that the server does not answer ends at its time, others go on", async () => {
  const { bed, client } = await ClientBed.open();
  const long = outcomeOf(client.unary(CALL_PATH, NO_BYTES, { timeoutMs: 5_000 }));
  const short = outcomeOf(client.unary(CALL_PATH, NO_BYTES, { timeoutMs: 1_000 }));
  const without = outcomeOf(client.unary(CALL_PATH, NO_BYTES));
  await bed.frames();
  bed.clock.advance(999);
  assertEquals(await bed.frames(), []);
  bed.clock.advance(1);
  assertEquals([await short, await bed.frames()], [
    "DEADLINE_EXCEEDED: no answer before the deadline",
    ["RST_STREAM 3 CANCEL"],
  ]);
  bed.clock.advance(4_000);
  assertEquals(await long, "DEADLINE_EXCEEDED: no answer before the deadline");
  bed.send(wholeAnswer(5, "in time"));
  assertEquals([await without, bed.clock.waiting], ["in time", 0]);
});

Deno.test("deadline: it ends a stream between two messages, and a server that cancels at its time is late", async () => {
  const { bed, client } = await ClientBed.open();
  const stream = client.stream(CALL_PATH, { timeoutMs: 1_000 });
  await bed.frames();
  bed.send(answerHeaders(1), content(1, message("one")));
  await bed.frames();
  bed.clock.advance(1_000);
  const read = (async () => {
    const messages: string[] = [];
    try {
      for await (const bytes of stream) messages.push(new TextDecoder().decode(bytes));
    } catch (error) {
      messages.push(Object(error).code);
    }
    return messages;
  })();
  assertEquals(await read, ["one", "DEADLINE_EXCEEDED"]);
});

Deno.test("keepalive: a silent server is asked, and one that does not answer is lost", async () => {
  const { bed, client, call } = await ClientBed.calling([], { keepalive: KEEPALIVE });
  bed.clock.advance(59_999);
  bed.send(PING);
  assertEquals(await bed.frames(), ["PING ack 0000000000000000"]);
  bed.clock.advance(59_999);
  assertEquals(await bed.frames(), []);
  bed.clock.advance(1);
  assertEquals(await bed.frames(), ["PING 0000000000000000"]);
  bed.send(PONG);
  await settledTurns();
  bed.clock.advance(60_000);
  assertEquals(await bed.frames(), ["PING 0000000000000000"]);
  bed.clock.advance(10_000);
  const lost = "UNAVAILABLE: the server did not answer a keepalive ping";
  assertEquals([await call, await ended(client.closed), bed.clock.waiting], [lost, lost, 0]);
});

Deno.test("GOAWAY: calls up to the last one go on, others fail, and the connection closes after them", async () => {
  const { bed, client } = await ClientBed.open();
  const calls = [1, 2, 3].map(() => outcomeOf(client.unary(CALL_PATH, NO_BYTES)));
  await bed.frames();
  bed.send(goAway(2 ** 31 - 1));
  await settledTurns();
  assertEquals(client.isOpen, false);
  // The highest bit is reserved.
  bed.send(goAway(2 ** 31 + 3, 0, "max_age"));
  const reason = "UNAVAILABLE: the server closed the connection with NO_ERROR";
  assertEquals([await calls[2], await outcomeOf(client.unary(CALL_PATH, NO_BYTES))], [
    `${reason}: max_age`,
    reason,
  ]);
  bed.send(wholeAnswer(3, "b"), wholeAnswer(1, "a"));
  assertEquals(await Promise.all(calls.slice(0, 2)), ["a", "b"]);
  assertEquals([await bed.frames(), await ended(client.closed)], [["GOAWAY 0 NO_ERROR"], reason]);
  assertEquals([bed.socket.hasEnded, bed.clock.waiting], [true, 0]);
});

Deno.test("GOAWAY: one that comes before any call, and one with an error", async () => {
  for (const [code, name] of [[0, "NO_ERROR"], [11, "ENHANCE_YOUR_CALM: too_many_pings"]] as const) {
    const { bed, client } = await ClientBed.open();
    bed.send(goAway(0, code, name.split(": ")[1] ?? ""));
    assertEquals(await ended(client.closed), `UNAVAILABLE: the server closed the connection with ${name}`);
  }
});

Deno.test("GOAWAY: silence after it ends a call at its deadline, and the connection with it", async () => {
  const { bed, client } = await ClientBed.open();
  const call = outcomeOf(client.unary(CALL_PATH, NO_BYTES, { timeoutMs: 1_000 }));
  await bed.frames();
  bed.send(goAway(1));
  await settledTurns();
  bed.clock.advance(1_000);
  assertEquals(await call, "DEADLINE_EXCEEDED: no answer before the deadline");
  await client.closed;
  assertEquals([await bed.frames(), bed.socket.destroyed], [
    ["RST_STREAM 1 CANCEL", "GOAWAY 0 NO_ERROR"],
    true,
  ]);
});

Deno.test("GOAWAY: a text of any bytes and length is shown in part", async () => {
  const { bed, client } = await ClientBed.open();
  bed.send(goAway(0, 2, `\u0000\n${"x".repeat(9_000)}`));
  const reason = await ended(client.closed);
  assertEquals(
    reason,
    `UNAVAILABLE: the server closed the connection with INTERNAL_ERROR: ??${"x".repeat(198)}`,
  );
});

Deno.test("closing: calls end, the server is notified, and the socket is closed although the server stays", async () => {
  const { bed, client } = await ClientBed.open();
  const calls = [outcomeOf(client.unary(CALL_PATH, NO_BYTES)), outcomeOf(client.unary(CALL_PATH, NO_BYTES))];
  const stream = client.stream(CALL_PATH);
  await bed.frames();
  await client.close();
  await client.close();
  const closed = "UNAVAILABLE: the connection is closed";
  assertEquals([...await Promise.all(calls), stream.status?.message], [
    closed,
    closed,
    "the connection is closed",
  ]);
  assertEquals([await bed.frames(), await ended(client.closed)], [["GOAWAY 0 NO_ERROR"], ""]);
  assertEquals([bed.socket.destroyed, bed.clock.waiting], [true, 0]);
  assertEquals(await outcomeOf(client.unary(CALL_PATH, NO_BYTES)), closed);
});

Deno.test("closing: a server that does not read what is left is not waited for", async () => {
  const { bed, client } = await ClientBed.open();
  bed.socket.isBlocked = true;
  const call = outcomeOf(client.unary(CALL_PATH, NO_BYTES));
  await settledTurns();
  const closing = client.close();
  await settledTurns();
  assertEquals(bed.socket.destroyed, false);
  bed.clock.advance(1_000);
  await closing;
  assertEquals([await call, bed.clock.waiting], ["UNAVAILABLE: the connection is closed", 0]);
});

Deno.test("a server that reads nothing: what is kept for it is bounded, and it is lost after a while", async () => {
  const { bed, client } = await ClientBed.open([[4, 2 ** 31 - 1]]);
  bed.send(frame(FRAME.WINDOW_UPDATE, 0, uint32(2 ** 31 - 1 - 65_535)));
  await bed.frames();
  bed.socket.isBlocked = true;
  const stream = client.stream(CALL_PATH);
  let sent = 0;
  const sending = outcomeOf((async () => {
    for (;; sent++) await stream.send(new Uint8Array(100_000));
  })());
  const floods = Array.from(
    { length: 50 },
    () => outcomeOf(client.unary(CALL_PATH, new Uint8Array(100_000))),
  );
  await settledTurns();
  // One write that does not end, the output behind it, and what waits on the call.
  assertEquals([sent < 40, bed.socket.writableLength < 3_000_000], [true, true]);
  bed.clock.advance(30_000);
  const lost = "UNAVAILABLE: the server does not read what is sent";
  assertEquals([await sending, new Set(await Promise.all(floods)), bed.clock.waiting], [
    lost,
    new Set([lost]),
    0,
  ]);
});

Deno.test("a server that reads nothing for a moment: everything arrives", async () => {
  const { bed, client } = await ClientBed.open([[4, 2 ** 31 - 1]]);
  bed.send(frame(FRAME.WINDOW_UPDATE, 0, uint32(2 ** 31 - 1 - 65_535)));
  await bed.frames();
  bed.socket.isBlocked = true;
  const calls = Array.from({ length: 50 }, () => outcomeOf(client.unary(CALL_PATH, new Uint8Array(99_995))));
  await settledTurns();
  let bytes = 0;
  for (let round = 0; round < 20; round++) {
    bed.socket.unblock();
    bytes += (await bed.frames()).reduce(
      (sum, line) => sum + Number(/ (\d+) bytes/.exec(line)?.[1] ?? 0),
      0,
    );
  }
  assertEquals(bytes, 50 * 100_000);
  for (let index = 0; index < 50; index++) bed.send(wholeAnswer(2 * index + 1, `${index}`));
  assertEquals(await Promise.all(calls), Array.from({ length: 50 }, (_, index) => `${index}`));
});

Deno.test("a socket that fails: calls end with its reason, and so does the connection", async () => {
  const { bed, client, call } = await ClientBed.calling();
  bed.socket.destroy(new Error("Connection reset by peer"));
  const lost = "UNAVAILABLE: Connection reset by peer";
  assertEquals([await call, await ended(client.closed), await outcomeOf(client.unary(CALL_PATH, NO_BYTES))], [
    ...[lost, lost, lost],
  ]);
});

Deno.test("a server that ends its direction: answers that came before count", async () => {
  const { bed, client } = await ClientBed.open();
  const calls = [1, 2].map(() => outcomeOf(client.unary(CALL_PATH, NO_BYTES)));
  await bed.frames();
  bed.send(answerHeaders(1), concatBytes(content(1, message("x")), answerTrailers(1)));
  bed.end();
  assertEquals(await Promise.all(calls), ["x", CLOSED]);
  assertEquals([await ended(client.closed)], [CLOSED]);
});

Deno.test("deadline: a server that cancels a call at its deadline is not the reason", async () => {
  const { bed, client } = await ClientBed.open();
  const call = outcomeOf(client.unary(CALL_PATH, NO_BYTES, { timeoutMs: 1_000 }));
  await bed.frames();
  bed.clock.elapsedAheadMs = 1_000;
  bed.send(frame(FRAME.RST_STREAM, 1, uint32(8)));
  assertEquals(await call, "DEADLINE_EXCEEDED: no answer before the deadline");
});

Deno.test("a server that reads nothing: calls with long metadata wait instead of filling the memory", async () => {
  const { bed, client } = await ClientBed.open();
  bed.socket.isBlocked = true;
  const metadata = [["x-long", "x".repeat(8_000)]] as const;
  const calls = Array.from(
    { length: 2_000 },
    () => outcomeOf(client.unary(CALL_PATH, NO_BYTES, { metadata })),
  );
  await settledTurns();
  bed.socket.isBlocked = false;
  const first = bed.socket.written.reduce((sum, bytes) => sum + bytes.length, 0);
  bed.socket.unblock();
  let headers = 0;
  for (let round = 0; round < 100; round++) {
    headers += (await bed.frames()).filter((line) => line.startsWith("HEADERS")).length;
  }
  assertEquals([first < 2_000_000, headers], [true, 2_000]);
  await client.close();
  await Promise.all(calls);
});

Deno.test("a signal that outlives its calls keeps none of them", async () => {
  const { bed, client } = await ClientBed.open();
  const { signal } = new AbortController();
  let listeners = 0;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (...given: Parameters<typeof add>) => {
    listeners++;
    add(...given);
  };
  signal.removeEventListener = (...given: Parameters<typeof remove>) => {
    listeners--;
    remove(...given);
  };
  const calls = [1, 2].map(() => outcomeOf(client.unary(CALL_PATH, NO_BYTES, { signal })));
  await bed.frames();
  const during = listeners;
  bed.send(wholeAnswer(1, "one"), frame(FRAME.RST_STREAM, 3, uint32(7)));
  await Promise.all(calls);
  assertEquals([during, listeners], [2, 0]);
});
