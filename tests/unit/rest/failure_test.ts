import { Get, Head, Post, type Request as RestRequest, send } from "@weir/rest";
import { assert, assertEquals } from "#assert";
import { assertKeepsSecrets, failure, SECRET } from "../../harness/rest_fixture.ts";

const URL_SHOWN = "https://api.example.com/items";
const BASE = { method: Get, baseURL: URL_SHOWN };
/** Bodies that a caller without types may give, and their names. */
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

type Fault = Partial<RestRequest>;

/** Faults of requests that are never sent, their code and problem; how the request is named, unless as it is given. */
const REFUSED: readonly (readonly [fault: Fault, code: string, problem: string, named?: string])[] = [
  ...["", "GE T"].map((method) =>
    [
      { method },
      "invalid_method",
      'invalid method: expected a token such as "GET"',
      `"${method}" "${URL_SHOWN}"`,
    ] as const
  ),
  ...["CONNECT", "TRACE", "track"].map((method) =>
    [{ method }, "invalid_method", "fetch does not send this method"] as const
  ),
  ...[
    [`/items?${SECRET}`, "/items"],
    [`https://user:${SECRET}@host:port/items?a=b`, "https:…"],
    [`https://user:pa/${SECRET}@host/`, "https:…"],
  ].map(([baseURL = "", shown]) =>
    [
      { baseURL },
      "invalid_url",
      'invalid URL: expected one such as "https://host/path"',
      `GET "${shown}"`,
    ] as const
  ),
  ...[[`ftp://host/a?${SECRET}`, "ftp://host/a"], [`user:${SECRET}@host/a`, "host/a"]].map((
    [baseURL = "", shown],
  ) => [{ baseURL }, "invalid_url", "invalid URL: expected http or https", `GET "${shown}"`] as const),
  ...["https://", "https:///", "https:", " https://", "https:\\\\", "ht\ntps://"].map((start) =>
    [
      { baseURL: `${start}user:${SECRET}@host/a#${SECRET}` },
      "invalid_url",
      "the URL contains a user name or password: use an Authorization header",
      `GET ${JSON.stringify(`${start.trim().replace("\n", "")}host/a`)}`,
    ] as const
  ),
  [
    { queryParams: new URLSearchParams({ token: SECRET }) as unknown as Record<string, string> },
    "invalid_url",
    "the query parameters are an URLSearchParams: expected an object of strings; use Object.fromEntries",
  ],
  ...([[{ is: SECRET }, "an Object"], [["a", [SECRET]], "an Array"], [new Date(0), "a Date"]] as const).map(
    ([value, kind]) =>
      [
        { queryParams: { filter: value as unknown as string } },
        "invalid_url",
        `the query parameter "filter" is ${kind}: expected a string or a list of strings`,
      ] as const,
  ),
  ...[["", SECRET], [`x-key: ${SECRET}`, "a"]].map(([name = "", value = ""]) =>
    [
      { headers: { [name]: value } },
      "invalid_header",
      `the header name that begins with "${name.split(":")[0]}" is not a token`,
    ] as const
  ),
  ...([["\r\n\0", "a line break or NUL"], ["\x01\x1b\x7f", "a control character"]] as const).flatMap((
    [all, what],
  ) =>
    Array.from(all, (character) =>
      [
        { headers: { "X-Key": `${SECRET}${character}x-other: 1` } },
        "invalid_header",
        `the value of header "X-Key" contains ${what}`,
      ] as const)
  ),
  [
    { headers: { "X-Key": `${SECRET}\u0100` } },
    "invalid_header",
    'the value of header "X-Key" contains a character outside Latin-1: encode it',
  ],
  [
    { headers: JSON.parse(`{"X-Key":["${SECRET}"]}`) },
    "invalid_header",
    'the value of header "X-Key" is not a string',
  ],
  [
    { headers: new Headers({ "x-key": SECRET }) as unknown as Record<string, string> },
    "invalid_header",
    "the headers are a Headers: expected an object of strings; use Object.fromEntries",
  ],
  ...[
    ...["4", "6", "5.0", "-5", "", "five"].map((length) => [length, "bytes"] as const),
    ...[["1", "ü"], ["3", form()], ["1", undefined]] as const,
  ].map(([length, body]) =>
    [
      { method: body === undefined ? Get : Post, headers: { "Content-Length": length }, body },
      "invalid_header",
      'the value of header "Content-Length" is not the length of the body',
    ] as const
  ),
  [
    { method: Post, headers: { "Content-Type": "multipart/form-data" }, body: form() },
    "invalid_header",
    'the header "content-type" of a FormData body contains its boundary: remove the header',
  ],
  [
    { method: Post, body: new ForeignForm() as unknown as FormData },
    "invalid_body",
    "the body is a FormData of another library: use the FormData of the platform",
  ],
  ...NO_BODIES.map(([body, kind]) =>
    [
      { method: Post, body: body as RestRequest["body"] },
      "invalid_body",
      `the body is ${kind}: ` +
      "expected a string, bytes, a stream, FormData or URLSearchParams; for JSON, use JSON.stringify",
    ] as const
  ),
  ...[{ body: form() }, { body: SECRET }, { method: "get", body: new Blob([SECRET]).stream() }].map((fault) =>
    [fault, "invalid_body", "a GET request has no body"] as const
  ),
  [{ method: Head, body: SECRET }, "invalid_body", "a HEAD request has no body"],
];

for (const [fault, code, problem, named = `${fault.method ?? Get} "${URL_SHOWN}"`] of REFUSED) {
  const kind = /the body is (an? \w+)/.exec(problem)?.[1] ?? "";
  const title = `a request that cannot be sent: ${code} of ${JSON.stringify(fault)} ${kind}`;
  Deno.test(title.trimEnd(), async () => {
    const request = { ...BASE, queryParams: { token: SECRET }, ...fault };
    const error = await failure(() => send(request));
    assertEquals([error.code, error.kind, error.message], [
      code,
      undefined,
      `Cannot send ${named}: ${problem}`,
    ]);
    assert(error.request === request);
    assertKeepsSecrets(error);
  });
}
