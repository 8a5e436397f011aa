import {
  addQueryParameters,
  Get,
  Head,
  type Method,
  Post,
  Put,
  type Request as RestRequest,
  send,
  sendStream,
} from "@weir/rest";
import { assert, assertEquals } from "#assert";
import { EchoServer, RawServer } from "../../harness/rest_fixture.ts";

Deno.test("send: query parameters are encoded, sorted and merged into the query that is there", async () => {
  await using server = new EchoServer(() => {});
  const table: [string, Record<string, string>, string][] = [
    ["/a", {}, "/a"],
    ["/a", { b: "2", a: "1" }, "/a?a=1&b=2"],
    ["/a?z=0", { b: "2", a: "1" }, "/a?z=0&a=1&b=2"],
    ["/a?", { a: "1" }, "/a?a=1"],
    ["/a?z=0&", { a: "1" }, "/a?z=0&a=1"],
    ["/a#top?x", { a: "1" }, "/a?a=1"],
    ["/a?z=0#top", { a: "1" }, "/a?z=0&a=1"],
    ["/a", { "ä &": "=/?#+ ü" }, "/a?%C3%A4+%26=%3D%2F%3F%23%2B+%C3%BC"],
    ["/a", { a: "" }, "/a?a="],
    ["/a", JSON.parse('{"__proto__":"1","constructor":"2"}'), "/a?__proto__=1&constructor=2"],
    ["", { a: "1" }, "/?a=1"],
  ];
  for (const [path, queryParams] of table) {
    await send({ method: Get, baseURL: `${server.origin}${path}`, queryParams });
  }
  assertEquals(server.requests.map(({ path }) => path), table.map(([, , seen]) => seen));
});

Deno.test("addQueryParameters: a fragment stays at the end, and a URL without parameters as it is", () => {
  const table: [string, Record<string, string>, string][] = [
    ["https://h/a?b=1#c", { d: "2" }, "https://h/a?b=1&d=2#c"],
    ["https://h/a#c?d#e", { d: "2" }, "https://h/a?d=2#c?d#e"],
    ["not a url", {}, "not a url"],
    ["/a?b&&", { c: "1" }, "/a?b&&c=1"],
  ];
  assertEquals(table.map(([url, params]) => addQueryParameters(url, params)), table.map(([, , to]) => to));
});

Deno.test("send: a body that is not empty is JSON unless a content type is given", async () => {
  await using server = new EchoServer(() => {});
  const stream = () => new Blob(["{}"]).stream();
  const table: [RestRequest["body"], Record<string, string>, string | undefined][] = [
    ["{}", {}, "application/json"],
    [new Uint8Array([123, 125]), {}, "application/json"],
    [stream(), {}, "application/json"],
    ["{}", { "content-type": "text/csv" }, "text/csv"],
    ["{}", { "Content-Type": "text/csv" }, "text/csv"],
    ["{}", { "CONTENT-TYPE": "text/csv" }, "text/csv"],
    [stream(), { "cOnTeNt-TyPe": "text/csv" }, "text/csv"],
    ["", {}, undefined],
    [new Uint8Array(), {}, undefined],
    [undefined, {}, undefined],
    ["", { "content-type": "text/csv" }, "text/csv"],
  ];
  for (const [body, headers] of table) {
    await send({ method: Post, baseURL: `${server.origin}/`, headers, body });
  }
  assertEquals(
    server.requests.map(({ headers }) => headers["content-type"]),
    table.map(([, , type]) => type),
  );
  const lengths = server.requests.map(({ body }) => body.byteLength);
  assertEquals(lengths, [2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0]);
});

Deno.test("send: repeated headers come combined, cookies one by one, and __proto__ is a name", async () => {
  const text =
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX-Many: 1\r\nset-cookie: a=1; Path=/\r\nx-many: 2, 3\r\n" +
    "__proto__: own\r\nSet-Cookie: b=2, still b\r\n\r\nok";
  await using server = await RawServer.writing(text);
  const response = await send({ method: Get, baseURL: `${server.origin}/` });
  assertEquals(Object.entries(response.headers).sort(), [
    ["__proto__", ["own"]],
    ["content-length", ["2"]],
    ["set-cookie", ["a=1; Path=/", "b=2, still b"]],
    ["x-many", ["1, 2, 3"]],
  ]);
  const stream = await sendStream({ method: Get, baseURL: `${server.origin}/` });
  assertEquals(stream.headers, response.headers);
  await stream.bodyStream.cancel();
});

Deno.test("send: headers arrive, also the odd ones", async () => {
  await using server = new EchoServer(() => {});
  const headers = JSON.parse(
    '{"__proto__":"own","X-Upper":"  spaces  ","x-tab":"a\\tb","x-latin":"\\u00e9"}',
  );
  await send({ method: Get, baseURL: `${server.origin}/`, headers });
  const seen = server.requests[0]?.headers ?? {};
  const names = ["__proto__", "x-upper", "x-tab", "x-latin"];
  const values = names.map((name) => Object.getOwnPropertyDescriptor(seen, name)?.value);
  assertEquals(values, ["own", "spaces", "a\tb", "\u00e9"]);
});

Deno.test("send: bytes of every value and of some megabytes go both ways", async () => {
  await using server = new EchoServer(({ body }) => new Response(body));
  const bytes = Uint8Array.from({ length: 3_000_001 }, (_, index) => (index * 7) % 256);
  for (const body of [Uint8Array.from({ length: 256 }, (_, index) => index), bytes]) {
    const response = await send({ method: Put, baseURL: `${server.origin}/`, body });
    assertEquals(response.bodyBytes, body);
    assertEquals(server.requests.pop()?.body, body);
  }
  const stream = new Blob([bytes]).stream();
  const response = await send({ method: Put, baseURL: `${server.origin}/`, body: stream });
  assertEquals(response.bodyBytes, bytes);
  const text = "ü \u{1f30a}";
  assertEquals((await send({ method: Post, baseURL: `${server.origin}/`, body: text })).body, text);
});

Deno.test("send: answers without a body are empty, whatever length they tell", async () => {
  const table: [Method, string][] = [
    [Head, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"],
    [Get, "HTTP/1.1 204 No Content\r\n\r\n"],
    [Get, "HTTP/1.1 304 Not Modified\r\ncontent-length: 1000\r\n\r\n"],
    [Get, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"],
  ];
  for (const [method, text] of table) {
    await using server = await RawServer.writing(text);
    const { statusCode, body, bodyBytes } = await send({ method, baseURL: server.origin });
    assertEquals([String(statusCode), body, bodyBytes.byteLength], [text.slice(9, 12), "", 0]);
  }
});

Deno.test("Response: its body as text, bytes and JSON, and how it is printed", async () => {
  await using server = new EchoServer(() => Response.json({ a: [1, "ü"] }, { headers: { "x-a": "b" } }));
  const response = await send({ method: Get, baseURL: `${server.origin}/` });
  assertEquals(response.json(), { a: [1, "ü"] });
  assertEquals(new TextDecoder().decode(response.bodyBytes), '{"a":[1,"ü"]}');
  assert(response.headers === response.headers);
  const printed = JSON.parse(JSON.stringify(response));
  assertEquals(printed, { statusCode: 200, body: '{"a":[1,"ü"]}', headers: response.headers });
  const { statusCode, body, headers } = response;
  assertEquals(Deno.inspect(response), Deno.inspect({ statusCode, body, headers }));
});
