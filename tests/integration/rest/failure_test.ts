import { Client, type ClientOptions, Get, Head, Put, send } from "@weir/rest";
import { assert, assertEquals, assertMatch } from "#assert";
import { freePort } from "../../harness/free_port.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import {
  assertKeepsSecrets,
  EchoServer,
  failure,
  RawServer,
  SECRET,
  secretRequest,
} from "../../harness/rest_fixture.ts";

async function assertFails(
  origin: string,
  expected: readonly [code: string, kind: string | undefined, state: RegExp],
  options: ClientOptions = {},
): Promise<void> {
  const error = await failure(() => new Client(options).send(secretRequest(origin)));
  const [code, kind, state] = expected;
  assertEquals([error.code, error.kind], [code, kind]);
  const verb = code.startsWith("body") ? "read the response to" : "send";
  const start = `Cannot ${verb} POST "${origin}/a": `;
  assertEquals(error.message.slice(0, start.length), start);
  assertMatch(error.message.slice(start.length), state);
  assertKeepsSecrets(error);
  if (code === "network") assert(error.cause instanceof Error);
}

Deno.test("a host without a name server's answer: network, dns", async () => {
  const state = /^cannot resolve the host name \(.+\)$/;
  await assertFails("http://nowhere.invalid", ["network", "dns", state]);
});

Deno.test("a port without a listener: network, connect", async () => {
  const state = /^cannot connect to the host \(.*refused.*\)$/i;
  await assertFails(`http://127.0.0.1:${freePort()}`, ["network", "connect", state]);
});

Deno.test({
  ...needs(["openssl"], "certificates that do not do, and a server without any: network, tls"),
  async fn() {
    await using certificates = await makeCertificates();
    const authority = await Deno.readTextFile(certificates.authority.certFile);
    using trusting = Deno.createHttpClient({ caCerts: [authority] });
    const state = /^the TLS handshake failed \(.+\)$/;
    for (
      const [{ certFile, keyFile }, httpClient] of [
        [certificates.server, undefined],
        [certificates.elsewhere, trusting],
      ] as const
    ) {
      const [cert, key] = await Promise.all([Deno.readTextFile(certFile), Deno.readTextFile(keyFile)]);
      const options = { hostname: "127.0.0.1", port: 0, cert, key, onListen() {} };
      await using server = Deno.serve(options, () => new Response("never"));
      const origin = `https://localhost:${server.addr.port}`;
      await assertFails(origin, ["network", "tls", state], { httpClient });
    }
    await using plain = new EchoServer(() => {});
    await assertFails(`https://127.0.0.1:${plain.port}`, ["network", "tls", state]);
  },
});

Deno.test("a connection that is lost before the answer, and an answer that is none: network", async () => {
  await using reset = await RawServer.start((socket) => socket.resetAndDestroy());
  await assertFails(reset.origin, ["network", undefined, /^the connection failed \(.*reset.*\)$/i]);
  for (const text of ["", `${SECRET} ${SECRET}\r\n\r\n`, `HTTP/1.1 200 OK\r\nno header ${SECRET}\r\n\r\n`]) {
    await using server = await RawServer.writing(text);
    await assertFails(server.origin, ["network", undefined, /^the connection failed \(.+\)$/]);
  }
});

Deno.test("a body that ends too early or cannot be decoded: body_interrupted", async () => {
  const cut = /^the body was interrupted$/;
  const odd = /^the body cannot be decoded$/;
  const answers: readonly (readonly [string, RegExp])[] = [
    [`transfer-encoding: chunked\r\n\r\n7\r\n${SECRET}\r\n`, cut],
    [`transfer-encoding: chunked\r\n\r\n70\r\n${SECRET}`, cut],
    [`transfer-encoding: chunked\r\n\r\nno length\r\n${SECRET}\r\n`, cut],
    [`content-length: 100\r\n\r\n${SECRET}`, cut],
    [`content-length: 100\r\ncontent-encoding: gzip\r\n\r\n${SECRET}`, cut],
    [`content-length: 100\r\n\r\n`, cut],
    [`content-length: 7\r\ncontent-encoding: gzip\r\n\r\n${SECRET}`, odd],
    [`content-length: 7\r\ncontent-encoding: br\r\n\r\n${SECRET}`, odd],
    [`content-length: 7\r\ncontent-encoding: deflate\r\n\r\n${SECRET}`, odd],
    [`content-length: 7\r\ncontent-encoding: gzip, gzip\r\n\r\n${SECRET}`, odd],
    [`content-length: 7\r\ncontent-encoding: unheard-of\r\n\r\n${SECRET}`, odd],
  ];
  for (const [answer, state] of answers) {
    await using server = await RawServer.writing(`HTTP/1.1 200 OK\r\n${answer}`);
    for (const options of [{}, { maxResponseBytes: 1_000 }, { timeoutMs: 60_000 }]) {
      await assertFails(server.origin, ["body_interrupted", undefined, state], options);
    }
  }
});

Deno.test("a body over maxResponseBytes: body_too_large, by its length, by count, and unpacked", async () => {
  const state = /^the body exceeds 6 bytes$/;
  const packed = await new Response(
    new Blob([SECRET.repeat(100_000)]).stream().pipeThrough(
      new CompressionStream("gzip"),
    ),
  ).bytes();
  const answers = [
    () => new Response(SECRET),
    () => new Response(new Blob([SECRET]).stream(), { headers: {} }),
    () => new Response(packed, { headers: { "content-encoding": "gzip" } }),
  ];
  for (const answer of answers) {
    await using server = new EchoServer(answer);
    await assertFails(server.origin, ["body_too_large", undefined, state], { maxResponseBytes: 6 });
  }
  // The rest of a body without an end is not waited for, and its connection is let go.
  await using endless = await RawServer.writing("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", {
    end: false,
  });
  await assertFails(endless.origin, ["body_too_large", undefined, state], { maxResponseBytes: 6 });
  await until("the connection is closed", () => endless.open === 0);
});

Deno.test("a body of just maxResponseBytes is whole", async () => {
  await using server = new EchoServer(({ body }) => new Response(body));
  for (const body of ["1234567", ""]) {
    const client = new Client({ maxResponseBytes: body.length });
    assertEquals((await client.send({ method: Put, baseURL: server.origin, body })).body, body);
  }
  const head = { method: Head, baseURL: server.origin };
  assertEquals((await new Client({ maxResponseBytes: 0 }).send(head)).statusCode, 200);
});

/** The part of an answer that comes before nothing more comes. */
const SLOW: readonly (readonly [string, string])[] = [
  ["headers", "HTTP/1.1 200 OK\r\nx-a:"],
  ["body", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello"],
];

for (const [what, text] of SLOW) {
  Deno.test(`${what} that do not come: timeout, of one attempt and in total`, async () => {
    await using server = await RawServer.start((socket) => socket.write(text, () => clock.advance(999)));
    const clock = new FakeClock();
    const table: [ClientOptions, RegExp][] = [
      [{ timeoutMs: 1_000 }, /^timed out after 1000 ms$/],
      [{ totalTimeoutMs: 1_000 }, /^timed out after 1000 ms in total$/],
      [{ timeoutMs: 2_000, totalTimeoutMs: 1_000 }, /^timed out after 1000 ms in total$/],
      [{ timeoutMs: 1_000, totalTimeoutMs: 2_000 }, /^timed out after 1000 ms$/],
    ];
    for (const [limits, state] of table) {
      let settled = false;
      const failed = assertFails(server.origin, ["timeout", undefined, state], { clock, ...limits })
        .finally(() => settled = true);
      const before = clock.now();
      await until("the server answered", () => clock.now() > before);
      assertEquals(settled, false);
      clock.advance(1);
      await failed;
      assertEquals(clock.waiting, 0);
    }
    await until("the connections are closed", () => server.open === 0);
  });
}

Deno.test("throwOnStatus: status, with the answer on the error alone", async () => {
  await using server = new EchoServer(({ path }) => new Response(SECRET, { status: Number(path.slice(1)) }));
  const client = new Client({ throwOnStatus: true });
  for (const status of [400, 404, 500, 599]) {
    const baseURL = `${server.origin}/${status}`;
    const error = await failure(() => client.send({ method: Get, baseURL }));
    assertEquals([error.code, error.statusCode], ["status", status]);
    assertEquals(error.message, `Cannot send GET "${baseURL}": the server responded with status ${status}`);
    assertEquals(error.response?.body, SECRET);
    assertKeepsSecrets(error);
    const streamed = await failure(() => client.sendStream({ method: Get, baseURL }));
    assertEquals([streamed.code, streamed.response], ["status", undefined]);
  }
  assertEquals((await client.send({ method: Get, baseURL: `${server.origin}/399` })).statusCode, 399);
});

Deno.test("json() of a body that is none: invalid_json", async () => {
  await using server = new EchoServer(() => new Response(SECRET));
  const request = { method: Get, baseURL: `${server.origin}/a?${SECRET}` };
  const response = await send(request);
  const error = await failure(() => Promise.try(() => response.json()));
  assertEquals(error.code, "invalid_json");
  assertEquals(error.message, `Cannot read the response to GET "${server.origin}/a": the body is not JSON`);
  assert(error.request === request);
  assertKeepsSecrets(error);
});
