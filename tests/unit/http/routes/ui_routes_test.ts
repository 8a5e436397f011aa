import { assert, assertEquals } from "#assert";
import { uiRoutes } from "../../../../src/http/routes/ui_routes.ts";
import { readPageFile } from "../../../../src/ui/page_files.ts";
import { debugHandler, HandledHttp } from "../../../harness/http_fixture.ts";

const FILES = new Map(
  Object.entries({ "index.html": "<p>start</p>", "page.css": "p {}", "page.ts": "run();" }),
);
const TOKEN = "the-debug-token-of-this-test";

function serveUi(read = (name: string) => Promise.resolve(FILES.get(name))): HandledHttp {
  return new HandledHttp(debugHandler({ token: TOKEN, routes: uiRoutes(read) }));
}

const SAFE = {
  "cache-control": "no-cache",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
    "require-trusted-types-for 'script'; trusted-types 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const SERVED: readonly (readonly [path: string, type: string, body: string])[] = [
  ["/ui", "text/html; charset=utf-8", "<p>start</p>"],
  ["/ui/", "text/html; charset=utf-8", "<p>start</p>"],
  ["/ui?a=b", "text/html; charset=utf-8", "<p>start</p>"],
  ["/ui/page.css", "text/css; charset=utf-8", "p {}"],
  ["/ui/page.ts", "text/javascript; charset=utf-8", "run();"],
];

for (const [path, type, text] of SERVED) {
  Deno.test(`${path} is there without a token, with the headers that keep it safe`, async () => {
    const served = serveUi();
    for (const method of ["GET", "HEAD"]) {
      const response = await served.fetch(path, { method });
      const body = await response.text();
      assertEquals([response.status, body], [200, method === "GET" ? text : ""]);
      assertEquals(response.headers.get("content-type"), type);
      assertEquals(namedHeaders(response, Object.keys(SAFE)), SAFE);
    }
  });
}

const ABSENT = ["index.html", "none.ts", "page.css/", "../ui/page_files.ts", "a%2f..%2fpage.ts"];

for (const path of ABSENT.map((name) => `/ui/${name}`)) {
  Deno.test(`${path} is 404`, async () => {
    const served = serveUi();
    const response = await served.fetch(path);
    const { status, reason } = await response.json();
    assertEquals([response.status, status, reason], [404, 404, "the page has no such file"]);
  });
}

Deno.test("a file that the browser has is not sent again", async () => {
  const served = serveUi();
  const first = await served.fetch("/ui");
  await first.body?.cancel();
  const etag = first.headers.get("etag") ?? "";
  assert(/^"[\w-]{43}"$/.test(etag), etag);
  for (const [known, status] of [[etag, 304], [`W/${etag}`, 304], [`"x", ${etag}`, 304], ['"x"', 200]]) {
    const response = await served.fetch("/ui", { headers: { "if-none-match": `${known}` } });
    await response.body?.cancel();
    assertEquals([response.status, response.headers.get("etag")], [status, etag]);
    assertEquals(namedHeaders(response, Object.keys(SAFE)), SAFE);
  }
});

Deno.test("the debug port lists the page", async () => {
  const served = serveUi();
  const lines = (await (await served.fetch("/", { headers: { authorization: `Bearer ${TOKEN}` } })).text())
    .split("\n").filter((line) => line.startsWith("/ui"));
  assertEquals(lines, ["/ui/*: files of the web page", "/ui: this service as a web page"]);
});

Deno.test("the page asks for nothing from elsewhere, and each of its files is served, without types", async () => {
  const served = serveUi(readPageFile);
  const start = await (await served.fetch("/ui")).text();
  const asked = [...start.matchAll(/\b(?:src|href)="([^"#]+)"/g)].map(([, url = ""]) => url);
  const foreign = asked.filter((url) => !/^\/ui\/[\w.]+$/.test(url) && !url.startsWith("data:"));
  assertEquals(foreign, []);
  const folder = [...Deno.readDirSync(new URL("../../../../src/ui/page/", import.meta.url))].map(({ name }) =>
    name
  );
  for (const name of folder.filter((name) => !["index.html", "deno.json"].includes(name))) {
    const response = await served.fetch(`/ui/${name}`);
    const text = await response.text();
    assertEquals([name, response.status, /^(?:import type|export interface) /m.test(text)], [
      name,
      200,
      false,
    ]);
  }
});

function namedHeaders({ headers }: Response, names: readonly string[]): Record<string, string | null> {
  return Object.fromEntries(names.map((name) => [name, headers.get(name)]));
}
