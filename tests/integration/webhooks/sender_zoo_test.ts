import { assertEquals } from "#assert";
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import type { SendResult } from "../../../src/webhooks/deliveries/sender.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { tlsReceiver } from "./guarded_fetch_fixture.ts";
import { needing } from "../../harness/tools.ts";
import { receiver, SECRET, sendOnce } from "../../harness/sender_fixture.ts";

/** The reaction of a receiver to a request, the result of the attempt, and its timeout. */
type Animal = readonly [act: (socket: Socket) => void, expected: SendResult, timeoutMs?: number];

const PIECE = "x".repeat(65_536);
const SHORT_MS = 300;
const NO_ANSWER: SendResult = { errorKind: "timeout", error: "no answer within 300 ms" };
const ENDED: SendResult = {
  errorKind: "reset",
  error: "the connection closed before a response arrived (ECONNRESET)",
};

const writes = (text: string) => (socket: Socket) => void socket.write(text);
const ends = (text: string) => (socket: Socket) => void socket.end(text);
const resets = (text: string) => (socket: Socket) => void socket.write(text, () => socket.resetAndDestroy());
const floods = (text: string, pieces = Infinity) => (socket: Socket) => {
  socket.write(text);
  pour(socket, pieces);
};

function good(status: number, response = ""): SendResult {
  return { status, response };
}

function bad(status: number, more: Partial<SendResult> = {}): SendResult {
  const error = `the receiver responded with ${status}`;
  return { status, errorKind: "status", error, response: "", ...more };
}

function notFinal(status: number): SendResult {
  return {
    status,
    errorKind: "status",
    error: `the receiver responded with ${status}, which is not a final status`,
  };
}

const ZOO: Readonly<Record<string, Animal>> = {
  "200 with a body": [writes("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone"), good(200, "done")],
  "204": [writes("HTTP/1.1 204 None\r\n\r\n"), good(204)],
  "299 in chunks": [
    writes("HTTP/1.1 299 Odd\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    good(299, "ok"),
  ],
  "nothing at all": [() => {}, NO_ANSWER, SHORT_MS],
  "slow headers": [
    (socket) => drip(socket, "HTTP/1.1 200 OK\r\nx-slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    good(200),
    3_000,
  ],
  "a slow status line": [(socket) => drip(socket, `HTTP/1.1 200 ${"O".repeat(1_000)}`), NO_ANSWER, SHORT_MS],
  "a status line, then nothing": [writes("HTTP/1.1 410 Gone\r\n"), bad(410), SHORT_MS],
  "a status line and Retry-After, then the end": [
    ends("HTTP/1.1 429 Slow\r\nretry-after: 60\r\nbad"),
    bad(429, { retryAfterMs: 60_000 }),
  ],
  "a reset after the status line": [resets("HTTP/1.1 204 No\r\n"), good(204)],
  "slow body": [writes("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart"), good(200, "part"), SHORT_MS],
  "slow body of a 500": [
    writes("HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\npart"),
    bad(500, { response: "part" }),
    SHORT_MS,
  ],
  "a body of 100 MB": [
    floods("HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n", 1_600),
    good(200, "x".repeat(16_384)),
  ],
  "a body without end": [
    floods("HTTP/1.1 503 Busy\r\nretry-after: 120\r\n\r\n"),
    bad(503, { response: "x".repeat(16_384), retryAfterMs: 120_000 }),
  ],
  "two Retry-After headers, of which the first counts": [
    ends("HTTP/1.1 503 Busy\r\nretry-after: 5\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n"),
    bad(503, { retryAfterMs: 5_000 }),
  ],
  "a cut body after 200": [ends("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart"), good(200, "part")],
  "a reset in the body after 200": [resets("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"), good(200)],
  "bad chunks after 202": [
    writes("HTTP/1.1 202 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    good(202),
  ],
  "1xx, then the end": [ends("HTTP/1.1 103 Early Hints\r\n\r\n"), ENDED],
  "1xx, then nothing": [writes("HTTP/1.1 102 Processing\r\n\r\n"), NO_ANSWER, SHORT_MS],
  "1xx, then 200": [
    writes("HTTP/1.1 103 Early\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    good(200),
  ],
  "101": [writes("HTTP/1.1 101 Switch\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"), notFinal(101)],
  "999": [writes("HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n"), notFinal(999)],
  "304": [writes("HTTP/1.1 304 Same\r\n\r\n"), bad(304)],
  "a redirect to the metadata address": [
    writes(
      `HTTP/1.1 307 There\r\nlocation: http://169.254.169.254/?${SECRET}\r\ncontent-length: 0\r\n\r\n`,
    ),
    bad(307, {
      errorKind: "redirect",
      error: "the receiver responded with 307, and redirects are not followed",
    }),
  ],
  "404": [writes("HTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\nno"), bad(404, { response: "no" })],
  "HTTP/1.0": [ends("HTTP/1.0 200 OK\r\n\r\nold"), good(200, "old")],
  "a compressed body": [(socket) => {
    const body = gzipSync(`received ${SECRET}`);
    const head = "HTTP/1.1 400 No\r\ncontent-encoding: gzip\r\ncontent-type: text/plain; charset=latin1";
    socket.write(`${head}\r\ncontent-length: ${body.byteLength}\r\n\r\n`);
    socket.write(body);
  }, bad(400, { response: "received ***" })],
  "Latin-1": [(socket) => {
    const head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=iso-8859-1\r\ncontent-length: 2";
    socket.write(`${head}\r\n\r\n\xe4\xf6`, "latin1");
  }, good(200, "äö")],
  "a reset": [(socket) => socket.resetAndDestroy(), ENDED],
  "an end": [(socket) => socket.end(), ENDED],
  "half a status line": [ends("HTTP/1.1 200 O"), ENDED],
  "garbage": [
    ends("SSH-2.0-OpenSSH_9\r\n"),
    { errorKind: "protocol", error: "the response is not valid HTTP (HPE_INVALID_CONSTANT)" },
  ],
  "a header that is none": [writes("HTTP/1.1 200 OK\r\nbad header\r\n\r\n"), good(200)],
  "headers of 200 kB": [writes(`HTTP/1.1 200 OK\r\na: ${"x".repeat(200_000)}\r\n\r\n`), good(200)],
  "headers without an end": [
    floods("HTTP/1.1 503 Busy\r\nretry-after: 120\r\na: "),
    bad(503, { retryAfterMs: 120_000 }),
  ],
  "300 headers, and then Retry-After": [
    ends(`HTTP/1.1 503 Busy\r\n${"a: b\r\n".repeat(300)}retry-after: 9\r\ncontent-length: 2\r\n\r\nno`),
    bad(503, { response: "no", retryAfterMs: 9_000 }),
  ],
};

for (const [name, [act, expected, timeoutMs]] of Object.entries(ZOO)) {
  Deno.test(`zoo: ${name}`, async () => {
    await using server = await receiver(act);
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    const result = await sendOnce(`${server.origin}/hook?token=${SECRET}`, limit);
    assertEquals(result, expected);
    assertEquals([JSON.stringify(result).includes(SECRET), server.accepted], [false, 1]);
  });
}

/** One letter at a time, for as long as anybody listens. */
function drip(socket: Socket, text: string): void {
  let at = 0;
  const timer = setInterval(() => socket.write(text[at++ % text.length] ?? ""), 50);
  socket.on("close", () => clearInterval(timer));
}

/** So many pieces of 64 KiB, as fast as they are taken. */
function pour(socket: Socket, pieces: number): void {
  let left = pieces;
  const next = () => {
    while (left-- > 0 && !socket.destroyed) if (!socket.write(PIECE)) return void socket.once("drain", next);
  };
  next();
}

/** A receiver with TLS, and the name that is asked for. */
interface TlsAnimal {
  readonly certificate?: "server" | "elsewhere" | "stranger" | "expired";
  readonly host?: string;
  readonly isTrusted?: boolean;
  /** The lead of the clock of the sender. */
  readonly aheadMs?: number;
}

const UNTRUSTED = "not issued by a trusted authority (UNABLE_TO_VERIFY_LEAF_SIGNATURE)";
const EXPIRED = "expired on DATE (CERT_HAS_EXPIRED)";
const OTHER_NAME = "for another name (ERR_TLS_CERT_ALTNAME_INVALID)";

/** The fault of the certificate; absent if the delivery arrives. */
const TLS_ZOO: Readonly<Record<string, readonly [TlsAnimal, problem?: string]>> = {
  "a certificate of the authority": [{}],
  "an address in the certificate": [{ host: "127.0.0.1" }],
  "an unknown authority": [{ certificate: "stranger" }, `is ${UNTRUSTED}`],
  "no authorities but the platform's": [{ isTrusted: false }, `is ${UNTRUSTED}`],
  "an expired certificate of the authority": [{ certificate: "expired" }, EXPIRED],
  "an expired certificate of an unknown authority": [
    { certificate: "expired", isTrusted: false },
    EXPIRED,
  ],
  "a certificate that is not valid yet": [
    { isTrusted: false, aheadMs: -86_400_000 },
    "is not valid before DATE (CERT_NOT_YET_VALID)",
  ],
  "a certificate for another name": [{ certificate: "elsewhere" }, `is ${OTHER_NAME}`],
  "a certificate for another address": [{ host: "127.0.0.2" }, `is ${OTHER_NAME}`],
};

/** Certificates of this run have its dates. */
function withoutDate({ error, ...result }: SendResult): SendResult {
  if (error === undefined) return result;
  return { ...result, error: error.replace(/20\d\d-[-\d]+T[\d:.]+Z/, "DATE") };
}

needing("openssl").test("zoo: certificates", async () => {
  await using certificates = await makeCertificates();
  const stranger = await certificates.issue("stranger", { names: "DNS:localhost", byOther: true });
  const expired = await certificates.issue("expired", { names: "DNS:localhost", isExpired: true });
  const files = { server: certificates.server, elsewhere: certificates.elsewhere, stranger, expired };
  for (const [name, [animal, problem]] of Object.entries(TLS_ZOO)) {
    const { certificate = "server", host = "localhost", isTrusted = true, aheadMs = 0 } = animal;
    await using server = await tlsReceiver(files[certificate]);
    const authority = await Deno.readTextFile(certificates.authority.certFile);
    const trust = isTrusted ? { authorities: [authority] } : {};
    const lookup = () => Promise.resolve(["127.0.0.1"]);
    const clock = FakeClock.byTurns(Date.now() + aheadMs);
    const result = await sendOnce(`https://${host}:${server.port}/`, { ...trust, lookup, clock });
    const failure: SendResult = { errorKind: "tls", error: `the certificate ${problem}` };
    assertEquals(withoutDate(result), problem === undefined ? good(200, "ok") : failure, name);
  }
});

Deno.test("zoo: TLS where there is none, and the other way round", async () => {
  await using plain = await receiver((socket) => socket.end());
  assertEquals(await sendOnce(`https://127.0.0.1:${plain.port}/`, { connectTimeoutMs: 300 }), {
    errorKind: "timeout",
    error: "the TLS handshake was not done within 300 ms",
  });
});

Deno.test("zoo: connection refused", async () => {
  const port = freePort();
  assertEquals(await sendOnce(`http://127.0.0.1:${port}/`), {
    errorKind: "connect",
    error: `connection refused (127.0.0.1:${port})`,
  });
  const unknown = await sendOnce("https://receiver.invalid/hook");
  assertEquals(unknown.errorKind, "dns");
  assertEquals(unknown.error?.replace(/ \(\w+\)$/, ""), "the name of the host cannot be resolved");
  const isSilent = () => new Promise<never>(() => {});
  assertEquals(await sendOnce("https://receiver.test/", { lookup: isSilent, connectTimeoutMs: 100 }), {
    errorKind: "timeout",
    error: "no address of the host was found within 100 ms",
  });
});

Deno.test("zoo: given up", async () => {
  const controller = new AbortController();
  await using server = await receiver(() => controller.abort());
  assertEquals(await sendOnce(`${server.origin}/`, { signal: controller.signal }), {
    errorKind: "interrupted",
    error: "interrupted before the response arrived",
  });
  assertEquals((await sendOnce(`${server.origin}/`, { signal: controller.signal })).errorKind, "interrupted");
});
