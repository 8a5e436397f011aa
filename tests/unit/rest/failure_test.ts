import { Get, Head, Post, type Request as RestRequest, send } from "@weir/rest";
import { assert, assertEquals } from "@std/assert";
import { assertKeepsSecrets, failure, SECRET } from "../../harness/rest_fixture.ts";

const URL_SHOWN = "https://api.example.com/items";
const BASE = { method: Get, baseURL: URL_SHOWN };
/** What a caller without types may give as a body, and what it is called. */
const NO_BODIES: readonly (readonly [unknown, string])[] = [
  [{ token: SECRET }, "an Object"],
  [[SECRET], "an Array"],
  [new Map([[SECRET, 1]]), "a Map"],
  [new Date(0), "a Date"],
  [new Blob([SECRET]), "a Blob"],
  [new Error(SECRET), "an Error"],
  [5, "a Number"],
  [0, "a Number"],
  [true, "a Boolean"],
  [false, "a Boolean"],
  [() => SECRET, "a Function"],
];
const form = () => {
  const data = new FormData();
  data.set("token", SECRET);
  return data;
};

/** As the class of some library: it has the tag, and is no form for the platform. */
class ForeignForm {
  readonly [Symbol.toStringTag] = "FormData";
}

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
  ...["4", "6", "5.0", "-5", "", "five"].map((length): [Partial<RestRequest>, string, string] => [
    { method: Post, headers: { "Content-Length": length }, body: "bytes" },
    "invalid_header",
    `POST "${URL_SHOWN}": the value of header "Content-Length" is not the length of the body`,
  ]),
  [
    { method: Post, headers: { "content-length": "1" }, body: "ü" },
    "invalid_header",
    `POST "${URL_SHOWN}": the value of header "content-length" is not the length of the body`,
  ],
  [
    { headers: { "content-length": "1" } },
    "invalid_header",
    `GET "${URL_SHOWN}": the value of header "content-length" is not the length of the body`,
  ],
  [
    { method: Post, headers: { "Content-Type": "multipart/form-data" }, body: form() },
    "invalid_header",
    `POST "${URL_SHOWN}": the header "content-type" of a FormData body contains its boundary: remove the header`,
  ],
  [
    { method: Post, headers: { "content-length": "3" }, body: form() },
    "invalid_header",
    `POST "${URL_SHOWN}": the value of header "content-length" is not the length of the body`,
  ],
  [
    { method: Post, body: new ForeignForm() as unknown as FormData },
    "invalid_body",
    `POST "${URL_SHOWN}": the body is a FormData of another library: use the FormData of the platform`,
  ],
  [
    { headers: new Headers({ "x-key": SECRET }) as unknown as Record<string, string> },
    "invalid_header",
    `GET "${URL_SHOWN}": the headers are a Headers: expected an object of strings; use Object.fromEntries`,
  ],
  [
    { queryParams: new URLSearchParams({ token: SECRET }) as unknown as Record<string, string> },
    "invalid_url",
    `GET "${URL_SHOWN}": the query parameters are an URLSearchParams: ` +
    "expected an object of strings; use Object.fromEntries",
  ],
  ...([[{ is: SECRET }, "an Object"], [["a", [SECRET]], "an Array"], [new Date(0), "a Date"]] as const).map(
    ([value, kind]): [Partial<RestRequest>, string, string] => [
      { queryParams: { filter: value as unknown as string } },
      "invalid_url",
      `GET "${URL_SHOWN}": the query parameter "filter" is ${kind}: expected a string or a list of strings`,
    ],
  ),
  [{ body: form() }, "invalid_body", `GET "${URL_SHOWN}": a GET request has no body`],
  ...NO_BODIES.map(([body, kind]): [Partial<RestRequest>, string, string] => [
    { method: Post, body: body as RestRequest["body"] },
    "invalid_body",
    `POST "${URL_SHOWN}": the body is ${kind}: ` +
    "expected a string, bytes, a stream, FormData or URLSearchParams; for JSON, use JSON.stringify",
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
  const kind = /the body is (an? \w+)/.exec(text)?.[1] ?? "";
  Deno.test(
    `a request that cannot be sent: ${code} of ${JSON.stringify(fault)} ${kind}`.trimEnd(),
    async () => {
      const request = { ...BASE, queryParams: { token: SECRET }, ...fault };
      const error = await failure(() => send(request));
      assertEquals([error.code, error.kind, error.message], [code, undefined, `Cannot send ${text}`]);
      assert(error.request === request);
      assertKeepsSecrets(error);
    },
  );
}
