import { assertEquals } from "#assert";
import type { DebugRoute } from "../../../../src/http/routes/debug.ts";
import { debugHandler, HandledHttp } from "../../../harness/http_fixture.ts";

const TOKEN = "correct-horse/battery+staple=";

function serveGuarded(routes: readonly DebugRoute[] = []): HandledHttp {
  return new HandledHttp(debugHandler({ token: TOKEN, routes }));
}

const WANTED = "a bearer token is required";

const OPEN = ["/", "/healthcheck", "/livez"];
const UNKNOWN = ["/nowhere", "/stats/", "/%73tats"];
const GUARDED = [
  "/rlconfig",
  "/stats",
  "/stats?x=/livez",
  "/./stats",
  "/debug/pprof/",
  "/debug/pprof/heap",
  "/debug/pprof/memory",
  "/debug/pprof/profile?seconds=300",
];

for (const path of [...OPEN, ...UNKNOWN]) {
  const expected = OPEN.includes(path) ? 200 : 404;
  Deno.test(`${path} is ${expected} without a token and shows nothing that requires one`, async () => {
    const served = serveGuarded();
    for (const method of ["GET", "HEAD"]) {
      const response = await served.fetch(path, { method });
      assertEquals([response.status, (await response.text()).includes("the stats")], [expected, false]);
    }
  });
}

for (const path of GUARDED) {
  Deno.test(`${path} without the token is 401, for GET and HEAD`, async () => {
    const served = serveGuarded();
    for (const method of ["GET", "HEAD"]) {
      const response = await served.fetch(path, { method, headers: { "x-request-id": "mine" } });
      const text = await response.text();
      assertEquals(
        {
          status: response.status,
          challenge: response.headers.get("www-authenticate"),
          contentType: response.headers.get("content-type"),
          requestId: response.headers.get("x-request-id"),
          body: text === "" ? undefined : JSON.parse(text) as unknown,
        },
        {
          status: 401,
          challenge: "Bearer",
          contentType: "application/problem+json",
          requestId: "mine",
          body: method === "HEAD" ? undefined : {
            type: "about:blank",
            title: "Unauthorized",
            status: 401,
            detail: WANTED,
            reason: WANTED,
            requestId: "mine",
          },
        },
      );
    }
  });
}

Deno.test("a refused request is logged with its path and id, without its query", async () => {
  const served = serveGuarded();
  const response = await served.fetch("/stats?secret=1", { headers: { "x-request-id": "mine" } });
  await response.body?.cancel();
  assertEquals(served.log.lines, [{
    level: "warning",
    message: "HTTP request refused",
    fields: {
      kind: "unauthorized",
      status: 401,
      reason: WANTED,
      method: "GET",
      path: "/stats",
      requestId: "mine",
    },
  }]);
});

Deno.test("a further path is guarded, unless it says that it is open", async () => {
  const route = { methods: ["GET", "POST"], help: "of a test", handle: () => new Response("more") };
  const served = serveGuarded([{ ...route, path: "/further" }, {
    ...route,
    path: "/bare",
    open: true,
  }]);
  const ask = async (path: string, init: RequestInit) => {
    const response = await served.fetch(path, init);
    await response.body?.cancel();
    return response.status;
  };
  const headers = { authorization: `Bearer ${TOKEN}` };
  assertEquals(
    [
      await ask("/further", {}),
      await ask("/further", { method: "POST", body: "x" }),
      await ask("/further", { method: "POST", body: "x", headers }),
      await ask("/bare", {}),
    ],
    [401, 401, 200, 200],
  );
});
