import {
  Client,
  Get,
  Head,
  makeRequest,
  type Method,
  Post,
  Put,
  type Request as RestRequest,
  send,
} from "@weir/rest";
import { assertEquals } from "#assert";
import {
  assertKeepsSecrets,
  EchoServer,
  failure,
  RawServer,
  SECRET,
  type SeenRequest,
} from "../../harness/rest_fixture.ts";

/** A server that redirects `/to` as its query says, and answers anything else with 200. */
function redirecting(): EchoServer {
  return new EchoServer(({ path }) => {
    const { pathname, searchParams } = new URL(path, "http://host/");
    const status = Number(searchParams.get("status") ?? "200");
    const location = searchParams.get("location");
    if (pathname !== "/to" || location === null) return new Response("there");
    return new Response(status === 304 ? null : "moved", { status, headers: { location } });
  });
}

function redirectTo(origin: string, status: number, location: string): string {
  return `${origin}/to?status=${status}&location=${encodeURIComponent(location)}`;
}

function lastOf(server: EchoServer): SeenRequest {
  const last = server.requests.at(-1);
  if (last === undefined) throw new Error("Cannot tell the last request: there was none");
  return last;
}

Deno.test("redirects: method and body as the fetch standard has them", async () => {
  await using server = redirecting();
  const table: [number, Method, string][] = [
    ...[301, 302, 303, 307, 308].map((status): [number, Method, string] => [status, Get, "GET"]),
    ...[301, 302, 303, 307, 308].map((status): [number, Method, string] => [status, Head, "HEAD"]),
    [301, Post, "GET"],
    [302, Post, "GET"],
    [303, Post, "GET"],
    [307, Post, "POST body"],
    [308, Post, "POST body"],
    [301, Put, "PUT body"],
    [302, Put, "PUT body"],
    [303, Put, "GET"],
    [307, Put, "PUT body"],
    [308, Put, "PUT body"],
  ];
  for (const [status, method, outcome] of table) {
    const body = method === Get || method === Head ? undefined : "body";
    const headers = { "content-type": "text/csv", "Content-Language": "de", "x-mine": "kept" };
    await send({ method, baseURL: redirectTo(server.origin, status, "/end"), headers, body });
    const seen = lastOf(server);
    const text = new TextDecoder().decode(seen.body);
    assertEquals([status, method, seen.path, `${seen.method} ${text}`.trim()], [
      status,
      method,
      "/end",
      outcome,
    ]);
    const { "content-type": type, "content-language": language, "x-mine": mine } = seen.headers;
    const told = outcome === "GET" && method !== Get ? [undefined, undefined] : ["text/csv", "de"];
    assertEquals([type, language, mine], [...told, "kept"], `${status} ${method}`);
  }
});

Deno.test("redirects: what is none is the answer", async () => {
  await using server = redirecting();
  for (const status of [300, 304, 305, 200]) {
    const { statusCode } = await send({ method: Get, baseURL: redirectTo(server.origin, status, "/end") });
    assertEquals(statusCode, status);
  }
  await using bare = new EchoServer(() => new Response("no location", { status: 302 }));
  const { statusCode, body } = await send({ method: Get, baseURL: bare.origin });
  assertEquals([statusCode, body], [302, "no location"]);
});

Deno.test("redirects: locations relative to where the last one led", async () => {
  await using server = redirecting();
  const table: [string, string][] = [
    ["/end?a=b#c", "/end?a=b"],
    ["end", "/end"],
    ["a/../b/./end", "/b/end"],
    ["?a=b", "/to?a=b"],
    [`//127.0.0.1:${server.port}/end`, "/end"],
    [redirectTo(server.origin, 301, "/end"), "/end"],
    ["/%C3%A4 a", "/%C3%A4%20a"],
  ];
  for (const [location, path] of table) {
    assertEquals(
      (await send({ method: Get, baseURL: redirectTo(server.origin, 302, location) })).body,
      "there",
    );
    assertEquals(lastOf(server).path, path);
  }
});

const CREDENTIALS = {
  Authorization: SECRET,
  COOKIE: SECRET,
  "Proxy-Authorization": SECRET,
  "X-Api-Key": SECRET,
  "x-mine": "kept",
};

function credentialsOf({ headers }: SeenRequest): readonly string[] {
  return Object.keys(CREDENTIALS).map((name) => name.toLowerCase()).filter((name) => name in headers);
}

Deno.test("redirects: credentials stay with their origin, and do not come back with a redirect home", async () => {
  await using home = redirecting();
  await using elsewhere = redirecting();
  const client = new Client({ sensitiveHeaders: ["x-API-key"] });
  const all = ["authorization", "cookie", "proxy-authorization", "x-api-key", "x-mine"];
  const localhost = home.origin.replace("127.0.0.1", "localhost");
  const table: [string, string, EchoServer, readonly string[]][] = [
    ["the same origin", `${home.origin}/end`, home, all],
    ["another port", `${elsewhere.origin}/end`, elsewhere, ["x-mine"]],
    ["another name of the host", `${localhost}/end`, home, ["x-mine"]],
    ["there and home", redirectTo(elsewhere.origin, 307, `${home.origin}/end`), home, ["x-mine"]],
  ];
  for (const [what, location, server, names] of table) {
    for (const status of [301, 302, 303, 307, 308]) {
      const baseURL = redirectTo(home.origin, status, location);
      await client.send({ method: Post, baseURL, headers: CREDENTIALS, body: "{}" });
      assertEquals([what, lastOf(server).path, credentialsOf(lastOf(server))], [what, "/end", names]);
    }
  }
  await send({ method: Get, baseURL: redirectTo(home.origin, 302, elsewhere.origin), headers: CREDENTIALS });
  assertEquals(credentialsOf(lastOf(elsewhere)), ["x-api-key", "x-mine"]);
  const web = new Request(redirectTo(home.origin, 302, elsewhere.origin), { headers: CREDENTIALS });
  await (await makeRequest(web, { sensitiveHeaders: ["X-Api-Key"] })).body?.cancel();
  assertEquals(credentialsOf(lastOf(elsewhere)), ["x-mine"]);
});

Deno.test("redirects: locations that cannot be followed, told without what they say", async () => {
  await using server = redirecting();
  const table: [string, string][] = [
    [`http://${SECRET}:port/`, 'invalid URL: expected one such as "https://host/path"'],
    [`ftp://host/${SECRET}`, "invalid URL: expected http or https"],
    [`mailto:${SECRET}`, "invalid URL: expected http or https"],
    [`javascript:${SECRET}`, "invalid URL: expected http or https"],
    [
      `http://${SECRET}@127.0.0.1:${server.port}/`,
      "the URL contains a user name or password: use an Authorization header",
    ],
    [
      `//a:${SECRET}@127.0.0.1:${server.port}/`,
      "the URL contains a user name or password: use an Authorization header",
    ],
  ];
  for (const [location, why] of table) {
    const baseURL = redirectTo(server.origin, 302, location);
    const error = await failure(() => send({ method: Get, baseURL }));
    assertEquals([error.code, error.kind], ["network", "redirect"]);
    const start = `Cannot send GET "${server.origin}/to"`;
    assertEquals(error.message, `${start}: cannot follow the redirect: ${why}`);
    assertKeepsSecrets(error);
  }
  await using hiding = new EchoServer(() =>
    Response.redirect(`http://host.invalid/?token=${SECRET}#${SECRET}`)
  );
  const error = await failure(() => send({ method: Get, baseURL: hiding.origin }));
  assertEquals([error.code, error.kind, error.url], ["network", "dns", hiding.origin]);
  assertKeepsSecrets(error);
});

Deno.test("redirects: twenty are followed, and one more is not", async () => {
  await using server = new EchoServer(({ path }) => {
    const left = Number(path.slice(1));
    return left === 0
      ? new Response("there")
      : new Response(null, { status: 302, headers: { location: `/${left - 1}` } });
  });
  assertEquals((await send({ method: Get, baseURL: `${server.origin}/20` })).body, "there");
  assertEquals(server.requests.length, 21);
  const error = await failure(() => send({ method: Get, baseURL: `${server.origin}/21` }));
  assertEquals([error.code, error.kind], ["network", "redirect"]);
  const state = "cannot follow the redirect: more than 20 redirects";
  assertEquals(error.message, `Cannot send GET "${server.origin}/21": ${state}`);
  assertEquals(server.requests.length, 42);
});

Deno.test("redirects: manual gives the redirect itself", async () => {
  await using server = redirecting();
  const request = { method: Post, baseURL: redirectTo(server.origin, 307, "/end"), body: "{}" };
  const { statusCode, headers, body } = await send(request, { redirect: "manual" });
  assertEquals([statusCode, headers.location, body], [307, ["/end"], "moved"]);
  const web = await makeRequest(new Request(request.baseURL, { redirect: "manual" }));
  assertEquals([web.status, await web.text()], [307, "moved"]);
  const client = new Client({ redirect: "manual" });
  assertEquals((await client.send(request, { redirect: undefined })).body, "there");
});

Deno.test("redirects: a streamed body is not sent again, but may be left out", async () => {
  await using server = redirecting();
  const streamed = (status: number): RestRequest => ({
    method: Post,
    baseURL: redirectTo(server.origin, status, "/end"),
    body: new Blob(["{}"]).stream(),
  });
  assertEquals((await send(streamed(303))).body, "there");
  for (const status of [307, 308]) {
    const error = await failure(() => send(streamed(status)));
    assertEquals([error.code, error.kind], ["network", "redirect"]);
    const state = "cannot follow the redirect: a streamed body cannot be sent again";
    assertEquals(error.message, `Cannot send POST "${server.origin}/to": ${state}`);
  }
});

Deno.test("redirects: a location beyond ASCII is read as UTF-8, or else as Latin-1", async () => {
  const locations: readonly (readonly [written: string, encoding: "utf8" | "latin1", path: string])[] = [
    ["/café?q=ü", "utf8", "/caf%C3%A9?q=%C3%BC"],
    ["/日本", "utf8", "/%E6%97%A5%E6%9C%AC"],
    ["/café", "latin1", "/caf%C3%A9"],
    ["/caf%C3%A9", "utf8", "/caf%C3%A9"],
  ];
  for (const [written, encoding, expected] of locations) {
    await using server = await RawServer.start((socket, head) => {
      const path = /^GET (\S+)/.exec(head)?.[1] ?? "";
      const first = path === "/to" ? `302 Found\r\nlocation: ${written}` : `200 OK\r\nx-path: ${path}`;
      socket.end(`HTTP/1.1 ${first}\r\ncontent-length: 0\r\n\r\n`, encoding);
    });
    const { headers } = await send({ method: Get, baseURL: `${server.origin}/to` });
    assertEquals([written, headers["x-path"]], [written, [expected]]);
  }
});
