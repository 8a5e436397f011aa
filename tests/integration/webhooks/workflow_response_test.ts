import { assertEquals } from "#assert";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { createGuardedFetch, type GuardedRequestInit } from "../../../src/net/outbound/fetch.ts";
import { RawServer } from "../../harness/rest_fixture.ts";
import { LOOPBACK } from "../../harness/sender_fixture.ts";
import { until } from "../../harness/until.ts";
import { WorkflowBed } from "../../harness/workflow_fixture.ts";

/** A body, its coding and type, and the body that the step has, or its error. */
type BodyCase = readonly [
  body: string | Uint8Array,
  expected: unknown,
  headers?: { type?: string; coding?: string },
];

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
  "gzip": [GZIP, OBJECT, { coding: "gzip" }],
  "GZip by its old name": [GZIP, OBJECT, { coding: "X-GZip" }],
  "gzip in two parts": [new Uint8Array([...gzipSync("[1,"), ...gzipSync("2]")]), [1, 2], { coding: "gzip" }],
  "gzip of gzip": [gzipSync(GZIP), OBJECT, { coding: "gzip, gzip" }],
  "gzip, and then br": [brotliCompressSync(GZIP), OBJECT, { coding: "gzip, br" }],
  "deflate": [deflateSync(TEXT), OBJECT, { coding: "deflate" }],
  "deflate without its header": [deflateRawSync(TEXT), OBJECT, { coding: "deflate" }],
  "br": [brotliCompressSync(TEXT), OBJECT, { coding: "br" }],
  "no coding, by name": [TEXT, OBJECT, { coding: "identity" }],
  "gzip of nothing": ["", "", { coding: "gzip" }],
  "gzip of a mebibyte": [gzipSync("x".repeat(1_048_576)), "x".repeat(1_048_576), {
    type: "text/plain",
    coding: "gzip",
  }],
  "gzip of more": [gzipSync("x".repeat(1_048_577)), TOO_LARGE, { coding: "gzip" }],
  "a bomb": [gzipSync(new Uint8Array(100_000_000)), TOO_LARGE, { coding: "gzip" }],
  "a bomb in br": [brotliCompressSync(new Uint8Array(10_000_000)), TOO_LARGE, { coding: "br" }],
  "a bomb in a bomb": [gzipSync(gzipSync(new Uint8Array(100_000_000))), TOO_LARGE, { coding: "gzip, gzip" }],
  "gzip that is cut": [GZIP.subarray(0, GZIP.length - 9), BAD_GZIP, { coding: "gzip" }],
  "gzip that is none": [TEXT, BAD_GZIP, { coding: "gzip" }],
  "br that is cut": [BR.subarray(0, BR.length - 3), new Failed("the response body is not valid br"), {
    coding: "br",
  }],
  "an unknown coding": [TEXT, UNKNOWN, { coding: "zstd" }],
  "too many codings": [TEXT, UNKNOWN, { coding: "gzip, gzip, gzip, gzip" }],
  "a byte order mark": [marked(0xef, 0xbb, 0xbf)(encode(TEXT)), OBJECT],
  "JSON of another type": [marked(0xef, 0xbb, 0xbf)(encode(TEXT)), OBJECT, {
    type: "image/vnd.a.b+json; v=1",
  }],
  "JSON as text/json": [TEXT, OBJECT, { type: "text/json" }],
  "JSON that is none": ["{", "{"],
  "Latin-1": [latin1("ä"), "ä", { type: "text/plain;charset=ISO-8859-1" }],
  "Latin-1 in quotes": [latin1("ä"), "ä", { type: 'text/plain; a=b; charset="latin1"' }],
  "JSON in Latin-1": [latin1(TEXT), OBJECT, { type: `${JSON_TYPE}; charset=latin1` }],
  "gzip of Latin-1": [gzipSync(latin1("ä")), "ä", { type: "text/plain; charset=latin1", coding: "gzip" }],
  "UTF-16": [utf16("aä"), "aä", { type: "text/plain; charset=utf-16le" }],
  "UTF-16, big-endian": [swapped(utf16("aä")), "aä", { type: "text/plain; charset=UTF-16BE" }],
  "UTF-16 by its mark": [marked(0xff, 0xfe)(utf16(TEXT)), OBJECT],
  "UTF-16, big-endian, by its mark": [marked(0xfe, 0xff)(swapped(utf16(TEXT))), OBJECT],
  "Shift JIS": [new Uint8Array([0x93, 0xfa]), "日", { type: "text/plain; charset=Shift_JIS" }],
  "Latin-1 that is not declared": [latin1("ä"), BAD_UTF_8, { type: "text/plain" }],
  "Latin-1 that is declared as UTF-8": [latin1("ä"), BAD_UTF_8, { type: "text/plain; charset=utf-8" }],
  "UTF-16 that is not declared": [utf16("abc"), NOT_TEXT, { type: "text/plain" }],
  "half of UTF-16": [latin1("abc"), new Failed("the response body is not valid utf-16le"), {
    type: "text/plain; charset=utf-16le",
  }],
  "an unknown charset": ["abc", new Failed("the response body has an unknown charset (ebcdic-1)"), {
    type: "text/plain; charset=ebcdic-1",
  }],
  "a picture": ["GIF", NOT_TEXT, { type: "image/gif" }],
  "a picture that is text": ["<svg/>", "<svg/>", { type: "image/svg+xml" }],
  "bytes": [new Uint8Array([1, 0, 2]), NOT_TEXT, { type: "application/octet-stream" }],
  "bytes that are text": ["a,b", "a,b", { type: "application/octet-stream" }],
};

for (const [name, [body, expected, { type = JSON_TYPE, coding } = {}]] of Object.entries(BODIES)) {
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

/** The part of a response that arrives before it stalls, and the result of the step. */
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
