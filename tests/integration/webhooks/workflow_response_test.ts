import { assertEquals } from "@std/assert";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { createGuardedFetch, type GuardedRequestInit } from "../../../src/webhooks/outbound/fetch.ts";
import { RawServer } from "../../harness/rest_fixture.ts";
import { LOOPBACK } from "../../harness/sender_fixture.ts";
import { until } from "../../harness/until.ts";
import { WorkflowBed } from "../../harness/workflow_fixture.ts";

/** A body, its headers, and the body that the step has, or its error. */
interface BodyCase {
  readonly body: string | Uint8Array;
  readonly type?: string;
  readonly coding?: string;
  readonly expected: unknown;
}

/** The error of a step. */
class Failed {
  constructor(readonly error: string) {}
}

const JSON_TYPE = "application/json";
const encode = (text: string) => new TextEncoder().encode(text);
const latin1 = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
const marked = (...bytes: number[]) => (rest: Uint8Array) => new Uint8Array([...bytes, ...rest]);
/** In UTF-16, little-endian. */
const utf16 = (text: string) => new Uint8Array(Uint16Array.from(text, (part) => part.charCodeAt(0)).buffer);
const swapped = (bytes: Uint8Array) => bytes.map((_, index) => bytes[index ^ 1] ?? 0);
const TEXT = '{"a":"ä"}';
const GZIP = gzipSync(TEXT);
const BR = brotliCompressSync(TEXT.repeat(100));
const OBJECT = { a: "ä" };
const TOO_LARGE = new Failed("the response body has more than 1048576 bytes");
const BAD_GZIP = new Failed("the response body is not valid gzip");
const UNKNOWN = new Failed("the response body has a content coding other than gzip, deflate, br");
const NOT_TEXT = new Failed("the response body is not text");
const BAD_UTF_8 = new Failed("the response body is not valid utf-8");

const BODIES: Readonly<Record<string, BodyCase>> = {
  "gzip": { body: GZIP, coding: "gzip", expected: OBJECT },
  "GZip by its old name": { body: GZIP, coding: "X-GZip", expected: OBJECT },
  "gzip in two parts": {
    body: new Uint8Array([...gzipSync("[1,"), ...gzipSync("2]")]),
    coding: "gzip",
    expected: [1, 2],
  },
  "gzip of gzip": { body: gzipSync(GZIP), coding: "gzip, gzip", expected: OBJECT },
  "gzip, and then br": { body: brotliCompressSync(GZIP), coding: "gzip, br", expected: OBJECT },
  "deflate": { body: deflateSync(TEXT), coding: "deflate", expected: OBJECT },
  "deflate without its header": { body: deflateRawSync(TEXT), coding: "deflate", expected: OBJECT },
  "br": { body: brotliCompressSync(TEXT), coding: "br", expected: OBJECT },
  "no coding, by name": { body: TEXT, coding: "identity", expected: OBJECT },
  "gzip of nothing": { body: "", coding: "gzip", expected: "" },
  "gzip of a mebibyte": {
    body: gzipSync("x".repeat(1_048_576)),
    type: "text/plain",
    coding: "gzip",
    expected: "x".repeat(1_048_576),
  },
  "gzip of more": { body: gzipSync("x".repeat(1_048_577)), coding: "gzip", expected: TOO_LARGE },
  "a bomb": { body: gzipSync(new Uint8Array(100_000_000)), coding: "gzip", expected: TOO_LARGE },
  "a bomb in br": { body: brotliCompressSync(new Uint8Array(10_000_000)), coding: "br", expected: TOO_LARGE },
  "a bomb in a bomb": {
    body: gzipSync(gzipSync(new Uint8Array(100_000_000))),
    coding: "gzip, gzip",
    expected: TOO_LARGE,
  },
  "gzip that is cut": { body: GZIP.subarray(0, GZIP.length - 9), coding: "gzip", expected: BAD_GZIP },
  "gzip that is none": { body: TEXT, coding: "gzip", expected: BAD_GZIP },
  "br that is cut": {
    body: BR.subarray(0, BR.length - 3),
    coding: "br",
    expected: new Failed("the response body is not valid br"),
  },
  "an unknown coding": { body: TEXT, coding: "zstd", expected: UNKNOWN },
  "too many codings": { body: TEXT, coding: "gzip, gzip, gzip, gzip", expected: UNKNOWN },
  "a byte order mark": { body: marked(0xef, 0xbb, 0xbf)(encode(TEXT)), expected: OBJECT },
  "JSON of another type": {
    body: marked(0xef, 0xbb, 0xbf)(encode(TEXT)),
    type: "image/vnd.a.b+json; v=1",
    expected: OBJECT,
  },
  "JSON as text/json": { body: TEXT, type: "text/json", expected: OBJECT },
  "JSON that is none": { body: "{", expected: "{" },
  "Latin-1": { body: latin1("ä"), type: "text/plain;charset=ISO-8859-1", expected: "ä" },
  "Latin-1 in quotes": { body: latin1("ä"), type: 'text/plain; a=b; charset="latin1"', expected: "ä" },
  "JSON in Latin-1": { body: latin1(TEXT), type: `${JSON_TYPE}; charset=latin1`, expected: OBJECT },
  "gzip of Latin-1": {
    body: gzipSync(latin1("ä")),
    type: "text/plain; charset=latin1",
    coding: "gzip",
    expected: "ä",
  },
  "UTF-16": { body: utf16("aä"), type: "text/plain; charset=utf-16le", expected: "aä" },
  "UTF-16, big-endian": { body: swapped(utf16("aä")), type: "text/plain; charset=UTF-16BE", expected: "aä" },
  "UTF-16 by its mark": { body: marked(0xff, 0xfe)(utf16(TEXT)), expected: OBJECT },
  "UTF-16, big-endian, by its mark": { body: marked(0xfe, 0xff)(swapped(utf16(TEXT))), expected: OBJECT },
  "Shift JIS": { body: new Uint8Array([0x93, 0xfa]), type: "text/plain; charset=Shift_JIS", expected: "日" },
  "Latin-1 that is not declared": { body: latin1("ä"), type: "text/plain", expected: BAD_UTF_8 },
  "Latin-1 that is declared as UTF-8": {
    body: latin1("ä"),
    type: "text/plain; charset=utf-8",
    expected: BAD_UTF_8,
  },
  "UTF-16 that is not declared": { body: utf16("abc"), type: "text/plain", expected: NOT_TEXT },
  "half of UTF-16": {
    body: latin1("abc"),
    type: "text/plain; charset=utf-16le",
    expected: new Failed("the response body is not valid utf-16le"),
  },
  "an unknown charset": {
    body: "abc",
    type: "text/plain; charset=ebcdic-1",
    expected: new Failed("the response body has an unknown charset (ebcdic-1)"),
  },
  "a picture": { body: "GIF", type: "image/gif", expected: NOT_TEXT },
  "a picture that is text": { body: "<svg/>", type: "image/svg+xml", expected: "<svg/>" },
  "bytes": { body: new Uint8Array([1, 0, 2]), type: "application/octet-stream", expected: NOT_TEXT },
  "bytes that are text": { body: "a,b", type: "application/octet-stream", expected: "a,b" },
};

for (const [name, { body, type = JSON_TYPE, coding, expected }] of Object.entries(BODIES)) {
  Deno.test(`workflow response: ${name}`, async () => {
    await using bed = await WorkflowBed.open();
    const fetch = createGuardedFetch({ allow: LOOPBACK, connectTimeoutMs: 60_000, clock: bed.clock });
    const headers = { "content-type": type, ...(coding === undefined ? {} : { "content-encoding": coding }) };
    bed.server.answer = () =>
      new Response(new Uint8Array(typeof body === "string" ? encode(body) : body), { headers });
    const request =
      `request: { method: POST, url: "${bed.server.url}/" }, retry: { attempts: 3, backoff: 1s }`;
    const id = await bed.begin(
      `workflow: w\nsteps:\n- {name: call, ${request}}\n- {name: result, set: {body: "{{ steps.call.body }}"}}`,
      {},
    );
    bed.runner({ fetch }).start();
    const { execution } = await bed.ended(id);
    await fetch.close();
    const output = execution.output === undefined ? undefined : JSON.parse(execution.output);
    const result = expected instanceof Failed
      ? [`step "call" failed: request failed: ${expected.error}`, undefined]
      : [undefined, { body: expected }];
    assertEquals([execution.error, output, bed.server.requests.length], [...result, 1]);
  });
}

/** What arrives of a response before it stalls, and what comes of the step. */
const STALLED: readonly (readonly [text: string, method: string, error: string | undefined])[] = [
  ["HTTP/1.1 404 No\r\n", "POST", "the server responded with 404"],
  ["HTTP/1.1 404 No\r\ncontent-length: 9\r\n\r\nno", "GET", "the server responded with 404"],
  ["HTTP/1.1 503 No\r\n", "POST", undefined],
  ["HTTP/1.1 200 OK\r\n", "POST", "request failed: no complete response within 5000 ms"],
  [
    "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok",
    "POST",
    "request failed: no complete response within 5000 ms",
  ],
  ["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok", "GET", undefined],
];

for (const [text, method, error] of STALLED) {
  const result = error === undefined ? "tries again" : "ends";
  Deno.test(`workflow response: a ${method} that stalls after ${JSON.stringify(text)} ${result}`, async () => {
    await using server = await RawServer.start((socket) => socket.write(text));
    await using bed = await WorkflowBed.open();
    const guarded = createGuardedFetch({ allow: LOOPBACK, connectTimeoutMs: 60_000, clock: bed.clock });
    let isSeen = false;
    const fetch = (input: string | URL | Request, init: GuardedRequestInit = {}) =>
      guarded(input, {
        ...init,
        onStatus(status) {
          isSeen = true;
          init.onStatus?.(status);
        },
      });
    const request = `request: { method: ${method}, url: "${server.origin}/", timeout: 5s }`;
    const id = await bed.begin(
      `workflow: w\nsteps:\n- {name: call, ${request}, retry: {attempts: 2, backoff: 1s}}\n`,
      {},
    );
    bed.runner({ fetch }).start();
    await until("the status", () => isSeen);
    // The head of a failure is all that is read of it.
    if (!text.startsWith("HTTP/1.1 404 No\r\ncontent")) bed.clock.advance(5_000);
    if (error === undefined) assertEquals(await bed.waiting(id), 1_000);
    else assertEquals((await bed.ended(id)).execution.error, `step "call" failed: ${error}`);
    assertEquals(server.accepted, 1);
    await guarded.close();
  });
}
