import { assertEquals, assertMatch, assertThrows } from "#assert";
import { createRouter, type Route } from "../../../../src/http/server/router.ts";
import { HandledHttp } from "../../../harness/http_fixture.ts";

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

function problem(status: number, title: string, reason: string) {
  return { type: "about:blank", title, status, detail: reason, reason, requestId: "made" };
}

const FAULT = problem(500, "Internal Server Error", "internal error");
const NOT_ALLOWED = problem(405, "Method Not Allowed", "the method must be one of GET, HEAD");

const CASES: readonly (readonly [name: string, request: string, status: number, answer: unknown])[] = [
  ["an exact path", "GET /a", 200, "exact"],
  ["a path with a query", "GET /a?x=1", 200, "exact"],
  ["a prefix", "GET /a/x", 200, "short /a/x"],
  ["the longest prefix", "GET /a/b/c?q=1", 200, "long ?q=1"],
  ["an exact path before a prefix", "POST /a/b/exact", 200, "sent"],
  ["a method that the path does not know", "PUT /a", 405, NOT_ALLOWED],
  ["a path that is not there", "GET /nowhere", 404, "404 page not found\n"],
  ["a handler that throws", "GET /throws", 500, FAULT],
  ["a handler that rejects", "GET /rejects", 500, FAULT],
];

for (const [name, request, status, answer] of CASES) {
  Deno.test(`routes ${name}`, async () => {
    const served = serveRoutes();
    const [method = "", path = ""] = request.split(" ");
    const response = await served.fetch(path, { method, ...(method === "GET" ? {} : { body: "sent" }) });
    const isText = typeof answer === "string";
    const body: unknown = isText ? await response.text() : await response.json();
    assertEquals({ status: response.status, body }, { status, body: answer });
    const contentType = isText ? /^text\/plain; ?charset=utf-8$/i : /^application\/problem\+json$/;
    assertMatch(response.headers.get("content-type") ?? "", contentType);
    assertEquals(response.headers.get("x-request-id"), "made");
  });
}

Deno.test("a refused method gets the allowed ones", async () => {
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
