import { assertEquals } from "@std/assert";
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { createServer } from "node:https";
import type { SendResult } from "../../../src/webhooks/deliveries/sender.ts";
import { type CertificateFiles, makeCertificates } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { needs } from "../../harness/tools.ts";
import { receiver, SECRET, sendOnce } from "../../harness/sender_fixture.ts";

/** What a receiver does to a request, and what comes of the attempt. */
interface Animal {
  readonly act: (socket: Socket) => void;
  readonly expected: SendResult;
  readonly timeoutMs?: number;
}

const PIECE = "x".repeat(65_536);
const NO_ANSWER: SendResult = { errorKind: "timeout", error: "no answer within 300 ms" };
const UNREADABLE = (code: string): SendResult => ({
  errorKind: "protocol",
  error: `the response is not valid HTTP (${code})`,
});
const ENDED: SendResult = {
  errorKind: "reset",
  error: "the connection closed before a response arrived (ECONNRESET)",
};

const ZOO: Readonly<Record<string, Animal>> = {
  "200 with a body": {
    act: (socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone"),
    expected: { status: 200, response: "done" },
  },
  "204": {
    act: (socket) => socket.write("HTTP/1.1 204 None\r\n\r\n"),
    expected: { status: 204, response: "" },
  },
  "299 in chunks": {
    act: (socket) =>
      socket.write("HTTP/1.1 299 Odd\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    expected: { status: 299, response: "ok" },
  },
  "nothing at all": { act: () => {}, timeoutMs: 300, expected: NO_ANSWER },
  "slow headers": {
    act: (socket) => drip(socket, "HTTP/1.1 200 OK\r\nx-slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    timeoutMs: 3_000,
    expected: { status: 200, response: "" },
  },
  "a slow status line": {
    act: (socket) => drip(socket, `HTTP/1.1 200 ${"O".repeat(1_000)}`),
    timeoutMs: 300,
    expected: NO_ANSWER,
  },
  "a status line, then nothing": {
    act: (socket) => socket.write("HTTP/1.1 410 Gone\r\n"),
    timeoutMs: 300,
    expected: { status: 410, errorKind: "status", error: "the receiver responded with 410", response: "" },
  },
  "a status line and Retry-After, then the end": {
    act: (socket) => socket.end("HTTP/1.1 429 Slow\r\nretry-after: 60\r\nbad"),
    expected: {
      ...{ status: 429, errorKind: "status", error: "the receiver responded with 429", response: "" },
      retryAfterMs: 60_000,
    },
  },
  "a reset after the status line": {
    act: (socket) => socket.write("HTTP/1.1 204 No\r\n", () => socket.resetAndDestroy()),
    expected: { status: 204, response: "" },
  },
  "slow body": {
    act: (socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart"),
    timeoutMs: 300,
    expected: { status: 200, response: "part" },
  },
  "slow body of a 500": {
    act: (socket) => socket.write("HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\npart"),
    timeoutMs: 300,
    expected: {
      status: 500,
      errorKind: "status",
      error: "the receiver responded with 500",
      response: "part",
    },
  },
  "a body of 100 MB": {
    act: (socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n");
      pour(socket, 1_600);
    },
    expected: { status: 200, response: "x".repeat(16_384) },
  },
  "a body without end": {
    act: (socket) => {
      socket.write("HTTP/1.1 503 Busy\r\nretry-after: 120\r\n\r\n");
      pour(socket, Infinity);
    },
    expected: {
      status: 503,
      errorKind: "status",
      error: "the receiver responded with 503",
      response: "x".repeat(16_384),
      retryAfterMs: 120_000,
    },
  },
  "two Retry-After headers, of which the first counts": {
    act: (socket) =>
      socket.end("HTTP/1.1 503 Busy\r\nretry-after: 5\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n"),
    expected: {
      status: 503,
      errorKind: "status",
      error: "the receiver responded with 503",
      response: "",
      retryAfterMs: 5_000,
    },
  },
  "a cut body after 200": {
    act: (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart"),
    expected: { status: 200, response: "part" },
  },
  "a reset in the body after 200": {
    act: (socket) =>
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n", () => socket.resetAndDestroy()),
    expected: { status: 200, response: "" },
  },
  "bad chunks after 202": {
    act: (socket) => socket.write("HTTP/1.1 202 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    expected: { status: 202, response: "" },
  },
  "1xx, then the end": { act: (socket) => socket.end("HTTP/1.1 103 Early Hints\r\n\r\n"), expected: ENDED },
  "1xx, then nothing": {
    act: (socket) => socket.write("HTTP/1.1 102 Processing\r\n\r\n"),
    timeoutMs: 300,
    expected: NO_ANSWER,
  },
  "1xx, then 200": {
    act: (socket) =>
      socket.write("HTTP/1.1 103 Early\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    expected: { status: 200, response: "" },
  },
  "101": {
    act: (socket) => socket.write("HTTP/1.1 101 Switch\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    expected: {
      status: 101,
      errorKind: "status",
      error: "the receiver responded with 101, which is not a final status",
    },
  },
  "999": {
    act: (socket) => socket.write("HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n"),
    expected: {
      status: 999,
      errorKind: "status",
      error: "the receiver responded with 999, which is not a final status",
    },
  },
  "304": {
    act: (socket) => socket.write("HTTP/1.1 304 Same\r\n\r\n"),
    expected: { status: 304, errorKind: "status", error: "the receiver responded with 304", response: "" },
  },
  "a redirect to the metadata address": {
    act: (socket) =>
      socket.write(
        `HTTP/1.1 307 There\r\nlocation: http://169.254.169.254/?${SECRET}\r\ncontent-length: 0\r\n\r\n`,
      ),
    expected: {
      status: 307,
      errorKind: "redirect",
      error: "the receiver responded with 307, and redirects are not followed",
      response: "",
    },
  },
  "404": {
    act: (socket) => socket.write("HTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\nno"),
    expected: { status: 404, errorKind: "status", error: "the receiver responded with 404", response: "no" },
  },
  "HTTP/1.0": {
    act: (socket) => socket.end("HTTP/1.0 200 OK\r\n\r\nold"),
    expected: { status: 200, response: "old" },
  },
  "a compressed body": {
    act: (socket) => {
      const body = gzipSync(`received ${SECRET}`);
      const head = "HTTP/1.1 400 No\r\ncontent-encoding: gzip\r\ncontent-type: text/plain; charset=latin1";
      socket.write(`${head}\r\ncontent-length: ${body.byteLength}\r\n\r\n`);
      socket.write(body);
    },
    expected: {
      ...{ status: 400, errorKind: "status", error: "the receiver responded with 400" },
      response: "received ***",
    },
  },
  "Latin-1": {
    act: (socket) => {
      const head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=iso-8859-1\r\ncontent-length: 2";
      socket.write(`${head}\r\n\r\n\xe4\xf6`, "latin1");
    },
    expected: { status: 200, response: "äö" },
  },
  "a reset": { act: (socket) => socket.resetAndDestroy(), expected: ENDED },
  "an end": { act: (socket) => socket.end(), expected: ENDED },
  "half a status line": { act: (socket) => socket.end("HTTP/1.1 200 O"), expected: ENDED },
  "garbage": {
    act: (socket) => socket.end("SSH-2.0-OpenSSH_9\r\n"),
    expected: UNREADABLE("HPE_INVALID_CONSTANT"),
  },
  "a header that is none": {
    act: (socket) => socket.write("HTTP/1.1 200 OK\r\nbad header\r\n\r\n"),
    expected: { status: 200, response: "" },
  },
  "headers of 200 kB": {
    act: (socket) => socket.write(`HTTP/1.1 200 OK\r\na: ${"x".repeat(200_000)}\r\n\r\n`),
    expected: { status: 200, response: "" },
  },
  "headers without an end": {
    act: (socket) => {
      socket.write("HTTP/1.1 503 Busy\r\nretry-after: 120\r\na: ");
      pour(socket, Infinity);
    },
    expected: {
      ...{ status: 503, errorKind: "status", error: "the receiver responded with 503", response: "" },
      retryAfterMs: 120_000,
    },
  },
  "300 headers, and then Retry-After": {
    act: (socket) =>
      socket.end(
        `HTTP/1.1 503 Busy\r\n${"a: b\r\n".repeat(300)}retry-after: 9\r\ncontent-length: 2\r\n\r\nno`,
      ),
    expected: {
      ...{ status: 503, errorKind: "status", error: "the receiver responded with 503", response: "no" },
      retryAfterMs: 9_000,
    },
  },
};

for (const [name, { act, timeoutMs, expected }] of Object.entries(ZOO)) {
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

/** Receivers with TLS: their certificate, the name that is asked for, and what comes of it. */
const TLS_ZOO: Readonly<
  Record<string, {
    readonly certificate: "server" | "elsewhere" | "stranger" | "expired";
    readonly host?: string;
    readonly isTrusted?: boolean;
    /** How far the clock of the sender is ahead. */
    readonly aheadMs?: number;
    readonly expected: SendResult;
  }>
> = {
  "a certificate of the authority": { certificate: "server", expected: { status: 200, response: "ok" } },
  "an address in the certificate": {
    certificate: "server",
    host: "127.0.0.1",
    expected: { status: 200, response: "ok" },
  },
  "an authority that nobody trusts": {
    certificate: "stranger",
    expected: {
      errorKind: "tls",
      error: "the certificate is not issued by a trusted authority (UNABLE_TO_VERIFY_LEAF_SIGNATURE)",
    },
  },
  "no authorities but the platform's": {
    certificate: "server",
    isTrusted: false,
    expected: {
      errorKind: "tls",
      error: "the certificate is not issued by a trusted authority (UNABLE_TO_VERIFY_LEAF_SIGNATURE)",
    },
  },
  "an expired certificate of the authority": {
    certificate: "expired",
    expected: { errorKind: "tls", error: "the certificate expired on DATE (CERT_HAS_EXPIRED)" },
  },
  "an expired certificate of an authority that nobody trusts": {
    certificate: "expired",
    isTrusted: false,
    expected: { errorKind: "tls", error: "the certificate expired on DATE (CERT_HAS_EXPIRED)" },
  },
  "a certificate that is not valid yet": {
    certificate: "server",
    isTrusted: false,
    aheadMs: -86_400_000,
    expected: { errorKind: "tls", error: "the certificate is not valid before DATE (CERT_NOT_YET_VALID)" },
  },
  "a certificate for another name": {
    certificate: "elsewhere",
    expected: {
      errorKind: "tls",
      error: "the certificate is for another name (ERR_TLS_CERT_ALTNAME_INVALID)",
    },
  },
  "a certificate for another address": {
    certificate: "server",
    host: "127.0.0.2",
    expected: {
      errorKind: "tls",
      error: "the certificate is for another name (ERR_TLS_CERT_ALTNAME_INVALID)",
    },
  },
};

/** Certificates of this run have its dates. */
function withoutDate({ error, ...result }: SendResult): SendResult {
  if (error === undefined) return result;
  return { ...result, error: error.replace(/20\d\d-[-\d]+T[\d:.]+Z/, "DATE") };
}

Deno.test({
  ...needs(["openssl"], "zoo: certificates"),
  async fn() {
    await using certificates = await makeCertificates();
    const stranger = await certificates.issue("stranger", { names: "DNS:localhost", byOther: true });
    const expired = await certificates.issue("expired", { names: "DNS:localhost", isExpired: true });
    const { server: own, elsewhere } = certificates;
    const files: Readonly<Record<string, CertificateFiles>> = { server: own, elsewhere, stranger, expired };
    for (
      const [name, { certificate, host = "localhost", isTrusted = true, aheadMs = 0, expected }] of Object
        .entries(TLS_ZOO)
    ) {
      const pair = files[certificate] ?? stranger;
      const server = createServer({
        key: await Deno.readTextFile(pair.keyFile),
        cert: await Deno.readTextFile(pair.certFile),
      }, (request, response) => void request.resume().on("end", () => response.end("ok")));
      server.on("tlsClientError", () => {});
      const port = await new Promise<number>((resolve) =>
        server.listen(0, "0.0.0.0", () => {
          const address = server.address();
          resolve(typeof address === "object" ? address?.port ?? 0 : 0);
        })
      );
      const trust = isTrusted ? { caFile: certificates.authority.certFile } : {};
      const lookup = () => Promise.resolve(["127.0.0.1"]);
      const clock = FakeClock.byTurns(Date.now() + aheadMs);
      const result = await sendOnce(`https://${host}:${port}/`, { ...trust, lookup, clock });
      assertEquals(withoutDate(result), expected, name);
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    }
  },
});

Deno.test("zoo: TLS where there is none, and the other way round", async () => {
  await using plain = await receiver((socket) => socket.end());
  assertEquals(await sendOnce(`https://127.0.0.1:${plain.port}/`, { connectTimeoutMs: 300 }), {
    errorKind: "timeout",
    error: "the TLS handshake was not done within 300 ms",
  });
});

Deno.test("zoo: nobody there", async () => {
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
