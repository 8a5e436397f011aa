import { assert, assertEquals, assertRejects } from "#assert";
import type { Socket } from "node:net";
import { Client, Get, Post, RestError } from "../../../src/rest/mod.ts";
import { Cidrs } from "../../../src/net/outbound/address_ranges.ts";
import { SendError } from "../../../src/net/outbound/send_error.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { until } from "../../harness/until.ts";
import { failure, guarded, Loopback } from "./guarded_fetch_fixture.ts";
import { EchoServer } from "../../harness/rest_fixture.ts";
import { receiver, SECRET } from "../../harness/sender_fixture.ts";

const ONE = new Cidrs(["127.0.0.1/32"]);

Deno.test("of the addresses of a name only those that may be are dialled, in their order", async () => {
  await using server = await Loopback.start();
  const answers: string[][] = [
    ["10.0.0.1", "127.0.0.2", "127.0.0.1", "::1"],
    ["127.0.0.1"],
    ["127.0.0.2", "10.0.0.1"],
    ["127.0.0.1"],
    [],
  ];
  await using fetch = guarded({ allow: ONE, lookup: () => Promise.resolve(answers.shift() ?? []) });
  const url = `http://receiver.test:${server.port}/`;
  await (await fetch(url)).text();
  await (await fetch(url)).text();
  const error = await failure(() => fetch(url));
  assertEquals([error.kind, error.message], [
    "blocked_address",
    "the address 127.0.0.2 is loopback (127.0.0.0/8)",
  ]);
  await (await fetch(url)).text();
  assertEquals((await failure(() => fetch(url))).kind, "dns");
  assertEquals(server.seen.map(({ address }) => address), ["127.0.0.1", "127.0.0.1", "127.0.0.1"]);
  assertEquals(server.seen[0]?.request.headers.host, `receiver.test:${server.port}`);
});

/** Ways to write an address that is blocked, and what is dialled for them. */
const LITERALS: Readonly<Record<string, string>> = {
  "127.0.0.1": "127.0.0.1",
  "127.1": "127.0.0.1",
  "0x7f.1": "127.0.0.1",
  "0177.0.0.1": "127.0.0.1",
  "2130706433": "127.0.0.1",
  "127.0.0.1.": "127.0.0.1",
  "１２７.0.0.1": "127.0.0.1",
  "0": "0.0.0.0",
  "169.254.169.254": "169.254.169.254",
  "[::1]": "::1",
  "[::]": "::",
  "[::ffff:127.0.0.1]": "::ffff:7f00:1",
  "[64:ff9b::a9fe:a9fe]": "64:ff9b::a9fe:a9fe",
};

Deno.test("literal addresses are checked in every form, without a question to anybody", async () => {
  let asked = 0;
  const lookup = () => Promise.resolve([`127.0.0.${++asked}`]);
  await using fetch = guarded({ allow: new Cidrs(), lookup });
  await using server = await Loopback.start();
  for (const [host, address] of Object.entries(LITERALS)) {
    const error = await failure(() => fetch(`http://${host}:${server.port}/`));
    assertEquals(error.kind, "blocked_address", host);
    assertEquals(error.message.startsWith(`the address ${address} is `), true, `${host}: ${error.message}`);
  }
  assertEquals([asked, server.made], [0, 0]);
  await using open = guarded({ lookup });
  for (const host of ["127.1", "0x7f.1", "2130706433"]) {
    assertEquals(await (await open(`http://${host}:${server.port}/`)).text(), "ok");
  }
});

Deno.test("http may be kept to addresses that were opened", async () => {
  await using fetch = guarded({
    allow: ONE,
    isPlainInsideOnly: true,
    lookup: () => Promise.resolve(["8.8.8.8"]),
  });
  const error = await failure(() => fetch("http://receiver.test/"));
  assertEquals(error.message, "the address 8.8.8.8 is reached by https only");
  await using server = await Loopback.start();
  assertEquals((await fetch(`http://127.0.0.1:${server.port}/`)).status, 200);
});

Deno.test("a body goes with its length, and no header of the caller changes the framing", async () => {
  await using server = await Loopback.start();
  await using fetch = guarded();
  const url = `http://127.0.0.1:${server.port}/a/b?c=d`;
  const bodies = [new TextEncoder().encode("ä"), "ö", undefined];
  for (const body of bodies) {
    await fetch(url, { method: "POST", headers: { "x-a": "1" }, ...(body ? { body } : {}) });
  }
  await fetch(url);
  await fetch(new Request(url, { method: "PUT", body: "é", headers: { "x-a": "2" } }));
  assertEquals(
    server.seen.map(({ request: { method, url: path, headers }, body }) => [
      ...[method, path, body, headers["x-a"], headers["content-length"], headers["transfer-encoding"]],
      headers["connection"],
    ]),
    [
      ["POST", "/a/b?c=d", "ä", "1", "2", undefined, "close"],
      ["POST", "/a/b?c=d", "ö", "1", "2", undefined, "close"],
      ["POST", "/a/b?c=d", "", "1", "0", undefined, "close"],
      ["GET", "/a/b?c=d", "", undefined, undefined, undefined, "close"],
      ["PUT", "/a/b?c=d", "é", "2", "2", undefined, "close"],
    ],
  );
  for (const name of ["Host", "Content-Length", "transfer-encoding", "Connection", "Proxy-Authorization"]) {
    const error = await failure(() => fetch(url, { headers: { [name]: SECRET } }));
    assertEquals([error.kind, error.message], [
      "unsendable",
      `the header "${name.toLowerCase()}" cannot be set`,
    ]);
  }
  const stream = await failure(() => fetch(url, { method: "POST", body: new Blob(["a"]).stream() }));
  assertEquals(stream.kind, "unsendable");
  assertEquals((await failure(() => fetch("ftp://127.0.0.1/"))).kind, "unsendable");
  assertEquals(server.seen.length, 5);
});

/** A listener that accepts no connection: its queue is full. */
async function silentAddress(port: number) {
  const listener = Deno.listen({ hostname: "127.0.0.3", port, tcpBacklog: 1 });
  const queue: Deno.Conn[] = [];
  for (let count = 0; count < 2; count++) queue.push(await Deno.connect({ hostname: "127.0.0.3", port }));
  return {
    [Symbol.dispose]() {
      for (const connection of queue) connection.close();
      listener.close();
    },
  };
}

Deno.test("an address that is silent or refuses leaves time for the next, and all of it has an end", async () => {
  await using server = new EchoServer(() => new Response("ok"));
  using _silent = await silentAddress(server.port);
  const url = `http://receiver.test:${server.port}/`;
  await using fetch = guarded({
    lookup: () => Promise.resolve(["127.0.0.3", "127.0.0.2", "127.0.0.1"]),
    connectTimeoutMs: 600,
    clock: FakeClock.byTurns(),
  });
  const { body } = await new Client({ fetch }).send({ method: Get, baseURL: url });
  assertEquals(body, "ok");
  await using lonely = guarded({
    lookup: () => Promise.resolve(["127.0.0.3"]),
    connectTimeoutMs: 100,
    clock: FakeClock.byTurns(),
  });
  const silent = await failure(() => lonely(url));
  assertEquals([silent.kind, silent.message], [
    "timeout",
    `no connection to 127.0.0.3:${server.port} within 100 ms`,
  ]);
  const closed = freePort();
  const refused = await failure(() => fetch(`http://receiver.test:${closed}/`));
  assertEquals([refused.kind, refused.message], ["connect", `connection refused (127.0.0.3:${closed})`]);
});

Deno.test("a handshake has an end, and its connection with it", async () => {
  // The connection is in the queue of the listener, and the peer never speaks TLS.
  await using silent = await receiver(() => {});
  await using hurried = guarded({ connectTimeoutMs: 150, clock: FakeClock.byTurns() });
  const late = await failure(() => hurried(`https://127.0.0.1:${silent.port}/`));
  assertEquals([late.kind, late.message], ["timeout", "the TLS handshake was not done within 150 ms"]);
  await until("the connection to be closed", () => silent.open === 0);
});

Deno.test("a signal ends a request before it begins and while its name is looked up, with its reason", async () => {
  const reason = new Error("enough");
  await using server = await Loopback.start();
  const controller = new AbortController();
  const lookup = () => {
    controller.abort(reason);
    return Promise.resolve(["127.0.0.1"]);
  };
  await using fetch = guarded({ lookup });
  // The second time it is aborted already.
  for (let count = 0; count < 2; count++) {
    assertEquals(await assertRejects(() => fetch(`http://a.test:${server.port}/`, controller)), reason);
    await until("its connection to end", () => server.sockets.size === 0);
  }
  assertEquals(server.seen, []);
});

Deno.test("connections are used again, for a while and for the same host alone", async () => {
  const clock = new FakeClock();
  await using server = await Loopback.start();
  await using fetch = guarded({ isReusing: true, clock, lookup: () => Promise.resolve(["127.0.0.1"]) });
  const get = async (host: string) => await (await fetch(`http://${host}:${server.port}/`)).text();
  for (let count = 0; count < 3; count++) await get("a.test");
  assertEquals(server.made, 1);
  await get("b.test");
  assertEquals([server.made, server.sockets.size], [2, 2]);
  clock.advance(3_999);
  await get("a.test");
  clock.advance(1);
  await until("the other to be closed", () => server.sockets.size === 1);
  for (let passed = 0; passed < 57; passed += 3) {
    clock.advance(3_000);
    await get("a.test");
  }
  await until("the old one to be closed", () => server.sockets.size === 0);
  assertEquals(server.made, 2);
  await get("a.test");
  assertEquals(server.made, 3);
  clock.advance(4_000);
  await until("the last one to be closed", () => server.sockets.size === 0);
  assertEquals(clock.waiting, 0);
});

Deno.test("a body that is given up ends its connection; one that is read gives it back", async () => {
  await using server = await Loopback.start((_, response) => response.end("x".repeat(1_000_000)));
  await using fetch = guarded({ isReusing: true });
  const url = `http://127.0.0.1:${server.port}/`;
  await (await fetch(url)).body?.cancel();
  await until("it to be closed", () => server.sockets.size === 0);
  assertEquals((await (await fetch(url)).text()).length, 1_000_000);
  assertEquals((await (await fetch(url)).text()).length, 1_000_000);
  assertEquals(server.made, 2);
});

Deno.test("a body that no response can have is not waited for", async () => {
  await using server = await receiver((socket) => socket.write("HTTP/1.1 205 Reset\r\n\r\nendless"));
  await using fetch = guarded({ isReusing: true });
  const response = await fetch(server.origin);
  assertEquals([response.status, response.body], [205, null]);
  await until("its connection to end", () => server.open === 0);
});

Deno.test("a connection that breaks at its next request is a failure: nothing is ever sent twice", async () => {
  // Each connection answers once and breaks at the next request.
  const answered = new WeakSet<Socket>();
  await using server = await Loopback.start(({ socket }, response) => {
    if (answered.has(socket)) return void socket.resetAndDestroy();
    answered.add(socket);
    response.end("ok");
  });
  await using fetch = guarded({ isReusing: true });
  const url = `http://127.0.0.1:${server.port}/`;
  const post = async (body: string) => await (await fetch(url, { method: "POST", body })).text();
  assertEquals(await post("a"), "ok");
  const error = await failure(() => post("b"));
  assertEquals([error.kind, error.message], [
    "reset",
    "the connection closed before a response arrived (ECONNRESET)",
  ]);
  assertEquals(await post("c"), "ok");
  assertEquals([server.seen.map(({ body }) => body), server.made], [["a", "b", "c"], 2]);
  await using broken = await receiver((socket) => socket.resetAndDestroy());
  assertEquals((await failure(() => fetch(broken.origin))).kind, "reset");
  assertEquals(broken.accepted, 1);
});

Deno.test("where connections are not used again, each request has its own", async () => {
  await using server = await Loopback.start();
  await using fetch = guarded();
  for (let count = 0; count < 3; count++) await (await fetch(`http://127.0.0.1:${server.port}/`)).text();
  assertEquals([server.made, server.seen.length], [3, 3]);
});

Deno.test("the client library tells what the guarded fetch says", async () => {
  await using fetch = guarded({ allow: new Cidrs() });
  const client = new Client({ fetch });
  const sent = client.send({ method: Get, baseURL: `http://127.0.0.1/?${SECRET}` });
  const error = await assertRejects(() => sent);
  assert(error instanceof RestError && error.cause instanceof SendError);
  assertEquals([error.code, error.cause.kind, error.message.includes(SECRET)], [
    "network",
    "blocked_address",
    false,
  ]);
  await using server = await Loopback.start((_, response) =>
    response.writeHead(201, { "x-a": "1" }).end("made")
  );
  await using open = guarded();
  const { statusCode, body, headers } = await new Client({ fetch: open }).send({
    method: Post,
    baseURL: `http://127.0.0.1:${server.port}/`,
    body: "{}",
  });
  assertEquals([statusCode, body, headers["x-a"]], [201, "made", ["1"]]);
});
