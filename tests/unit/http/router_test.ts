import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { createRouter, type Route } from "../../../src/http/router.ts";
import { HandledHttp } from "../../harness/http_fixture.ts";

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

function serveRoutes(): HandledHttp {
  return new HandledHttp(({ log, clock }) =>
    createRouter(ROUTES, { logger: log, clock, newRequestId: () => "made" })
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
    const served = serveRoutes();
    const response = await served.fetch(path, { method, ...(method === "GET" ? {} : { body: "sent" }) });
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
  const served = serveRoutes();
  const response = await served.fetch("/a", { method: "DELETE" });
  await response.body?.cancel();
  assertEquals(response.headers.get("allow"), "GET, HEAD");
});

Deno.test("an id that is made is a random UUID", async () => {
  const served = new HandledHttp(({ log, clock }) => createRouter(ROUTES, { logger: log, clock }));
  const ids = [];
  for (let round = 0; round < 2; round++) {
    const response = await served.fetch("/a");
    await response.body?.cancel();
    ids.push(response.headers.get("x-request-id") ?? "");
  }
  for (const id of ids) {
    assertMatch(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
  assertEquals(new Set(ids).size, 2);
});

Deno.test("refusals are warnings once a second for each kind, faults are errors", async () => {
  const served = serveRoutes();
  const get = async (path: string) => void await (await served.fetch(path)).body?.cancel();
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
