import { Get, Head, type Request as RestRequest, send } from "@weir/rest";
import { assert, assertEquals } from "@std/assert";
import { assertKeepsSecrets, failure, SECRET } from "../../harness/rest_fixture.ts";

const URL_SHOWN = "https://api.example.com/items";
const BASE = { method: Get, baseURL: URL_SHOWN };

/** What is wrong with requests that are never sent: code, and the text after the request. */
const REFUSED: readonly (readonly [Partial<RestRequest>, string, string])[] = [
  [
    { method: "" },
    "invalid_method",
    `"" "${URL_SHOWN}": invalid method: expected a token such as "GET"`,
  ],
  [
    { method: "GE T" },
    "invalid_method",
    `"GE T" "${URL_SHOWN}": invalid method: expected a token such as "GET"`,
  ],
  ...["CONNECT", "TRACE", "track"].map((method): [Partial<RestRequest>, string, string] => [
    { method },
    "invalid_method",
    `${method} "${URL_SHOWN}": fetch does not send this method`,
  ]),
  [
    { baseURL: `/items?${SECRET}` },
    "invalid_url",
    'GET "/items": invalid URL: expected one such as "https://host/path"',
  ],
  [
    { baseURL: `https://user:${SECRET}@host:port/items?a=b` },
    "invalid_url",
    'GET "https:…": invalid URL: expected one such as "https://host/path"',
  ],
  [
    { baseURL: `https://user:pa/${SECRET}@host/` },
    "invalid_url",
    'GET "https:…": invalid URL: expected one such as "https://host/path"',
  ],
  [
    { baseURL: `ftp://host/a?${SECRET}` },
    "invalid_url",
    'GET "ftp://host/a": invalid URL: expected http or https',
  ],
  [{ baseURL: `user:${SECRET}@host/a` }, "invalid_url", 'GET "host/a": invalid URL: expected http or https'],
  ...["https://", "https:///", "https:", " https://", "https:\\\\", "ht\ntps://"].map((
    start,
  ): [Partial<RestRequest>, string, string] => [
    { baseURL: `${start}user:${SECRET}@host/a#${SECRET}` },
    "invalid_url",
    `GET ${JSON.stringify(`${start.trim().replace("\n", "")}host/a`)}: ` +
    "the URL contains a user name or password: use an Authorization header",
  ]),
  [
    { headers: { [`x-key: ${SECRET}`]: "a" } },
    "invalid_header",
    `GET "${URL_SHOWN}": the header name that begins with "x-key" is not a token`,
  ],
  [
    { headers: { "": SECRET } },
    "invalid_header",
    `GET "${URL_SHOWN}": the header name that begins with "" is not a token`,
  ],
  ...["\r", "\n", "\0"].map((character): [Partial<RestRequest>, string, string] => [
    { headers: { "X-Key": `${SECRET}${character}x-other: 1` } },
    "invalid_header",
    `GET "${URL_SHOWN}": the value of header "X-Key" contains a line break or NUL`,
  ]),
  ...["\x01", "\x1b", "\x7f"].map((character): [Partial<RestRequest>, string, string] => [
    { headers: { "X-Key": `${SECRET}${character}` } },
    "invalid_header",
    `GET "${URL_SHOWN}": the value of header "X-Key" contains a control character`,
  ]),
  [
    { headers: { "X-Key": `${SECRET}\u0100` } },
    "invalid_header",
    `GET "${URL_SHOWN}": the value of header "X-Key" contains a character outside Latin-1: encode it`,
  ],
  [
    { headers: JSON.parse(`{"X-Key":["${SECRET}"]}`) },
    "invalid_header",
    `GET "${URL_SHOWN}": the value of header "X-Key" is not a string`,
  ],
  [{ body: SECRET }, "invalid_body", `GET "${URL_SHOWN}": a GET request has no body`],
  [{ method: Head, body: SECRET }, "invalid_body", `HEAD "${URL_SHOWN}": a HEAD request has no body`],
  [
    { method: "get", body: new Blob([SECRET]).stream() },
    "invalid_body",
    `get "${URL_SHOWN}": a GET request has no body`,
  ],
];

for (const [fault, code, text] of REFUSED) {
  Deno.test(`a request that cannot be sent: ${code} of ${JSON.stringify(fault)}`, async () => {
    const request = { ...BASE, queryParams: { token: SECRET }, ...fault };
    const error = await failure(() => send(request));
    assertEquals([error.code, error.kind, error.message], [code, undefined, `Cannot send ${text}`]);
    assert(error.request === request);
    assertKeepsSecrets(error);
  });
}
