import {
  buildRequestObject,
  buildResponse,
  Client,
  Get,
  makeRequest,
  Post,
  type Request as RestRequest,
  RestError,
  send,
} from "@weir/rest";
import { assert, assertEquals, assertThrows } from "#assert";
import { freePort } from "../../harness/free_port.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { needs } from "../../harness/tools.ts";
import { assertKeepsSecrets, EchoServer, failure, RawServer, SECRET } from "../../harness/rest_fixture.ts";

Deno.test("buildRequestObject: the web request that a request stands for", async () => {
  const web = buildRequestObject({
    method: "post",
    baseURL: "https://api.example.com/a?b=1#c",
    headers: { "X-A": "1" },
    queryParams: { d: "2" },
    body: Uint8Array.from([0, 255]),
  });
  assertEquals([web.method, web.url], ["POST", "https://api.example.com/a?b=1&d=2#c"]);
  assertEquals([...web.headers], [["content-type", "application/json"], ["x-a", "1"]]);
  assertEquals([...await web.bytes()], [0, 255]);
  const bare = buildRequestObject({ method: Get, baseURL: "https://api.example.com", body: "" });
  assertEquals([bare.url, bare.body, [...bare.headers]], ["https://api.example.com/", null, []]);
  const streamed = buildRequestObject({
    method: Post,
    baseURL: "https://api.example.com",
    body: new Blob(["part"]).stream(),
  });
  assertEquals(await streamed.text(), "part");
  const error = assertThrows(() => buildRequestObject({ method: Get, baseURL: `nowhere?${SECRET}` }));
  assert(error instanceof RestError);
  assertEquals(error.code, "invalid_url");
  assertKeepsSecrets(error);
});

Deno.test("the three steps together do what send does", async () => {
  await using server = new EchoServer(({ body }) =>
    new Response(body, { status: 201, headers: { "x-a": "b" } })
  );
  const request: RestRequest = {
    method: Post,
    baseURL: server.origin,
    queryParams: { a: "1" },
    headers: { "X-Mine": "1" },
    body: "body",
  };
  const whole = await send(request);
  const steps = await buildResponse(await makeRequest(buildRequestObject(request)), { request });
  const { date: _, ...headers } = steps.headers;
  const { date: __, ...others } = whole.headers;
  assertEquals([steps.statusCode, steps.body, headers], [whole.statusCode, whole.body, others]);
  assertEquals(server.requests[0], server.requests[1]);
});

Deno.test("makeRequest: a body that was already read is a request that cannot be sent", async () => {
  const web = buildRequestObject({ method: Post, baseURL: "https://api.example.com/items", body: SECRET });
  await web.text();
  for (
    const run of [
      () => makeRequest(web),
      () => new Client({ onRequest: () => web }).send({ method: Get, baseURL: "https://api.example.com/" }),
    ]
  ) {
    const error = await failure(run);
    assertEquals(
      error.message,
      'Cannot send POST "https://api.example.com/items": the body was already read',
    );
    assertEquals(error.code, "invalid_body");
    assertKeepsSecrets(error);
  }
});

Deno.test("makeRequest: a failure names the request without its secrets", async () => {
  const url = `http://127.0.0.1:${freePort()}/a`;
  const web = new Request(`${url}?${SECRET}`, { headers: { "x-a": SECRET }, method: "POST", body: SECRET });
  const error = await failure(() => makeRequest(web));
  assertEquals([error.code, error.kind, error.method, error.url], ["network", "connect", "POST", url]);
  assertEquals(error.request, undefined);
  assertKeepsSecrets(error);
});

Deno.test("buildResponse: errors name the request where it is known", async () => {
  const request: RestRequest = { method: Get, baseURL: `https://api.example.com/a?${SECRET}` };
  const table: [RestRequest | undefined, string][] = [
    [request, 'GET "https://api.example.com/a"'],
    [undefined, 'request ""'],
  ];
  for (const [request, named] of table) {
    const build = () => buildResponse(new Response(SECRET), { request, maxResponseBytes: 6 });
    const error = await failure(build);
    assertEquals(error.message, `Cannot read the response to ${named}: the body exceeds 6 bytes`);
    assert(error.request === request);
    assertKeepsSecrets(error);
  }
  await using server = await RawServer.writing("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello");
  const web = await fetch(server.origin);
  assertEquals((await failure(() => buildResponse(web))).code, "body_interrupted");
});

Deno.test("buildResponse: the length that counts is that of what was unpacked", async () => {
  const headers = { "content-encoding": "gzip", "content-length": "21" };
  const response = await buildResponse(new Response("a", { headers }), { maxResponseBytes: 1 });
  assertEquals(response.body, "a");
});

Deno.test({
  ...needs(
    ["openssl"],
    "httpClient: a private CA is trusted by the client that has it, and by no other",
  ),
  async fn() {
    await using certificates = await makeCertificates();
    const { authority, server: files } = certificates;
    const texts = [authority.certFile, files.certFile, files.keyFile].map((file) => Deno.readTextFile(file));
    const [ca = "", cert = "", key = ""] = await Promise.all(texts);
    const options = { hostname: "127.0.0.1", port: 0, cert, key, onListen() {} };
    await using server = Deno.serve(options, async (request) => new Response(await request.text()));
    const baseURL = `https://localhost:${server.addr.port}/`;
    const httpClient = Deno.createHttpClient({ caCerts: [ca] });
    const client = new Client({ httpClient });
    try {
      assertEquals((await client.send({ method: Post, baseURL, body: "body" })).body, "body");
      const { bodyStream } = await client.sendStream({ method: Post, baseURL, body: "body" });
      assertEquals(await new Response(bodyStream).text(), "body");
      const web = await makeRequest(new Request(baseURL), { httpClient });
      assertEquals([web.status, await web.text()], [200, ""]);
      const error = await failure(() => send({ method: Get, baseURL }));
      assertEquals([error.code, error.kind], ["network", "tls"]);
    } finally {
      httpClient.close();
    }
    const closed = await failure(() => client.send({ method: Get, baseURL }));
    assertEquals(closed.code, "network");
  },
});
