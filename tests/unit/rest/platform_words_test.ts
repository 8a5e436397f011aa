import { Get, RestError } from "@weir/rest";
import { assert, assertEquals } from "#assert";
import { isDecodingFailure } from "../../../src/rest/content_coding.ts";
import { networkFailure } from "../../../src/rest/network_failure.ts";
import { shownCause, shownUrl, withoutSecrets } from "../../../src/rest/shown_text.ts";
import { assertKeepsSecrets, SECRET } from "../../harness/rest_fixture.ts";

/** As Node's `fetch` throws: the code is that of the cause. */
function nodeError(code: string, message = `${code} happened`): Error {
  return new TypeError("fetch failed", { cause: Object.assign(new Error(message), { code }) });
}

/** As Deno's `fetch` throws: the error is a text. */
function denoError(message: string): Error {
  return new TypeError("fetch failed", { cause: new Error(message) });
}

const OF = "error sending request for url (http://host/a?b=c)";

Deno.test("networkFailure: the kinds that the errors of platforms stand for", () => {
  const codes: Readonly<Record<string, readonly string[]>> = {
    dns: ["ENOTFOUND", "EAI_AGAIN", "EAI_FAIL"],
    connect: ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT"],
    tls: [
      ...["CERT_HAS_EXPIRED", "DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN", "EPROTO"],
      ...["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "HOSTNAME_MISMATCH"],
      ...["ERR_TLS_CERT_ALTNAME_INVALID", "ERR_SSL_WRONG_VERSION_NUMBER", "INVALID_CA"],
    ],
    undefined: ["ECONNRESET", "UND_ERR_SOCKET", "EPIPE", "HPE_INVALID_CONSTANT"],
  };
  for (const [kind, names] of Object.entries(codes)) {
    for (const code of names) {
      assertEquals([code, String(networkFailure(nodeError(code)).kind)], [code, kind]);
    }
  }
});

Deno.test("isDecodingFailure: the errors of platforms for bodies that cannot be decoded, and for those that are cut", () => {
  const codes = ["Z_DATA_ERROR", "Z_BUF_ERROR", "ERR__ERROR_FORMAT_BLOCK_LENGTH_1"];
  const messages = [
    ...[
      "unexpected end of file",
      "Invalid gzip header",
      "deflate decompression error: invalid distance code",
    ],
    ...["CRC computed does not match", "amount of bytes read does not match", "reached unexpected EOF"],
    ...["brotli error", "corrupt deflate stream", "invalid gzip header", "failed to write whole buffer"],
    ...[
      "corrupt gzip stream does not have a matching checksum",
      "brotli decompression failed",
      "Invalid Data",
    ],
  ];
  const decoding = [
    ...codes.map((code) => nodeError(code)),
    ...messages.map((message) => new TypeError(message)),
  ];
  const cut: Error[] = [
    ...["UND_ERR_SOCKET", "ECONNRESET", "HPE_INVALID_CHUNK_SIZE"].map((code) => nodeError(code)),
    new TypeError("error reading a body from connection"),
    new TypeError("scripted interruption of the body"),
  ];
  const told = (errors: readonly Error[]) => errors.map((error) => [error.message, isDecodingFailure(error)]);
  assertEquals(told(decoding), decoding.map(({ message }) => [message, true]));
  assertEquals(told(cut), cut.map(({ message }) => [message, false]));
});

Deno.test("networkFailure: what it tells", () => {
  const both = new AggregateError([nodeError("ECONNREFUSED").cause, new Error("other")], "");
  const several = Object.assign(both, { code: "ECONNREFUSED" });
  const table: [unknown, string | undefined, string][] = [
    [
      denoError(`${OF}: client error (Connect): dns error: failed to lookup address information: no`),
      "dns",
      "cannot resolve the host name (dns error: failed to lookup address information: no)",
    ],
    [
      denoError(`${OF}: client error (Connect): tcp connect error: Connection refused (os error 111)`),
      "connect",
      "cannot connect to the host (tcp connect error: Connection refused (os error 111))",
    ],
    [
      denoError(`${OF}: client error (Connect): invalid peer certificate: UnknownIssuer`),
      "tls",
      "the TLS handshake failed (invalid peer certificate: UnknownIssuer)",
    ],
    [
      denoError(`${OF}: client error (Connect): received corrupt message of type InvalidContentType`),
      "tls",
      "the TLS handshake failed (received corrupt message of type InvalidContentType)",
    ],
    [
      denoError(
        "error sending request from 1.2.3.4:5 for http://h/ (1.2.3.4:80): client error (SendRequest): cut",
      ),
      undefined,
      "the connection failed (cut)",
    ],
    [
      nodeError("ENOTFOUND", "getaddrinfo ENOTFOUND nowhere.invalid"),
      "dns",
      "cannot resolve the host name (getaddrinfo ENOTFOUND nowhere.invalid)",
    ],
    [
      new TypeError("fetch failed", { cause: several }),
      "connect",
      "cannot connect to the host (ECONNREFUSED happened)",
    ],
    [new TypeError("Failed to fetch"), undefined, "the connection failed (Failed to fetch)"],
    [new Error("two\n lines"), undefined, "the connection failed (two lines)"],
    [new Error(`at http://h/p?q=${SECRET}`), undefined, "the connection failed (at http://h/p)"],
    [new Error(""), undefined, "the connection failed"],
    ["no error", undefined, "the connection failed"],
  ];
  for (const [error, kind, state] of table) assertEquals(networkFailure(error), { kind, state });
});

Deno.test("shownUrl: no user, password, query or fragment", () => {
  const table: [string, string][] = [
    ["https://host:8080/a/b", "https://host:8080/a/b"],
    ["https://host/a?b=c#d", "https://host/a"],
    ["https://host/a#b?c", "https://host/a"],
    ["https://host/@me/a@b", "https://host/@me/a@b"],
    ["https://user@host/", "https://host/"],
    ["https://user:pass@host/", "https://host/"],
    ["https://user:p@ss@host/", "https://host/"],
    ["https:user:pass@host/", "https:host/"],
    ["https:///user:pass@host/", "https:///host/"],
    ["https:/\\user:pass@host/", "https:/\\host/"],
    ["HTTPS://user:pass@host/", "HTTPS://host/"],
    ["  https://user:pass@host/", "https://host/"],
    ["h\tttps:/\n/user:pass@host/", "https://host/"],
    ["ftp://user:pass@host/", "ftp://host/"],
    ["user:pass@host/a", "host/a"],
    ["//user:pass@host/a", "…"],
    ["https://user:pa/ss@host/", "https:…"],
    ["https://user:pa#ss@host/", "https:…"],
    ["https://user:pa?ss@host/", "https:…"],
    ["https://user:pass@host:port/", "https:…"],
    ["nonsense?b", "nonsense"],
    ["", ""],
    [`https://host/${"a".repeat(300)}`, `https://host/${"a".repeat(187)}…`],
  ];
  assertEquals(table.map(([url]) => [url, shownUrl(url)]), table);
});

Deno.test("withoutSecrets: every URL of a text is shown without its secrets", () => {
  const table: [string, string][] = [
    ["no URL at all (really)", "no URL at all (really)"],
    ["for url (http://h/a?b=c): client error", "for url (http://h/a): client error"],
    ["for url (http://h/a?b=(c)d): client error", "for url (http://h/a): client error"],
    ["'http://h/a?b='c'', then", "'http://h/a'', then"],
    ['"http://h/a?b=c"', '"http://h/a"'],
    ["ws://u:p@h/a, http://h/b#c.", "ws://h/a, http://h/b."],
    ["at f (file:///work/a.ts:1:2)", "at f (file:///work/a.ts:1:2)"],
    ["at f (https://h/a.ts?v=1:1:2)", "at f (https://h/a.ts)"],
  ];
  assertEquals(table.map(([text]) => [text, withoutSecrets(text)]), table);
});

Deno.test("shownCause: a cause is copied only where it says too much", () => {
  const plain = nodeError("ECONNRESET");
  assert(shownCause(plain) === plain);
  for (const reason of ["left", undefined, null, 7]) assertEquals(shownCause(reason), reason);
  const telling = new TypeError("outer", {
    cause: Object.assign(new RangeError(`at http://h/a?${SECRET}`), { code: "E_INNER" }),
  });
  const shown = shownCause(telling);
  assert(shown instanceof Error && shown.cause instanceof Error);
  const { name, message, cause } = shown;
  assertEquals([name, message], ["TypeError", "outer"]);
  const inner = [cause.name, cause.message, "code" in cause && cause.code];
  assertEquals(inner, ["RangeError", "at http://h/a", "E_INNER"]);
  const request = { method: Get, url: `http://h/?${SECRET}` };
  assertKeepsSecrets(new RestError("network", "gone", request, { cause: telling }));
  const circle = new Error("round");
  circle.cause = circle;
  assert(shownCause(circle) instanceof Error);
});
