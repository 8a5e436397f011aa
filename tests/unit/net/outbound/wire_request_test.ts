import { assert, assertEquals, assertThrows } from "#assert";
import { SendError } from "../../../../src/net/outbound/send_error.ts";
import {
  wireBytes,
  type WireOptions,
  type WireRequest,
  wireTargetOf,
} from "../../../../src/net/outbound/wire_request.ts";

const DIRECT: WireOptions = { isReusing: true, isProxied: false };

function wire(url: string, request: Partial<WireRequest> = {}, options: Partial<WireOptions> = {}): string[] {
  const whole = { target: wireTargetOf(url), method: "POST", headers: [], ...request };
  return wireBytes(whole, { ...DIRECT, ...options }).map((bytes) =>
    [...bytes].map((byte) => String.fromCharCode(byte)).join("")
  );
}

const BODY = new TextEncoder().encode("ü");

/** Requests, and what is put on the wire. */
const REQUESTS: Readonly<Record<string, readonly [actual: () => string[], expected: string[]]>> = {
  "a delivery": [
    () => wire("http://a.test:81/b/ü?c=d e#f", { headers: [["x-a", "1"], ["X-B", ""]], body: BODY }),
    [
      "POST /b/%C3%BC?c=d%20e HTTP/1.1\r\nhost: a.test:81\r\nx-a: 1\r\nX-B: \r\ncontent-length: 2\r\n" +
      "connection: keep-alive\r\n\r\n\xc3\xbc",
    ],
  ],
  "no body": [
    () => wire("https://[::1]/", {}, { isReusing: false }),
    ["POST / HTTP/1.1\r\nhost: [::1]\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"],
  ],
  "a method that has none": [
    () => wire("http://a.test", { method: "get" }),
    ["GET / HTTP/1.1\r\nhost: a.test\r\nconnection: keep-alive\r\n\r\n"],
  ],
  "a header beyond ASCII": [
    () => wire("http://a.test", { method: "GET", headers: [["x-a", "\xfc\t\xff"]], body: BODY }),
    [
      "GET / HTTP/1.1\r\nhost: a.test\r\nx-a: \xfc\t\xff\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\n\xc3\xbc",
    ],
  ],
  "a header twice": [
    () => wire("http://a.test", { method: "GET", headers: [["X-A", "1"], ["x-b", "2"], ["x-a", "3"]] }),
    ["GET / HTTP/1.1\r\nhost: a.test\r\nx-a: 3\r\nx-b: 2\r\nconnection: keep-alive\r\n\r\n"],
  ],
  "through a proxy": [
    () => wire("http://a.test:81/b", { method: "GET" }, { isProxied: true, credentials: "Basic YTpi" }),
    [
      "GET http://a.test:81/b HTTP/1.1\r\nhost: a.test:81\r\nproxy-authorization: Basic YTpi\r\n" +
      "connection: keep-alive\r\n\r\n",
    ],
  ],
  "through a tunnel": [
    () => wire("https://a.test/b", { method: "GET" }, { isProxied: true, credentials: "Basic YTpi" }),
    ["GET /b HTTP/1.1\r\nhost: a.test\r\nconnection: keep-alive\r\n\r\n"],
  ],
};

for (const [name, [actual, expected]] of Object.entries(REQUESTS)) {
  Deno.test(`a request is put on the wire: ${name}`, () => assertEquals(actual(), expected));
}

Deno.test("a large body goes behind its head as it is", () => {
  const body = new Uint8Array(65_537).fill(120);
  const target = wireTargetOf("http://a.test");
  const [head, same, ...more] = wireBytes({ target, method: "POST", headers: [], body }, DIRECT);
  assert(head !== undefined && same === body);
  assertEquals(more, []);
  assertEquals(
    new TextDecoder().decode(head).endsWith("content-length: 65537\r\nconnection: keep-alive\r\n\r\n"),
    true,
  );
});

Deno.test("what could be read as two requests is never sent", () => {
  const headers: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
    "invalid_header": [
      ...[["x-a", "1\r\nx-b: 2"], ["x-a", "1\nx"], ["x-a", "1\r"], ["x-a", "\0"], ["x-a", "\x7f"]] as const,
      ...[["x-a", "Ā"], ["x a", ""], ["", ""], ["x-a:", ""], ["x\r\nb", ""], ["ü", ""]] as const,
    ],
    "ours": [["Host", "b"], ["CONTENT-LENGTH", "1"], ["transfer-encoding", "chunked"], ["te", "a"]],
  };
  for (const [code, pairs] of Object.entries(headers)) {
    for (const pair of pairs) {
      const error = assertThrows(() => wire("http://a.test", { headers: [pair] }));
      assert(error instanceof SendError && error.kind === "unsendable");
      assertEquals(error.code, code === "ours" ? undefined : code, JSON.stringify(pair));
    }
  }
  for (const method of ["", "GET /b HTTP/1.1\r\n", "A B"]) {
    const error = assertThrows(() => wire("http://a.test", { method }));
    assert(error instanceof SendError);
    assertEquals([error.kind, error.code], ["unsendable", "invalid_method"]);
  }
  assertEquals(assertThrows(() => wire("ftp://a.test")).message, "the URL is neither http nor https");
});
