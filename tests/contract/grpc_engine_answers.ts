import { assertEquals } from "#assert";
import http2 from "node:http2";
import { deflateSync, gzipSync } from "node:zlib";
import { systemClock } from "../../src/base/clock.ts";
import type { GrpcEngine, GrpcEngineOptions } from "../../src/grpc/engine.ts";
import type { GrpcService } from "../../src/grpc/grpc_service.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { concatBytes, message } from "../harness/h2_peer.ts";
import { quickClock } from "../harness/fake_clock.ts";

type Start = (options: GrpcEngineOptions) => Promise<GrpcEngine>;

const LARGEST = 4_194_304;
const EXPANDED = `Received message that decompresses to a size larger than ${LARGEST}`;
const UNIMPLEMENTED = "The server does not implement the method";

const SERVICE: GrpcService = {
  name: "test.Probe",
  methods: [
    { kind: "unary", name: "Echo", handle: (request) => request },
    { kind: "unary", name: "Hold", handle: () => new Promise(() => {}) },
  ],
};

/** A request, and the parts of its answer that both engines give alike. */
interface Case {
  readonly headers?: http2.OutgoingHttpHeaders;
  readonly body?: Uint8Array;
  readonly answer: Partial<Answer>;
}

interface Answer {
  readonly http: unknown;
  readonly status: unknown;
  readonly details: string;
  readonly body: string;
  readonly acceptEncoding: unknown;
}

const OK = { http: 200, status: "0", body: "x" };
const compressed = (encoding: string, bytes: Uint8Array): Pick<Case, "headers" | "body"> => ({
  headers: { "grpc-encoding": encoding },
  body: message(bytes, true),
});
const X = new TextEncoder().encode("x");

const CASES: Readonly<Record<string, Case>> = {
  "the first answer of a connection": { answer: { ...OK, acceptEncoding: "identity,deflate,gzip" } },
  "a gzip message": { ...compressed("gzip", gzipSync(X)), answer: OK },
  "a deflate message": { ...compressed("deflate", deflateSync(X)), answer: OK },
  "a deflate message that is none": {
    ...compressed("deflate", X),
    answer: { status: "13", details: "Failed to decompress message" },
  },
  "a plain message under an unknown encoding": { headers: { "grpc-encoding": "lz4" }, answer: OK },
  "a message of an unknown encoding": {
    ...compressed("lz4", X),
    answer: { status: "12", details: 'Received message compressed with unsupported encoding "lz4"' },
  },
  "a message that is too large": {
    body: Uint8Array.fromHex("0000400001"),
    answer: { status: "8", details: `Received message larger than max (${LARGEST + 1} vs ${LARGEST})` },
  },
  "a message that becomes too large": {
    ...compressed("deflate", deflateSync(new Uint8Array(LARGEST + 1))),
    answer: { status: "8", details: EXPANDED },
  },
  "an unknown method": {
    headers: { ":path": "/test.Probe/Nothing" },
    answer: { http: 200, status: "12", details: `${UNIMPLEMENTED} /test.Probe/Nothing` },
  },
  "an unknown service": {
    headers: { ":path": "/test.Nothing/Echo" },
    answer: { http: 200, status: "12", details: `${UNIMPLEMENTED} /test.Nothing/Echo` },
  },
  "a request without a message": { body: new Uint8Array(), answer: { status: "12" } },
  "a request with two messages": { body: concatBytes(message(X), message(X)), answer: { status: "12" } },
  "a timeout that cannot be read": {
    headers: { "grpc-timeout": "never" },
    answer: { status: "13", details: 'Invalid grpc-timeout value "never"' },
  },
  "a call past its deadline": {
    headers: { ":path": "/test.Probe/Hold", "grpc-timeout": "50m" },
    answer: { status: "4", details: "Deadline exceeded" },
  },
  "GET /": {
    headers: { ":path": "/", ":method": "GET", "content-type": "text/plain" },
    body: new Uint8Array(),
    answer: { http: 415, status: undefined },
  },
};

/** Answers that clients can tell apart, which must be the same with every engine. */
export function grpcEngineAnswers(name: string, start: Start): void {
  Deno.test(`gRPC engine ${name}: answers as the other engine does`, async (test) => {
    const engine = await startOn(start);
    const session = http2.connect(`http://${engine.address}`);
    session.on("error", () => {});
    for (const [title, { answer, ...request }] of Object.entries(CASES)) {
      await test.step(title, async () => {
        const seen = await ask(session, request);
        const shown = Object.keys(answer).map((key) => [key, seen[key as keyof Answer]]);
        assertEquals<unknown>(Object.fromEntries(shown), answer);
      });
    }
    await closed(session);
    await engine.close(1_000);
  });

  Deno.test(`gRPC engine ${name}: without a grace an old connection is cut, running calls or not`, async () => {
    const engine = await startOn(start, {
      maxConnectionAgeMs: 100,
      maxConnectionAgeGraceMs: 0,
      clock: quickClock,
    });
    const session = http2.connect(`http://${engine.address}`);
    const goAway = new Promise((resolve) => session.on("goaway", resolve));
    session.on("error", () => {});
    const held = ask(session, { headers: { ":path": "/test.Probe/Hold" } }).catch(() => undefined);
    assertEquals(await goAway, 0);
    await new Promise<void>((resolve) => session.closed ? resolve() : session.once("close", () => resolve()));
    await held;
    await engine.close(1_000);
  });
}

async function startOn(start: Start, part: Partial<GrpcEngineOptions> = {}): Promise<GrpcEngine> {
  return await start({
    services: [SERVICE],
    target: { kind: "tcp", host: "127.0.0.1", port: 0 },
    maxConnectionAgeMs: 0,
    maxConnectionAgeGraceMs: 0,
    logger: createLogger({ level: "error", format: "text", clock: systemClock, write: () => {} }),
    clock: systemClock,
    random: Math.random,
    ...part,
  });
}

function ask(session: http2.ClientHttp2Session, { headers, body = message(X) }: Omit<Case, "answer">) {
  return new Promise<Answer>((resolve, reject) => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/test.Probe/Echo",
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    let first: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader = {};
    let last: http2.IncomingHttpHeaders | undefined;
    let data: Uint8Array = new Uint8Array();
    stream.on("response", (fields) => first = fields);
    stream.on("trailers", (fields) => last = fields);
    stream.on("data", (chunk: Uint8Array) => data = concatBytes(data, chunk));
    stream.on("error", reject);
    stream.on("close", () => {
      const fields = last ?? first;
      resolve({
        http: first[":status"],
        status: fields["grpc-status"],
        details: decodeURIComponent(String(fields["grpc-message"] ?? "")),
        body: new TextDecoder().decode(data.subarray(5)),
        acceptEncoding: first["grpc-accept-encoding"],
      });
    });
    if (body.length > 0) stream.write(body);
    stream.end();
  });
}

function closed(session: http2.ClientHttp2Session): Promise<void> {
  return new Promise((resolve) => session.close(() => resolve()));
}
