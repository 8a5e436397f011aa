import { assert, assertEquals, assertStringIncludes, assertThrows } from "#assert";
import { listenHttp } from "../../../src/http/server/http_port.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import { Gate, listenOptions, ServedHttp } from "../../harness/http_fixture.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";

async function refusesConnections(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return false;
  } catch (error) {
    return error instanceof Deno.errors.ConnectionRefused;
  }
}

Deno.test("the bound address is reported when port 0 was asked for", async () => {
  await using served = new ServedHttp(() => () => Promise.resolve(new Response("here")), { isTimed: true });
  assertEquals(served.listener.hostname, "127.0.0.1");
  assert(served.listener.port > 0);
  assertEquals(await (await fetch(served.url("/"))).text(), "here");
});

Deno.test("a port can be shared", async () => {
  await using first = new ServedHttp(() => () => Promise.resolve(new Response()), { isTimed: true });
  const { port } = first.listener;
  const options = { ...listenOptions({ logger: first.log, clock: first.clock }), port };
  const second = listenHttp(() => Promise.resolve(new Response()), options);
  assertEquals(second.port, port);
  await second.close(0);
});

Deno.test("an address that is not ours cannot be listened on", () => {
  const options = listenOptions({ logger: new RecordedLogger(), clock: new FakeClock() });
  const elsewhere = { ...options, hostname: "192.0.2.1" };
  const error = assertThrows(() => listenHttp(() => Promise.resolve(new Response()), elsewhere));
  assertStringIncludes(error.message, `Cannot listen on "192.0.2.1:0": `);
});

Deno.test("a handler that throws against its contract is 500 and logged", async () => {
  await using served = new ServedHttp(() => () => Promise.reject(new Error("broken")), { isTimed: true });
  const response = await fetch(served.url("/"), { headers: { "x-request-id": "mine" } });
  assertEquals(await response.json() as unknown, {
    type: "about:blank",
    title: "Internal Server Error",
    status: 500,
    detail: "internal error",
    reason: "internal error",
    requestId: "mine",
  });
  assertEquals([response.status, response.headers.get("content-type")], [500, "application/problem+json"]);
  assertEquals(response.headers.get("x-request-id"), "mine");
  assertEquals(served.log.lines, [
    {
      level: "error",
      message: "HTTP request failed",
      fields: { requestId: "mine", error: new Error("broken") },
    },
  ]);
});

Deno.test("close stops accepting and lets a running request end", async () => {
  const gate = new Gate();
  const served = new ServedHttp(() => gate.handler, { isTimed: true });
  using idle = await served.dial();
  const answer = fetch(served.url("/"));
  await until("the request to run", () => gate.waiting === 1);
  const closed = served.listener.close(5_000);
  await until("the port to be closed", () => refusesConnections(served.listener.port));
  gate.open();
  const response = await answer;
  assertEquals([await response.text(), response.headers.get("connection")], ["done", "close"]);
  await closed;
  assertEquals([await idle.read(), served.clock.waiting, gate.aborted], ["", 0, 0]);
});

Deno.test("a request that runs beyond the grace is answered with 503 and told to end", async () => {
  const gate = new Gate();
  const served = new ServedHttp(() => gate.handler, { isTimed: true });
  const answer = fetch(served.url("/"), { headers: { "x-request-id": "mine" } });
  await until("the request to run", () => gate.waiting === 1);
  const closed = served.listener.close(5_000);
  served.clock.advance(4_999);
  assertEquals(gate.aborted, 0);
  served.clock.advance(1);
  const response = await answer;
  assertEquals([response.status, response.headers.get("x-request-id")], [503, "mine"]);
  assertEquals(await response.json() as unknown, {
    type: "about:blank",
    title: "Service Unavailable",
    status: 503,
    detail: "the service is shutting down",
    reason: "the service is shutting down",
    requestId: "mine",
  });
  await closed;
  assertEquals([gate.aborted, served.clock.waiting, served.log.lines], [1, 0, []]);
  gate.open();
});

Deno.test("close with no grace cuts every connection", async () => {
  const gate = new Gate();
  const served = new ServedHttp(() => gate.handler, { isTimed: true });
  using running = await served.dial();
  await running.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  using half = await served.dial();
  await half.write("GET / HT");
  await until("the request to run", () => gate.waiting === 1);
  await served.listener.close(0);
  await until("the port to be closed", () => refusesConnections(served.listener.port));
  assertEquals([await running.ended(), await half.ended()], [true, true]);
  assertEquals([gate.aborted, served.clock.waiting], [1, 0]);
  gate.open();
});

Deno.test("closing twice waits for the first", async () => {
  const served = new ServedHttp(() => () => Promise.resolve(new Response()), { isTimed: true });
  const first = served.listener.close(1_000);
  assert(served.listener.close(0) === first);
  await first;
  assert(served.listener.close(1_000) === first);
  assertEquals(served.clock.waiting, 0);
});

Deno.test("a second close shortens the grace of the first and never renews it", async () => {
  const gate = new Gate();
  const served = new ServedHttp(() => gate.handler, { isTimed: true });
  const answer = fetch(served.url("/"));
  await until("the request to run", () => gate.waiting === 1);
  const closed = served.listener.close(30_000);
  served.listener.close(60_000);
  served.clock.advance(10_000);
  served.listener.close(5_000);
  served.clock.advance(4_999);
  // One is for the timeouts of connections.
  assertEquals([gate.aborted, served.clock.waiting], [0, 2]);
  served.clock.advance(1);
  const response = await answer;
  await response.body?.cancel();
  await closed;
  assertEquals([response.status, gate.aborted, served.clock.waiting], [503, 1, 0]);
  gate.open();
});

Deno.test("a body that is sent in parts: chunks over HTTP/1.1, the end of the connection over HTTP/1.0", async () => {
  const parts = ["one", "", "two"];
  const headers = { "transfer-encoding": "chunked" };
  const body = () =>
    new ReadableStream({
      start(controller) {
        for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
        controller.close();
      },
    });
  await using served = new ServedHttp(() => () => Promise.resolve(new Response(body(), { headers })));
  using raw = await served.dial();
  const request = (version: string) => `GET / HTTP/${version}\r\nHost: a\r\n\r\n`;
  await raw.write(request("1.1"));
  const chunked = await raw.read((text) => text.endsWith("\r\n\r\n") && text.includes("two"));
  await raw.write(request("1.0"));
  const plain = await raw.read();
  assertEquals([chunked, plain].map((text) => text.slice(text.indexOf("\r\n\r\n") + 4)), [
    "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n",
    "onetwo",
  ]);
  const names = [/^transfer-encoding: chunked\r$/m, /^content-length/m, /^connection: close\r$/m];
  assertEquals([chunked, plain].map((text) => names.map((name) => name.test(text))), [
    [true, false, false],
    [false, false, true],
  ]);
});

Deno.test("a body that breaks off ends its connection, and one whose client reads nothing is closed after 30 s", async () => {
  const headers = { "transfer-encoding": "chunked" };
  const piece = new Uint8Array(1_000_000);
  await using served = new ServedHttp(() => (request) => {
    const isBroken = new URL(request.url).pathname === "/broken";
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) =>
      isBroken ? controller.error(new Error("no more")) : controller.enqueue(piece);
    return Promise.resolve(new Response(new ReadableStream({ pull }), { headers }));
  }, { isTimed: true });
  using broken = await served.dial();
  await broken.write("GET /broken HTTP/1.1\r\nHost: a\r\n\r\n");
  assertStringIncludes(await broken.read(), "HTTP/1.1 200 OK");
  using slow = await served.dial();
  await slow.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await until("the connection to be closed", () => {
    served.clock.advance(31_000);
    return served.listener.accepting.connections === 0;
  });
});
