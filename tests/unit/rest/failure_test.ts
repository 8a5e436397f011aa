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
    `"" "${URL_SHOWN}": the method is not a token; one such as "GET" would be right`,
  ],
  [
    { method: "GE T" },
    "invalid_method",
    `"GE T" "${URL_SHOWN}": the method is not a token; one such as "GET" would be right`,
  ],
  ...["CONNECT", "TRACE", "track"].map((method): [Partial<RestRequest>, string, string] => [
    { method },
    "invalid_method",
    `${method} "${URL_SHOWN}": fetch does not send this method`,
  ]),
  [
    { baseURL: `/items?${SECRET}` },
    "invalid_url",
    'GET "/items": the URL does not parse; one such as "https://host/path" would be right',
  ],
  [
    { baseURL: `https://user:${SECRET}@host:port/items?a=b` },
    "invalid_url",
    'GET "https:…": the URL does not parse; one such as "https://host/path" would be right',
  ],
  [
    { baseURL: `https://user:pa/${SECRET}@host/` },
    "invalid_url",
    'GET "https:…": the URL does not parse; one such as "https://host/path" would be right',
  ],
  [
    { baseURL: `ftp://host/a?${SECRET}` },
    "invalid_url",
    'GET "ftp://host/a": the URL is neither http nor https',
  ],
  [{ baseURL: `user:${SECRET}@host/a` }, "invalid_url", 'GET "host/a": the URL is neither http nor https'],
  ...["https://", "https:///", "https:", " https://", "https:\\\\", "ht\ntps://"].map((
    start,
  ): [Partial<RestRequest>, string, string] => [
    { baseURL: `${start}user:${SECRET}@host/a#${SECRET}` },
    "invalid_url",
    `GET ${JSON.stringify(`${start.trim().replace("\n", "")}host/a`)}: ` +
    "the URL holds a user name or a password; an Authorization header would be right",
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
    `GET "${URL_SHOWN}": the value of header "X-Key" holds a line break or a NUL`,
  ]),
  ...["\x01", "\x1b", "\x7f"].map((character): [Partial<RestRequest>, string, string] => [
    { headers: { "X-Key": `${SECRET}${character}` } },
    "invalid_header",
    `GET "${URL_SHOWN}": the value of header "X-Key" holds a control character`,
  ]),
  [
    { headers: { "X-Key": `${SECRET}\u0100` } },
    "invalid_header",
    `GET "${URL_SHOWN}": the value of header "X-Key" holds a character beyond Latin-1; ` +
    "an encoded value would be right",
  ],
  [
    { headers: JSON.parse(`{"X-Key":["${SECRET}"]}`) },
    "invalid_header",
    `GET "${URL_SHOWN}": the value of header "X-Key" is not a text`,
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
