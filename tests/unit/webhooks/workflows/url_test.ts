import { assert, assertEquals, assertThrows } from "#assert";
import { TemplateError, type TemplateScope } from "../../../../src/webhooks/model/template.ts";
import { parseUrl, renderUrl } from "../../../../src/webhooks/workflows/url.ts";

const RIGHT = "expected one such as 'https://host/path/{{ input.id }}'";

const REFUSED: readonly (readonly [string, string])[] = [
  ["{{ input.url }}", `a template cannot stand for the scheme or the host of a URL; ${RIGHT}`],
  ["https://{{ input.host }}/a", `a template cannot stand for the host or the port of a URL; ${RIGHT}`],
  ["https://a.example{{ input.x }}", `a template cannot stand for the host or the port of a URL; ${RIGHT}`],
  [
    "https://a.example:{{ input.port }}/",
    `a template cannot stand for the host or the port of a URL; ${RIGHT}`,
  ],
  [
    "https://{{ input.user }}@a.example/",
    `a template cannot stand for the host or the port of a URL; ${RIGHT}`,
  ],
  ["http{{ input.s }}://a.example/", `the URL has to begin with https:// or http://; ${RIGHT}`],
  ["ftp://a.example/", `the URL has to begin with https:// or http://; ${RIGHT}`],
  ["/orders", `the URL has to begin with https:// or http://; ${RIGHT}`],
  [" https://a.example/", `the URL has to begin with https:// or http://; ${RIGHT}`],
  ["https:///a", `the URL has no host that can be read; ${RIGHT}`],
  ["https://a.example:99999/", `the URL has no host that can be read; ${RIGHT}`],
  ["https://u:p@a.example/", "a URL cannot hold a user name or a password; write an authorization header"],
  [
    "https://a.example/a#b",
    "a URL cannot hold a fragment, which is never sent; leave it out, or percent-encode it",
  ],
  ["https://a.example\\b/{{ input.x }}", "a URL cannot hold a backslash; leave it out, or percent-encode it"],
  ["https://a.example/a b", "a URL cannot hold white space; leave it out, or percent-encode it"],
  ["https://a.example/a\n/b", "a URL cannot hold white space; leave it out, or percent-encode it"],
  ["https://a.example/a/../b", "the path of a URL cannot hold '.' or '..'; write where it leads"],
  ["https://a.example/a/%2E%2e/b", "the path of a URL cannot hold '.' or '..'; write where it leads"],
  ["https://a.example/./b", "the path of a URL cannot hold '.' or '..'; write where it leads"],
  ["https://a.example/{{ input.x", "a '{{' has no '}}' after it; write '{{ input.name }}'"],
];

for (const [text, problem] of REFUSED) {
  Deno.test(`workflow URL: ${JSON.stringify(text)} is refused at load`, () => {
    assertEquals(parseUrl(text), { problem });
  });
}

function render(text: string, value: unknown, other: unknown = ""): string {
  const { url, problem } = parseUrl(text);
  assert(url !== undefined, problem);
  const scope: TemplateScope = { read: () => JSON.parse(JSON.stringify({ id: value, other })) };
  return renderUrl(url, scope);
}

const HOST = "https://a.example:8443";

const SENT: readonly (readonly [string, unknown, string])[] = [
  ["/orders/{{ input.id }}", "42", "/orders/42"],
  ["/orders/{{ input.id }}", 42, "/orders/42"],
  ["/orders/{{ input.id }}", true, "/orders/true"],
  ["/orders/{{ input.id }}", "a/b", "/orders/a%2Fb"],
  ["/orders/{{ input.id }}", "//evil.example/x", "/orders/%2F%2Fevil.example%2Fx"],
  ["/orders/{{ input.id }}", "@evil.example", "/orders/%40evil.example"],
  ["/orders/{{ input.id }}", "https://evil.example", "/orders/https%3A%2F%2Fevil.example"],
  ["/orders/{{ input.id }}", "?admin=1", "/orders/%3Fadmin%3D1"],
  ["/orders/{{ input.id }}", "#x", "/orders/%23x"],
  ["/orders/{{ input.id }}", "a\\b", "/orders/a%5Cb"],
  ["/orders/{{ input.id }}", "a\r\nHost: evil", "/orders/a%0D%0AHost%3A%20evil"],
  ["/orders/{{ input.id }}", "a;b=c&d", "/orders/a%3Bb%3Dc%26d"],
  ["/orders/{{ input.id }}", "ключ €", "/orders/%D0%BA%D0%BB%D1%8E%D1%87%20%E2%82%AC"],
  ["/orders/{{ input.id }}", "__proto__", "/orders/__proto__"],
  ["/orders/{{ input.id }}", "constructor", "/orders/constructor"],
  ["/orders/{{ input.id }}", "...", "/orders/..."],
  ["/orders/{{ input.id }}", "a..b", "/orders/a..b"],
  ["/orders/{{ input.id }}", "100%", "/orders/100%25"],
  ["/f/v{{ input.id }}.json", ".", "/f/v..json"],
  ["?id={{ input.id }}", "a&b=c/../?#+ ", "/?id=a%26b%3Dc%2F..%2F%3F%23%2B%20"],
  ["/x?id={{ input.id }}", "..", "/x?id=.."],
  ["", "unused", "/"],
];

for (const [path, value, sent] of SENT) {
  Deno.test(`workflow URL: ${JSON.stringify(value)} in ${JSON.stringify(path)} stays a value`, () => {
    const url = render(`${HOST}${path}`, value);
    assertEquals(url, `${HOST}${sent}`);
    const { origin, pathname, search } = new URL(url);
    assertEquals([origin, `${pathname}${search}`], [HOST, sent]);
  });
}

const DOTS = "into the path of a URL: it would become '.' or '..'";

const FAILED: readonly (readonly [string, unknown, string])[] = [
  ["/o/{{ input.id }}", "..", `Cannot write "input.id" ${DOTS}`],
  ["/o/{{ input.id }}", ".", `Cannot write "input.id" ${DOTS}`],
  ["/o/{{ input.id }}/x", "..", `Cannot write "input.id" ${DOTS}`],
  ["/o/{{ input.id }}", "/../", `Cannot write "input.id" ${DOTS}`],
  ["/o/{{ input.id }}", "a/../../b", `Cannot write "input.id" ${DOTS}`],
  ["/o/{{ input.id }}", "..\\x", `Cannot write "input.id" ${DOTS}`],
  ["/o/{{ input.id }}", "%2e%2e", `Cannot write "input.id" ${DOTS}`],
  ["/o/{{ input.id }}", "%252E.", `Cannot write "input.id" ${DOTS}`],
  ["/o/{{ input.id }}", "x%2f..%2fy", `Cannot write "input.id" ${DOTS}`],
  ["/o/{{ input.id }}", "..;x", `Cannot write "input.id" ${DOTS}`],
  ["/o/.{{ input.id }}", ".", `Cannot write "input.id" ${DOTS}`],
  ["/o/%2e{{ input.id }}", ".", `Cannot write "input.id" ${DOTS}`],
  ["/o/{{ input.id }}{{ input.other }}", ".", `Cannot write "input.id" and "input.other" ${DOTS}`],
  ["/o/{{ input.id }}", "", `Cannot write "input.id" into the path of a URL: it is empty`],
  ["/o/{{ input.id }}/x", "", `Cannot write "input.id" into the path of a URL: it is empty`],
  ["/o/{{ input.id }}", "\ud800", `Cannot write "input.id" into a URL: it holds half of a character`],
  [
    "/o/{{ input.id }}",
    null,
    `Cannot write "input.id" into a text: expected a text, a number, true or false, got null`,
  ],
  [
    "/o/{{ input.id }}",
    ["a"],
    `Cannot write "input.id" into a text: expected a text, a number, true or false, got a list`,
  ],
];

for (const [path, value, message] of FAILED) {
  Deno.test(`workflow URL: ${JSON.stringify(value)} in ${JSON.stringify(path)} fails`, () => {
    const error = assertThrows(() => render(`${HOST}${path}`, value, "."));
    assert(error instanceof TemplateError);
    assertEquals(error.message, message);
  });
}
