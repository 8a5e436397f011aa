import { assertEquals } from "#assert";
import { LIMITS } from "../../../../src/grpc/native/limits.ts";
import {
  call,
  callFields,
  cancel,
  concatBytes,
  content,
  greeting,
  headers,
  message,
  PEER_SETTING,
  windowUpdate,
} from "../../../harness/h2_peer.ts";
import { makeCertificates, pairOf } from "../../../harness/certificates.ts";
import { needs } from "../../../harness/tools.ts";
import { until } from "../../../harness/until.ts";
import { answer } from "../../../harness/connection_bed.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import { ListenerTls } from "../../../../src/grpc/listener_tls.ts";
import { RecordedLogger } from "../../../harness/recorded_logger.ts";
import { EngineBed } from "../../../harness/engine_bed.ts";
import { probePath } from "../../../harness/probe.ts";
import type { RawClientOptions } from "../../../harness/raw_client.ts";

const zeros = (length: number): Uint8Array => new Uint8Array(length);
const ECHO = callFields(probePath("Echo"));
const WIDE: RawClientOptions = { settings: [[PEER_SETTING.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]] };
const WIDE_CONNECTION = windowUpdate(0, 2 ** 31 - 1 - 65_535);

/** Abuse that costs a peer its connection, and the last frame that it receives. */
const ABUSE: Readonly<
  Record<string, readonly [abuse: Uint8Array, last: string, options?: RawClientOptions]>
> = {
  "noise": [Uint8Array.from({ length: 5_000 }, (_, index) => index * 7 % 256), "GOAWAY 0 PROTOCOL_ERROR", {}],
  "rapid reset": [
    concatBytes(...Array.from({ length: 10_000 }, (_, index) => {
      const id = 2 * index + 1;
      return concatBytes(call(id, probePath("Hold"), ""), cancel(id));
    })),
    `GOAWAY ${2 * LIMITS.resets.burst + 1} ENHANCE_YOUR_CALM`,
  ],
};

for (const [name, [abuse, last, options]] of Object.entries(ABUSE)) {
  Deno.test(`native engine: ${name} costs the peer its connection, and no other peer anything`, async () => {
    await using bed = await EngineBed.open();
    await using peer = await bed.connect(options);
    peer.send(abuse);
    await peer.line(last);
    await peer.end();
    assertEquals(peer.lines.at(-1), last);
  });
}

Deno.test("native engine: who speaks HTTP/1.1 or TLS is refused, and the log says now and then what is right", async () => {
  await using bed = await EngineBed.open();
  const meet = async (text: string) => {
    await using peer = await bed.connect({});
    peer.send(Uint8Array.from(text, (character) => character.charCodeAt(0)));
    await peer.line("GOAWAY 0 PROTOCOL_ERROR");
    await peer.end();
  };
  const [get, post, hello] = ["GET / HTTP/1.1\r\n\r\n", "POST /", "\x16\x03\x01\x02"] as const;
  for (const text of [get, post, hello, post, "PRI * HTTP/1.1\r\n", "pri", "\0\0\x12\x04"]) await meet(text);
  const http = '"gRPC client refused: it uses HTTP/1.1, but gRPC requires HTTP/2; in Envoy, ' +
    'set http2_protocol_options of the cluster" peer="127.0.0.1"';
  const tls = '"gRPC client refused: it uses TLS, but this port serves plain text; ' +
    'set GRPC_SERVER_USE_TLS=true or disable TLS in the client" peer="127.0.0.1"';
  assertEquals(bed.takeLog(), [http, tls]);
  bed.clock.advance(10_000);
  await meet(get);
  assertEquals(bed.takeLog(), [`${http} suppressed=2`]);
});

/** Bytes of a peer that never makes itself known. */
const HALF_OPEN: Readonly<Record<string, Uint8Array>> = {
  "nothing": zeros(0),
  "half a preface": greeting().subarray(0, 12),
  "a preface without SETTINGS": greeting().subarray(0, 24),
  "half a SETTINGS frame": greeting().subarray(0, 30),
};

for (const [name, octetsSent] of Object.entries(HALF_OPEN)) {
  Deno.test(`native engine: a peer that sends ${name} is let go after 10 seconds`, async () => {
    await using bed = await EngineBed.open();
    await using peer = await bed.connect({});
    peer.send(octetsSent);
    await peer.line("SETTINGS");
    bed.clock.advance(9_000);
    await bed.neighbour.echo();
    const before = peer.closed;
    bed.clock.advance(1_000);
    await peer.end();
    assertEquals(before, false);
  });
}

Deno.test("native engine: half a request is given up after a minute, and its connection is not", async () => {
  await using bed = await EngineBed.open();
  await using peer = await bed.connect({ settings: [], pong: true });
  peer.send(headers(1, ECHO), content(1, message("half").subarray(0, 7)));
  await peer.line("SETTINGS ack");
  bed.clock.advance(LIMITS.requestMs - 1_000);
  peer.send(call(3, probePath("Echo"), "other"));
  for (const line of answer(3, "other")) await peer.line(line);
  bed.clock.advance(1_000);
  await peer.line("RST_STREAM 1 CANCEL");
  peer.send(call(5, probePath("Echo"), "next"));
  for (const line of answer(5, "next")) await peer.line(line);
});

Deno.test("native engine: a silent peer is asked for a sign of life, and let go without one", async () => {
  await using bed = await EngineBed.open();
  await using dead = await bed.connect();
  await dead.line("SETTINGS ack");
  const ping = "PING 0000000000000000";
  bed.clock.advance(LIMITS.keepaliveMs);
  await Promise.all([dead.line(ping), bed.neighbour.line(ping)]);
  // The answer to the PING goes before this call.
  await bed.neighbour.echo();
  bed.clock.advance(LIMITS.keepaliveTimeoutMs - 1_000);
  await bed.neighbour.echo();
  const before = dead.closed;
  bed.clock.advance(1_000);
  await dead.end();
  assertEquals(before, false);
});

/** Asks for 200 answers of a megabyte each and reads nothing; waits until the engine takes no more. */
async function fill(bed: EngineBed, peer: Awaited<ReturnType<EngineBed["connect"]>>): Promise<number> {
  peer.reading(false);
  peer.send(
    WIDE_CONNECTION,
    ...Array.from({ length: 200 }, (_, index) => call(2 * index + 1, probePath("Zeros"), "1000000")),
  );
  const before = bed.probe.calls;
  await until("the first calls", () => bed.probe.calls > before);
  for (let calls = 0; calls < bed.probe.calls;) {
    calls = bed.probe.calls;
    for (let round = 0; round < 10; round++) await bed.neighbour.echo();
    calls += 10;
  }
  return bed.probe.calls - before;
}

Deno.test("native engine: from a peer that does not read nothing is read, and it is let go after 30 seconds", async () => {
  await using bed = await EngineBed.open();
  await using peer = await bed.connect(WIDE);
  const calls = await fill(bed, peer);
  bed.clock.advance(LIMITS.unsentMs - 1_000);
  await bed.neighbour.echo();
  bed.clock.advance(1_000);
  peer.reading(true);
  await peer.end();
  assertEquals([calls < 100, peer.lines.filter((line) => line.startsWith("HEADERS")).length < 200], [
    true,
    true,
  ]);
});

Deno.test("native engine: a peer that reads again in time gets everything", async () => {
  await using bed = await EngineBed.open();
  await using peer = await bed.connect(WIDE);
  await fill(bed, peer);
  bed.clock.advance(LIMITS.unsentMs - 1_000);
  peer.reading(true);
  await peer.line("HEADERS 399 end grpc-status=0");
  bed.clock.advance(LIMITS.unsentMs);
  peer.send(call(401, probePath("Echo"), "next"));
  for (const line of answer(401, "next")) await peer.line(line);
  assertEquals(peer.lines.filter((line) => line.endsWith("end grpc-status=0")).length, 201);
});

/** The neighbour needs less, also on a machine that stands still for a while. */
const HANDSHAKE_MS = 3_000;

Deno.test({
  ...needs(["openssl"], "native engine: over TLS, who sends no handshake or another protocol is let go"),
  async fn() {
    await using certificates = await makeCertificates();
    const pair = await pairOf(certificates.server);
    const logger = new RecordedLogger();
    const tls = new ListenerTls(pair, { handshakeMs: HANDSHAKE_MS, clock: systemClock, logger });
    await using bed = await EngineBed.open({ tls });
    await using silent = await bed.connect({});
    await using other = await bed.connect({});
    other.send(new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n".repeat(50)));
    await Promise.all([silent.end(), other.end()]);
    assertEquals(silent.lines, []);
  },
});

Deno.test("native engine: connections that are torn away leave nothing behind", async () => {
  await using bed = await EngineBed.open();
  for (let round = 0; round < 50; round++) {
    await using peer = await bed.connect();
    peer.send(call(1, probePath("Watch"), "x"), call(3, probePath("Hold"), ""));
    await peer.line('DATA 1 message "x"');
  }
  await until("the streams to end", () => bed.probe.watchers.size === 0);
  for (const reply of bed.probe.held) reply("late");
});
