import { assertEquals, assertMatch } from "#assert";
import { ConnectionError, StreamError } from "../../../../src/grpc/native/frames.ts";
import type { HeaderField } from "../../../../src/grpc/native/hpack_decoder.ts";
import { HeadReader, type RequestHead } from "../../../../src/grpc/native/request_head.ts";
import { callFields } from "../../../harness/h2_peer.ts";
import { Probe, probePath } from "../../../harness/probe.ts";

const METHODS = new Probe().methods;
const ECHO = callFields(probePath("Echo"));
const withFields = (...more: HeaderField[]): HeaderField[] => [...ECHO, ...more];
const changed = (more: Readonly<Record<string, string>>) => callFields(probePath("Echo"), more);
const without = (name: string): HeaderField[] => ECHO.filter(([known]) => known !== name);

/** A reader that has read these fields as a decoder hands them on. */
function readerOf(fields: readonly HeaderField[]): HeadReader {
  const reader = new HeadReader(METHODS);
  reader.begin();
  for (const [name, value] of fields) if (reader.keeps(name)) reader.take(name, value);
  return reader;
}

const readHead = (fields: readonly HeaderField[], streamId: number): RequestHead =>
  readerOf(fields).head(streamId);

/** The code and the text of what is thrown; empty when nothing is. */
function refusal(run: () => unknown): string {
  try {
    run();
    return "";
  } catch (error) {
    if (error instanceof StreamError) return `${error.streamId} ${error.code} ${error.message}`;
    throw error instanceof ConnectionError ? new Error("only the stream is to be reset") : error;
  }
}

const MALFORMED: Readonly<Record<string, readonly HeaderField[]>> = {
  "no field": [],
  "no :method": without(":method"),
  "no :scheme": without(":scheme"),
  "no :path": without(":path"),
  "an empty :path": changed({ ":path": "" }),
  ":method twice": [[":method", "POST"], ...ECHO],
  ":path twice": [[":path", "/"], ...ECHO],
  ":scheme twice": [[":scheme", "http"], ...ECHO],
  ":authority twice": [[":authority", "a"], ...ECHO],
  "a pseudo-header behind another": [["a", "b"], ...ECHO],
  "a pseudo-header of an answer": [[":status", "200"], ...ECHO],
  "an unknown pseudo-header": [[":x", "y"], ...ECHO],
  "an upper-case name": withFields(["X-a", "b"]),
  "an empty name": withFields(["", "b"]),
  "a space in a name": withFields(["a b", "c"]),
  "a colon in a name": withFields(["a:b", "c"]),
  "a byte above ASCII in a name": withFields(["a\xe4", "c"]),
  "connection": withFields(["connection", "close"]),
  "keep-alive": withFields(["keep-alive", "1"]),
  "proxy-connection": withFields(["proxy-connection", ""]),
  "transfer-encoding": withFields(["transfer-encoding", "x"]),
  "upgrade": withFields(["upgrade", "h2c"]),
  "another te": changed({ te: "trailers, deflate" }),
  "a length that is no number": withFields(["content-length", "1x"]),
  "a length below 0": withFields(["content-length", "-1"]),
  "an empty length": withFields(["content-length", ""]),
  "two lengths": withFields(["content-length", "1"], ["content-length", "2"]),
};

for (const [name, fields] of Object.entries(MALFORMED)) {
  Deno.test(`readHead: a malformed request: ${name}`, () => {
    assertMatch(refusal(() => readHead(fields, 7)), /^7 PROTOCOL_ERROR Cannot read a request: /);
  });
}

const READ:
  readonly (readonly [name: string, fields: readonly HeaderField[], head: Record<string, unknown>])[] = [
    ["a call", ECHO, {}],
    ["application/grpc+proto", changed({ "content-type": "application/grpc+proto" }), {}],
    ["application/grpc;v=1", changed({ "content-type": "application/grpc;v=1" }), {}],
    ["application/json", changed({ "content-type": "application/json" }), { refusal: "content_type" }],
    ["application/grpcx", changed({ "content-type": "application/grpcx" }), { refusal: "content_type" }],
    ["no content type", without("content-type"), { refusal: "content_type" }],
    ["GET", changed({ ":method": "GET" }), { refusal: "content_type" }],
    ["an unknown method", callFields("/test.Probe/None"), { path: "/test.Probe/None", refusal: "path" }],
    ["an unknown service", callFields("/x/y"), { path: "/x/y", refusal: "path" }],
    ["gzip", changed({ "grpc-encoding": "gzip" }), { encoding: "gzip" }],
    ["identity", changed({ "grpc-encoding": "identity" }), { encoding: "identity" }],
    ["deflate", changed({ "grpc-encoding": "deflate" }), { encoding: "deflate" }],
    ["5 hours", changed({ "grpc-timeout": "5H" }), { timeoutMs: 18_000_000 }],
    ["5 minutes", changed({ "grpc-timeout": "5M" }), { timeoutMs: 300_000 }],
    ["5 seconds", changed({ "grpc-timeout": "5S" }), { timeoutMs: 5_000 }],
    ["20 ms", changed({ "grpc-timeout": "20m" }), { timeoutMs: 20 }],
    ["99,999,999 µs", changed({ "grpc-timeout": "99999999u" }), { timeoutMs: 99_999.999 }],
    ["500,000 ns", changed({ "grpc-timeout": "500000n" }), { timeoutMs: 0.5 }],
    ["a timeout of 9 digits", changed({ "grpc-timeout": "123456789n" }), { refusal: "timeout" }],
    ["a timeout without a unit", changed({ "grpc-timeout": "5" }), { refusal: "timeout" }],
    ["a timeout below 0", changed({ "grpc-timeout": "-5S" }), { refusal: "timeout" }],
    ["a timeout of an unknown unit", changed({ "grpc-timeout": "5s" }), { refusal: "timeout" }],
    ["an empty timeout", changed({ "grpc-timeout": "" }), { refusal: "timeout" }],
    ["a length", withFields(["content-length", "7"]), { contentLength: 7 }],
    ["the headers of a trace", withFields(["b3", "1"], ["tracestate", "a=1"], ["tracestate", "b=2"]), {
      fields: [["b3", "1"], ["tracestate", "a=1"], ["tracestate", "b=2"]],
    }],
    [
      "more of them than a trace has",
      withFields(...Array.from({ length: 100 }, (): HeaderField => ["b3", "1"])),
      {
        fields: Array.from({ length: 64 }, () => ["b3", "1"]),
      },
    ],
    [
      "values of clients that are no text",
      withFields(["baggage", "a\nb\r\0\xff"], ["x-request-id", "\xe9"]),
      {},
    ],
    ["the same length twice", withFields(["content-length", "7"], ["content-length", "7"]), {
      contentLength: 7,
    }],
  ];

Deno.test("readHead: what a request says", () => {
  const usual = {
    fields: [],
    path: probePath("Echo"),
    refusal: undefined,
    encoding: "",
    timeoutMs: Infinity,
    contentLength: undefined,
  };
  const found = READ.map(([name, fields]) => {
    const { method, verb: _verb, timeout: _timeout, ...head } = readHead(fields, 1);
    return [name, head, method?.name];
  });
  const expected = READ.map(([name, , head]) => {
    return [name, { ...usual, ...head }, head.refusal === undefined ? "Echo" : undefined];
  });
  assertEquals(found, expected);
});

Deno.test("checkTrailers: neither pseudo-headers nor names in upper case", () => {
  const found = [[], [["x-check", "1"]], [[":path", "/"]], [["X", "1"]]] as readonly HeaderField[][];
  assertEquals(found.map((fields) => refusal(() => readerOf(fields).checkTrailers(3))), [
    "",
    "",
    "3 PROTOCOL_ERROR Cannot read a request: a pseudo-header among the trailers",
    '3 PROTOCOL_ERROR Cannot read a request: "X" is not a lower-case header name',
  ]);
});
