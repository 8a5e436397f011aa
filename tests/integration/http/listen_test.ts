import { assert, assertEquals, assertMatch, assertStringIncludes, assertThrows } from "#assert";
import { listenHttp } from "../../../src/http/listen.ts";
import { createRouter } from "../../../src/http/router.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import { Gate, listenOptions, LISTENS, ServedHttp } from "../../harness/http_fixture.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";

async function refusesConnections(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return false;
  } catch (error) {
    return error instanceof Deno.errors.ConnectionRefused;
  }
}

for (const [name, listen] of LISTENS) {
  Deno.test(`${name}: the bound address is told when port 0 was asked for`, async () => {
    await using served = new ServedHttp(() => () => Promise.resolve(new Response("here")), listen);
    assertEquals(served.listener.hostname, "127.0.0.1");
    assert(served.listener.port > 0);
    assertEquals(await (await fetch(served.url("/"))).text(), "here");
  });

  Deno.test(`${name}: a port can be shared`, async () => {
    await using first = new ServedHttp(() => () => Promise.resolve(new Response()), listen);
    const { port } = first.listener;
    const options = { ...listenOptions({ logger: first.log, clock: first.clock }), port };
    const second = listen(() => Promise.resolve(new Response()), options);
    assertEquals(second.port, port);
    await second.close(0);
  });

  Deno.test(`${name}: an address that is not ours cannot be listened on`, () => {
    const options = listenOptions({ logger: new RecordedLogger(), clock: new FakeClock() });
    const elsewhere = { ...options, hostname: "192.0.2.1" };
    const error = assertThrows(() => listen(() => Promise.resolve(new Response()), elsewhere));
    assertStringIncludes(error.message, `Cannot listen on "192.0.2.1:0": `);
  });

  Deno.test(`${name}: a handler that throws against its contract is 500 and logged`, async () => {
    await using served = new ServedHttp(() => () => Promise.reject(new Error("broken")), listen);
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

  Deno.test(`${name}: close stops accepting and lets a running request end`, async () => {
    const gate = new Gate();
    const served = new ServedHttp(() => gate.handler, listen);
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

  Deno.test(`${name}: a request that runs beyond the grace is answered with 503 and told to end`, async () => {
    const gate = new Gate();
    const served = new ServedHttp(() => gate.handler, listen);
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

  Deno.test(`${name}: close with no grace cuts every connection`, async () => {
    const gate = new Gate();
    const served = new ServedHttp(() => gate.handler, listen);
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

  Deno.test(`${name}: closing twice waits for the first`, async () => {
    const served = new ServedHttp(() => () => Promise.resolve(new Response()), listen);
    const first = served.listener.close(1_000);
    assert(served.listener.close(0) === first);
    await first;
    assert(served.listener.close(1_000) === first);
    assertEquals(served.clock.waiting, 0);
  });

  Deno.test(`${name}: a second close shortens the grace of the first and never prolongs it`, async () => {
    const gate = new Gate();
    const served = new ServedHttp(() => gate.handler, listen);
    const answer = fetch(served.url("/"));
    await until("the request to run", () => gate.waiting === 1);
    const closed = served.listener.close(30_000);
    served.listener.close(60_000);
    served.clock.advance(10_000);
    served.listener.close(5_000);
    served.clock.advance(4_999);
    // The HTTP port has a timer for its connections.
    assertEquals([gate.aborted, served.clock.waiting], [0, name === "HTTP port" ? 2 : 1]);
    served.clock.advance(1);
    const response = await answer;
    await response.body?.cancel();
    await closed;
    assertEquals([response.status, gate.aborted, served.clock.waiting], [503, 1, 0]);
    gate.open();
  });
}

Deno.test("debug port: a peer that never finishes its request does not hold up the end", async () => {
  const served = new ServedHttp(({ log, clock }) => createRouter([], { logger: log, clock }), listenHttp);
  const raw = await served.dial();
  await raw.write("POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
  assertMatch(await raw.read((text) => text.endsWith("not found\n")), /^HTTP\/1\.1 404 /);
  const closed = served.listener.close(5_000);
  served.clock.advance(5_000);
  await until("the last answers to be awaited", () => served.clock.waiting === 1);
  served.clock.advance(250);
  await closed;
  const { hostname, port } = served.listener;
  assertEquals(served.log.lines.at(-1), {
    level: "warning",
    message: "HTTP connections left open after the grace",
    fields: { hostname, port },
  });
  raw.close();
});
