import { assert, assertEquals, assertMatch, assertStringIncludes } from "#assert";
import type { HttpHandler } from "../../../src/http/server/router.ts";
import { until } from "../../harness/until.ts";
import { type Dialed, ServedHttp } from "../../harness/http_fixture.ts";

/** Answers with the method, the path and the body. */
const echo: HttpHandler = async (request) => {
  const { pathname } = new URL(request.url);
  const body = await request.text().catch(() => "broken off");
  return new Response(`${request.method} ${pathname} ${body};`);
};

/** A port whose timeouts the test controls, for so many connections. */
function serve(handler: HttpHandler = echo, maxConnections = Infinity): ServedHttp {
  return new ServedHttp(() => handler, { isTimed: true, maxConnections });
}

const GET = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
const HALF = "GET /a HTTP/1.1\r\nHo";

Deno.test("50 silent connections and halves of a head are closed after 10 s", async () => {
  await using served = serve();
  const kept: Dialed[] = [];
  for (let index = 0; index < 50; index++) {
    const raw = await served.dial();
    kept.push(raw);
    if (index % 3 === 1) await raw.write(HALF);
    if (index % 3 !== 2) continue;
    await raw.write(GET);
    await raw.read((text) => text.endsWith("GET /a ;"));
    await raw.write(HALF);
  }
  // The last half has come once a request on a later connection is answered.
  await (await fetch(served.url("/"))).text();
  served.clock.advance(11_000);
  const texts = await Promise.all(kept.map((raw) => raw.read()));
  assertEquals(
    texts.map((text) => text.split("\r\n")[0]),
    kept.map((_, index) => index % 3 === 0 ? "" : "HTTP/1.1 408 Request Timeout"),
  );
  for (const raw of kept) raw.close();
  await until(
    "all to be gone",
    () => served.listener.accepting.failures === 0 && served.log.lines.length > 0,
  );
  assertEquals(served.log.lines[0]?.fields.kind, "timeout");
});

Deno.test("a connection between two requests is closed after 75 s", async () => {
  await using served = serve();
  using raw = await served.dial();
  await raw.write(GET);
  await raw.read((text) => text.endsWith(";"));
  served.clock.advance(74_000);
  await raw.write(GET);
  await raw.read((text) => text.endsWith(";"));
  served.clock.advance(76_000);
  assertEquals(await raw.read(), "");
});

Deno.test("1,000 pipelined POSTs are answered in their order", async () => {
  await using served = serve();
  using raw = await served.dial();
  const bodies = Array.from({ length: 1_000 }, (_, index) => `body ${index}`);
  const head = "POST /p HTTP/1.1\r\nHost: a\r\n";
  const requests = bodies.map((body, index) =>
    index % 2 === 0
      ? `${head}Content-Length: ${body.length}\r\n\r\n${body}`
      : `${head}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  );
  const text = raw.read((part) => part.includes("body 999;"));
  await raw.write(requests.join(""));
  assertEquals([...(await text).matchAll(/POST \/p (.*?);/g)].map(([, body]) => body), bodies);
});

Deno.test("a connection with many requests at the same time lets others have their turn", async () => {
  const REQUESTS = 200;
  let handled = 0;
  const others: number[] = [];
  await using served = serve(() => Promise.resolve(new Response(`${++handled};`)));
  using raw = await served.dial();
  const noteTurn = () => {
    others.push(handled);
    if (handled < REQUESTS) setImmediate(noteTurn);
  };
  noteTurn();
  await raw.write(GET.repeat(REQUESTS));
  await raw.read((text) => text.endsWith(`${REQUESTS};`));
  const steps = others.map((count, index) => count - (others[index - 1] ?? 0));
  assert(Math.max(...steps) < REQUESTS, `others had turns after ${steps} requests`);
});

Deno.test("HEAD tells the length that GET has", async () => {
  await using served = serve(() => Promise.resolve(new Response("OK")));
  using raw = await served.dial();
  await raw.write("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  assertMatch(await raw.read(), /^content-length: 2\r$[^]*\r\n\r\n$/im);
});

Deno.test("a request is read alike however its bytes are cut", async () => {
  await using served = serve();
  const request = "\r\nPOST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n" +
    "3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
  using raw = await served.dial();
  for (let cut = 1; cut < request.length; cut++) {
    await raw.write(request.slice(0, cut));
    // A turn of the event loop lets the first part arrive alone; the answer does not depend on it.
    await new Promise((resolve) => setImmediate(resolve));
    await raw.write(request.slice(cut));
    assertStringIncludes(await raw.read((text) => text.endsWith(";")), "POST /p abc0123456789;");
  }
});

const POST = "POST /p HTTP/1.1\r\nHost: a\r\n";
const REFUSED: readonly (readonly [name: string, request: string, status: number])[] = [
  ["no request line", "hello\r\n\r\n", 400],
  ["bytes of no text", "\x16\x03\x01\x00", 400],
  ["HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505],
  ["no Host", "GET / HTTP/1.1\r\n\r\n", 400],
  ["two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400],
  ["a Host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400],
  ["a Host with a path", "GET / HTTP/1.1\r\nHost: a/json?\r\n\r\n", 400],
  ["a Host with a user", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400],
  ["an asterisk", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["a bare line feed", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400],
  ["a folded header", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400],
  ["a space before the colon", `${POST}Content-Length : 5\r\n\r\nhello`, 400],
  ["a control character", "GET / HTTP/1.1\r\nHost: a\r\nX: a\x00\r\n\r\n", 400],
  ["two lengths", `${POST}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`, 400],
  ["a list of lengths", `${POST}Content-Length: 5, 5\r\n\r\nhello`, 400],
  ["a signed length", `${POST}Content-Length: +5\r\n\r\nhello`, 400],
  ["a length and chunks", `${POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
  ["chunks of HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400],
  ["another coding", `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 501],
  ["CONNECT", "CONNECT http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 501],
  ["a method in small letters", "trace / HTTP/1.1\r\nHost: a\r\n\r\n", 501],
  [
    "60,000 blanks before a control character",
    `GET / HTTP/1.1\r\nHost: a\r\nX:${" ".repeat(60_000)}\x01\r\n\r\n`,
    400,
  ],
  ["TRACE", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501],
  ["101 headers", `GET / HTTP/1.1\r\nHost: a\r\n${"X: a\r\n".repeat(100)}\r\n`, 431],
  ["a head of 65,537 bytes", `GET / HTTP/1.1\r\nHost: a\r\nX: ${"a".repeat(65_536)}`, 431],
];

for (const [name, request, status] of REFUSED) {
  Deno.test(`${name} is ${status}, the connection ends, and the port goes on`, async () => {
    let handled = 0;
    await using served = serve(() => Promise.resolve(new Response(`${++handled}`)));
    using raw = await served.dial();
    await raw.write(Uint8Array.from(`${request}`, (character) => character.charCodeAt(0)));
    const text = await raw.read();
    assertMatch(text, new RegExp(`^HTTP/1\\.1 ${status} [^]*^connection: close\r$`, "m"));
    const { requestId } = JSON.parse(text.split("\r\n\r\n")[1] ?? "") as { requestId: string };
    assertStringIncludes(text, `x-request-id: ${requestId}`);
    assertEquals(served.log.lines.map(({ fields }) => [fields.status, fields.requestId]), [[
      status,
      requestId,
    ]]);
    assertEquals([await (await fetch(served.url("/"))).text(), handled], ["1", 1]);
  });
}

const BAD_CHUNKS = [
  "x\r\n",
  "-1\r\n",
  "3\r\nabcd",
  "3\r\nabc\n0",
  "123456789\r\n",
  "0x3\r\nabc\r\n",
  "3 4\r\n",
  "0\r\nX: y\n\nGET / HTTP/1.1\nHost: a\r\n",
];

for (const chunks of BAD_CHUNKS) {
  Deno.test(`the chunks ${JSON.stringify(chunks)} break off the body, and the connection ends`, async () => {
    await using served = serve();
    using raw = await served.dial();
    await raw.write(`${POST}Transfer-Encoding: chunked\r\n\r\n${chunks}\r\n\r\n${GET}`);
    const text = await raw.read();
    assertMatch(text, /^connection: close\r$/m);
    assertEquals([text.split("HTTP/1.1 ").length, text.includes("broken off")], [2, true]);
  });
}

Deno.test("a client that waits for 100 Continue gets it when the body is read", async () => {
  await using served = serve();
  using raw = await served.dial();
  await raw.write(`${POST}Content-Length: 5\r\nExpect: 100-continue\r\n\r\n`);
  assertEquals(await raw.read((text) => text.endsWith("\r\n\r\n")), "HTTP/1.1 100 Continue\r\n\r\n");
  await raw.write("hello");
  assertStringIncludes(await raw.read((text) => text.endsWith(";")), "POST /p hello;");
});

Deno.test("an answer to a body that is not read arrives, and the connection ends", async () => {
  await using served = serve(() => Promise.resolve(new Response("too large", { status: 413 })));
  using raw = await served.dial();
  const body = new Uint8Array(1_048_576);
  await raw.write(`${POST}Content-Length: ${100 * body.length}\r\n\r\n`);
  // More than the buffers on the way hold.
  for (let part = 0; part < 8; part++) await raw.write(body);
  assertMatch(await raw.read(), /^HTTP\/1\.1 413 [^]*^connection: close\r$[^]*too large$/m);
  served.clock.advance(3_000);
});

Deno.test("a client that does not take its answers is closed after 30 s", async () => {
  let answered = 0;
  const handler = () => Promise.resolve(new Response(`${++answered}`.repeat(4_194_304)));
  await using served = serve(handler);
  using raw = await served.dial();
  await raw.write(GET.repeat(100));
  await until("the connection to be closed", () => {
    if (answered > 0) served.clock.advance(31_000);
    return served.listener.accepting.connections === 0 && answered > 0;
  });
  assert(answered < 100);
  // At the end of the stream the write that was cut has ended as well.
  await raw.read().catch(() => {});
});

Deno.test("the handler learns that its client has left", async () => {
  const left = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  await using served = serve((request) => {
    request.signal.addEventListener("abort", () => left.resolve());
    begun.resolve();
    return left.promise.then(() => new Response());
  });
  const raw = await served.dial();
  await raw.write(GET);
  await begun.promise;
  raw.close();
  await left.promise;
});

Deno.test("a connection that is left at the end of the grace is cut", async () => {
  await using served = serve();
  using raw = await served.dial();
  await raw.write(HALF);
  await (await fetch(served.url("/"))).text();
  const closed = served.listener.close(5_000);
  served.clock.advance(5_000);
  await until("the last answers to be awaited", () => served.clock.waiting > 1);
  served.clock.advance(250);
  await closed;
  assertEquals([await raw.ended(), served.clock.waiting], [true, 0]);
  assertEquals(served.log.lines.at(-1)?.message, "HTTP connections closed after the grace");
});

Deno.test("a connection beyond the limit takes the place of one that is between two requests", async () => {
  await using served = serve(echo, 2);
  const accepting = served.listener.accepting;
  using silent = await served.dial();
  using idle = await served.dial();
  await idle.write(GET);
  await idle.read((text) => text.endsWith(";"));
  using next = await served.dial();
  await next.write(GET);
  assertStringIncludes(await next.read((text) => text.endsWith(";")), "GET /a ;");
  assertEquals([await idle.ended(), accepting.connections, accepting.refused], [true, 2, 0]);
  await silent.write(GET);
  assertStringIncludes(await silent.read((text) => text.endsWith(";")), "GET /a ;");
});

Deno.test("connections beyond the limit are closed, which is logged once", async () => {
  const served = serve(echo, 2);
  const accepting = served.listener.accepting;
  const kept = [await served.dial(), await served.dial()];
  await until("both to be accepted", () => accepting.connections === 2);
  for (let attempt = 0; attempt < 3; attempt++) {
    using beyond = await served.dial();
    assertEquals(await beyond.ended(), true);
  }
  assertEquals([accepting.refused, served.log.lines.map(({ message }) => message)], [
    3,
    ["Connection limit reached; refusing connections"],
  ]);
  kept[0]?.close();
  await until("one to be gone", () => accepting.connections === 1);
  using next = await served.dial();
  await next.write(GET);
  assertStringIncludes(await next.read((text) => text.endsWith(";")), "GET /a ;");
  for (const raw of kept) raw.close();
  await served.listener.close(0);
  assertEquals(served.clock.waiting, 0);
});
