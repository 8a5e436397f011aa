import { assertEquals } from "#assert";
import { systemClock } from "../../../src/base/clock.ts";
import { openXdsStream } from "../../../src/config/xds_stream.ts";
import {
  encodeFrame,
  ERROR_CODES,
  FLAG,
  FRAME,
  FRAME_HEADER_BYTES,
} from "../../../src/grpc/native/frames.ts";
import { concatBytes } from "../../harness/h2_peer.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";

const TEXT = new TextEncoder();
const SETTINGS = encodeFrame(FRAME.SETTINGS, new Uint8Array(0));
const PONG = encodeFrame(FRAME.PING, new Uint8Array(8), { flags: FLAG.ACK });
/** `:status: 200` and `content-type: application/grpc`. */
const GRPC_HEAD = Uint8Array.of(0x88, 0x5f, 16, ...TEXT.encode("application/grpc"));
/** `:status: 500`. */
const FAILED_HEAD = Uint8Array.of(0x8e);
const STREAM = { flags: FLAG.END_HEADERS, streamId: 1 };
const LAST = { flags: FLAG.END_HEADERS | FLAG.END_STREAM, streamId: 1 };

function field(name: string, value: string): number[] {
  return [0, name.length, ...TEXT.encode(name), value.length, ...TEXT.encode(value)];
}

function goAway(code: keyof typeof ERROR_CODES, text: string): Uint8Array {
  const payload = new Uint8Array(8 + text.length);
  payload[7] = ERROR_CODES[code];
  payload.set(TEXT.encode(text), 8);
  return encodeFrame(FRAME.GOAWAY, payload);
}

interface Hostile {
  /** The bytes that the server sends as soon as it has a connection. */
  readonly first: Uint8Array;
  /** The bytes that it sends after the head of the call. */
  readonly later?: Uint8Array;
  readonly reason: string;
}

const HOSTILE: Readonly<Record<string, Hostile>> = {
  "one of HTTP/1.1": {
    first: TEXT.encode("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"),
    reason: "the server does not speak HTTP/2",
  },
  "a frame that is too long": {
    first: concatBytes(SETTINGS, Uint8Array.of(0xff, 0xff, 0xff, FRAME.DATA, 0, 0, 0, 0, 1)),
    reason: "the server broke HTTP/2: a frame has 16777215 bytes",
  },
  "GOAWAY with its reason": {
    first: SETTINGS,
    later: goAway("ENHANCE_YOUR_CALM", "too_many_pings"),
    reason: "the server closed the connection with ENHANCE_YOUR_CALM: too_many_pings",
  },
  "a page in place of an answer": {
    first: SETTINGS,
    later: encodeFrame(FRAME.HEADERS, FAILED_HEAD, LAST),
    reason: "the server answered with HTTP status 500 instead of gRPC",
  },
  "a refusal": {
    first: SETTINGS,
    later: encodeFrame(
      FRAME.HEADERS,
      Uint8Array.of(...GRPC_HEAD, ...field("grpc-status", "7"), ...field("grpc-message", "no%20token")),
      LAST,
    ),
    reason: "no token",
  },
  "a stream that is reset": {
    first: SETTINGS,
    later: encodeFrame(FRAME.RST_STREAM, Uint8Array.of(0, 0, 0, ERROR_CODES.REFUSED_STREAM), { streamId: 1 }),
    reason: "the server reset the call with REFUSED_STREAM",
  },
  "a message that announces 4 GiB": {
    first: SETTINGS,
    later: concatBytes(
      encodeFrame(FRAME.HEADERS, GRPC_HEAD, STREAM),
      encodeFrame(FRAME.DATA, Uint8Array.of(0, 0xff, 0xff, 0xff, 0xff), { streamId: 1 }),
    ),
    reason: "Received message larger than max (4294967295 vs 1000)",
  },
  "a message that is cut": {
    first: SETTINGS,
    later: concatBytes(
      encodeFrame(FRAME.HEADERS, GRPC_HEAD, STREAM),
      encodeFrame(FRAME.DATA, Uint8Array.of(0, 0, 0, 0, 9, 1), { streamId: 1, flags: FLAG.END_STREAM }),
    ),
    reason: "the server ended the call in the middle of a message",
  },
  "a flood of frames": {
    first: SETTINGS,
    later: new Uint8Array(30_000 * PONG.length).map((_, index) => PONG[index % PONG.length] ?? 0),
    reason: "the server broke HTTP/2: too many frames that carry nothing",
  },
};

for (const [name, { first, later, reason }] of Object.entries(HOSTILE)) {
  Deno.test(`xds stream: of a hostile server, ${name} ends it once, with the reason`, async () => {
    const events = await eventsOf((connection) => serve(connection, first, later));
    assertEquals(events, [reason]);
  });
}

Deno.test("xds stream: an answer that is cut at any byte ends it once, and no part of a message comes", async () => {
  const message = Uint8Array.of(0, 0, 0, 0, 3, 1, 2, 3);
  const trailers = Uint8Array.of(...field("grpc-status", "0"));
  const answer = concatBytes(
    encodeFrame(FRAME.HEADERS, GRPC_HEAD, STREAM),
    encodeFrame(FRAME.DATA, message, { streamId: 1 }),
    encodeFrame(FRAME.HEADERS, trailers, LAST),
  );
  const found = new Map<string, number>();
  for (let length = 0; length <= answer.length; length++) {
    const events = await eventsOf((connection) =>
      serve(connection, SETTINGS, answer.subarray(0, length), { isCut: true })
    );
    const text = events.join("; ");
    found.set(text, (found.get(text) ?? 0) + 1);
  }
  const head = FRAME_HEADER_BYTES + GRPC_HEAD.length + FRAME_HEADER_BYTES + message.length;
  assertEquals(Object.fromEntries(found), {
    "the server closed the connection": head,
    "1,2,3; the server closed the connection": FRAME_HEADER_BYTES + trailers.length,
    "1,2,3; it ended the stream": 1,
  });
});

/** The messages and the end of a stream to a server; nothing may come after its end. */
async function eventsOf(serving: (connection: Deno.TcpConn) => Promise<void>): Promise<string[]> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const events: string[] = [];
  const end = Promise.withResolvers<void>();
  const stream = openXdsStream({
    url: `127.0.0.1:${listener.addr.port}`,
    headers: new Map(),
    maxMessageBytes: 1_000,
    clock: systemClock,
    logger: new RecordedLogger(),
  }, {
    onMessage: (bytes) => void events.push(bytes.join()),
    onEnd(text) {
      events.push(text);
      end.resolve();
    },
  });
  stream.send(Uint8Array.of(1));
  using connection = await listener.accept();
  const served = serving(connection).catch(() => {});
  await end.promise;
  await stream.close();
  await served;
  return events;
}

/** Sends the bytes, and reads until the client is gone. */
async function serve(
  connection: Deno.TcpConn,
  first: Uint8Array,
  later?: Uint8Array,
  { isCut = false } = {},
): Promise<void> {
  await writeAll(connection, first);
  const bytes = new Uint8Array(65_536);
  let head = "";
  for (let isSent = later === undefined;;) {
    const count = await connection.read(bytes);
    if (count === null) return;
    head += new TextDecoder("latin1").decode(bytes.subarray(0, count));
    if (isSent || !head.includes("StreamAggregatedResources")) continue;
    isSent = true;
    await writeAll(connection, later ?? first);
    if (isCut) await connection.closeWrite();
  }
}

async function writeAll(connection: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}
