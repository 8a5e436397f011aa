import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { listenHttp } from "../../../src/http/listen.ts";
import { createRouter, type Route } from "../../../src/http/router.ts";
import { type Listen, ServedHttp, wholeJson } from "../../harness/http_fixture.ts";

const ROUTES: readonly Route[] = [
  { path: "/a", methods: ["GET", "HEAD"], handle: () => new Response("exact") },
  { path: "/a/*", methods: ["GET"], handle: ({ url }) => new Response(`short ${url.pathname}`) },
  { path: "/a/b/*", methods: ["GET"], handle: ({ url }) => new Response(`long ${url.search}`) },
  {
    path: "/a/b/exact",
    methods: ["POST"],
    handle: async ({ request }) => new Response(await request.text()),
  },
  {
    path: "/throws",
    methods: ["GET"],
    handle: () => {
      throw new Error("secret of the program");
    },
  },
  { path: "/rejects", methods: ["GET"], handle: () => Promise.reject(new Error("later")) },
];

function serveRoutes(listen?: Listen): ServedHttp {
  return new ServedHttp(
    ({ log, clock }) => createRouter(ROUTES, { logger: log, clock, newRequestId: () => "made" }),
    listen,
  );
}

function problem(status: number, title: string, reason: string, more: Record<string, unknown> = {}) {
  return { type: "about:blank", title, status, detail: reason, reason, requestId: "made", ...more };
}

interface RoutedCase {
  readonly name: string;
  readonly method?: string;
  readonly path: string;
  readonly status: number;
  readonly answer: unknown;
  readonly contentType?: string;
}

const CASES: readonly RoutedCase[] = [
  { name: "an exact path", path: "/a", status: 200, answer: "exact" },
  { name: "a path with a query", path: "/a?x=1", status: 200, answer: "exact" },
  { name: "a prefix", path: "/a/x", status: 200, answer: "short /a/x" },
  { name: "the longest prefix", path: "/a/b/c?q=1", status: 200, answer: "long ?q=1" },
  { name: "an exact path before a prefix", method: "POST", path: "/a/b/exact", status: 200, answer: "sent" },
  {
    name: "a method that the path does not know",
    method: "PUT",
    path: "/a",
    status: 405,
    answer: problem(405, "Method Not Allowed", "the method must be one of GET, HEAD"),
  },
  {
    name: "a path that is not there",
    path: "/nowhere",
    status: 404,
    answer: "404 page not found\n",
    contentType: "text/plain; charset=utf-8",
  },
  {
    name: "a handler that throws",
    path: "/throws",
    status: 500,
    answer: problem(500, "Internal Server Error", "internal error"),
  },
  {
    name: "a handler that rejects",
    path: "/rejects",
    status: 500,
    answer: problem(500, "Internal Server Error", "internal error"),
  },
];

for (const { name, method = "GET", path, status, answer, ...expected } of CASES) {
  Deno.test(`routes ${name}`, async () => {
    await using served = serveRoutes();
    const response = await fetch(served.url(path), { method, ...(method === "GET" ? {} : { body: "sent" }) });
    const isText = typeof answer === "string";
    const body: unknown = isText ? await response.text() : await response.json();
    assertEquals({ status: response.status, body }, { status, body: answer });
    const contentType = expected.contentType ??
      (isText ? "text/plain;charset=UTF-8" : "application/problem+json");
    assertEquals(response.headers.get("content-type"), contentType);
    assertEquals(response.headers.get("x-request-id"), "made");
  });
}

Deno.test("a refused method is told what is allowed", async () => {
  await using served = serveRoutes();
  const response = await fetch(served.url("/a"), { method: "DELETE" });
  await response.body?.cancel();
  assertEquals(response.headers.get("allow"), "GET, HEAD");
});

const BAD_TARGETS: readonly (readonly [name: string, head: string])[] = [
  ["a host with a space", "GET /a HTTP/1.1\r\nHost: a b\r\n"],
  ["a target that is no URL", "GET http://[x/ HTTP/1.1\r\nHost: a\r\n"],
];

for (const [name, head] of BAD_TARGETS) {
  Deno.test(`${name} is 400, and the server goes on`, async () => {
    await using served = serveRoutes(listenHttp);
    using raw = await served.dial();
    await raw.write(`${head}Connection: close\r\n\r\n`);
    const [answerHead = "", body = ""] = (await raw.read()).split("\r\n\r\n");
    assertMatch(answerHead, /^HTTP\/1\.1 400 /);
    assertMatch(answerHead, /x-request-id: made/i);
    const reason = "the host and the path make no URL";
    assertEquals(JSON.parse(body), problem(400, "Bad Request", reason, { field: "host" }));
    assertEquals(await (await fetch(served.url("/a"))).text(), "exact");
  });
}

const IDS: readonly (readonly [name: string, given: string, expected: string])[] = [
  ["a sane id", "abc-123/~!", "abc-123/~!"],
  ["an id of 128 characters", "x".repeat(128), "x".repeat(128)],
  ["an id of 129 characters", "x".repeat(129), "made"],
  ["an id with a space", "a b", "made"],
  ["an id beyond ASCII", "\u00e9", "made"],
  ["an empty id", "", "made"],
];

for (const [name, given, expected] of IDS) {
  Deno.test(`${name} is answered with "${expected.slice(0, 12)}"`, async () => {
    await using served = serveRoutes();
    using raw = await served.dial();
    await raw.write(`DELETE /a HTTP/1.1\r\nHost: a\r\nx-request-id: ${given}\r\n\r\n`);
    const [head = "", body = ""] = (await raw.read(wholeJson)).split("\r\n\r\n");
    assertEquals(
      {
        header: /x-request-id: (.*)\r/i.exec(`${head}\r`)?.[1],
        body: (JSON.parse(body) as { requestId: string }).requestId,
        log: served.log.lines.map(({ fields }) => fields.requestId),
      },
      { header: expected, body: expected, log: [expected] },
    );
  });
}

Deno.test("an id that is made is a random UUID", async () => {
  await using served = new ServedHttp(({ log, clock }) => createRouter(ROUTES, { logger: log, clock }));
  const ids = [];
  for (let round = 0; round < 2; round++) {
    const response = await fetch(served.url("/a"));
    await response.body?.cancel();
    ids.push(response.headers.get("x-request-id") ?? "");
  }
  for (const id of ids) {
    assertMatch(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
  assertEquals(new Set(ids).size, 2);
});

Deno.test("refusals are warnings once a second for each kind, faults are errors", async () => {
  await using served = serveRoutes();
  const get = async (path: string) => void await (await fetch(served.url(path))).body?.cancel();
  for (const path of ["/nowhere", "/other", "/throws", "/rejects", `/${"x".repeat(300)}`]) await get(path);
  served.clock.advance(1_000);
  await get("/again");
  await get("/rejects");
  const refused = (path: string) => ({
    kind: "not_found",
    status: 404,
    reason: "nothing is served at this path",
    method: "GET",
    path,
    requestId: "made",
  });
  assertEquals(served.log.lines, [
    { level: "warning", message: "HTTP request refused", fields: refused("/nowhere") },
    {
      level: "error",
      message: "HTTP request failed",
      fields: {
        method: "GET",
        path: "/throws",
        requestId: "made",
        error: new Error("secret of the program"),
      },
    },
    { level: "warning", message: "HTTP request refused", fields: { ...refused("/again"), suppressed: 2 } },
    {
      level: "error",
      message: "HTTP request failed",
      fields: {
        method: "GET",
        path: "/rejects",
        requestId: "made",
        error: new Error("later"),
        suppressed: 1,
      },
    },
  ]);
});

Deno.test("two routes with one path are refused", () => {
  const route: Route = { path: "/a", methods: ["GET"], handle: () => new Response() };
  const clock = { now: () => 0, elapsed: () => 0, after: () => () => {} };
  const logger = { debug() {}, info() {}, warning() {}, error() {} };
  const error = assertThrows(() => createRouter([route, route], { logger, clock }));
  assertEquals(error.message, `Cannot route "/a": the path is already taken`);
});
