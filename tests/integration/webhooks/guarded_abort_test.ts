import { assert, assertEquals, assertRejects } from "#assert";
import type { Socket } from "node:net";
import { FakeClock } from "../../harness/fake_clock.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { eventually, until } from "../../harness/until.ts";
import { guarded } from "./guarded_fetch_fixture.ts";
import { receiver } from "../../harness/sender_fixture.ts";

const HEAD = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";

/** The behavior of a server until a request to it is given up; the scheme of that request. */
const MOMENTS: Readonly<Record<string, readonly [scheme: string, act: (socket: Socket) => void]>> = {
  "no answer": ["http", () => {}],
  "a part of a head": ["http", (socket) => socket.write("HTTP/1.1 200 O")],
  "an answer before the answer": ["http", (socket) => socket.write("HTTP/1.1 100 Continue\r\n\r\n")],
  "a head": ["http", (socket) => socket.write(HEAD)],
  "a part of a body": ["http", (socket) => socket.write(`${HEAD}part`)],
  "no handshake": ["https", () => {}],
};

for (const [name, [scheme, act]] of Object.entries(MOMENTS)) {
  Deno.test(`a request that is given up leaves no connection and no timer: ${name}`, async () => {
    await using server = await receiver(act);
    const clock = new FakeClock();
    await using fetch = guarded({ clock, isReusing: true });
    const controller = new AbortController();
    const sent = fetch(`${scheme}://127.0.0.1:${server.port}/`, {
      method: "POST",
      body: "x",
      signal: controller.signal,
    }).then((response) => response.text());
    const failed = assertRejects(() => sent);
    await until("the connection", () => server.open === 1);
    controller.abort();
    await failed;
    await until("the connection to be closed", () => server.open === 0);
    assertEquals(clock.waiting, 0);
  });
}

for (const answer of ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r\n"]) {
  Deno.test(`a way through a proxy that is given up leaves nothing: ${JSON.stringify(answer)}`, async () => {
    let isAsked = false;
    await using proxy = await receiver((socket) => {
      isAsked = true;
      socket.write(answer);
    });
    const clock = new FakeClock();
    await using fetch = guarded({ clock, proxy: new URL(proxy.origin) });
    const controller = new AbortController();
    const failed = assertRejects(() => fetch("https://receiver.test/", controller));
    await until("the proxy to be asked", () => isAsked);
    controller.abort();
    await failed;
    await until("the connection to be closed", () => proxy.open === 0);
    await until("its timer to be gone", () => clock.waiting === 0);
  });
}

Deno.test("a connection that no request waits for any more is not made", async () => {
  await using server = await receiver(() => {});
  const controller = new AbortController();
  const found = Promise.withResolvers<readonly string[]>();
  const clock = new FakeClock();
  await using fetch = guarded({ clock, lookup: () => found.promise });
  const failed = assertRejects(() => fetch(`http://receiver.test:${server.port}/`, controller));
  await until("the name to be looked up", () => clock.waiting === 1);
  controller.abort();
  await failed;
  found.resolve(["127.0.0.1", "127.0.0.1"]);
  await eventually([0, 0], () => [clock.waiting, server.accepted]);
});

Deno.test("one that is silent while it is given up leaves its addresses alone", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.3", port: 0, tcpBacklog: 1 });
  const { port } = listener.addr as Deno.NetAddr;
  const queue: Deno.Conn[] = [];
  for (let count = 0; count < 2; count++) queue.push(await Deno.connect({ hostname: "127.0.0.3", port }));
  const clock = new FakeClock();
  await using fetch = guarded({ clock, lookup: () => Promise.resolve(["127.0.0.3", "127.0.0.3"]) });
  const controller = new AbortController();
  const failed = assertRejects(() => fetch(`http://receiver.test:${port}/`, controller));
  await until("it to be dialled", () => dialled(port) === 1);
  controller.abort();
  await failed;
  await until("nothing to be dialled", () => dialled(port) === 0);
  await until("its timer to be gone", () => clock.waiting === 0);
  for (const connection of queue) connection.close();
  listener.close();
});

/** The number of connections to a port of this machine that are begun and not answered. */
function dialled(port: number): number {
  const begun = new RegExp(` [\\dA-F]{8}:${port.toString(16).toUpperCase().padStart(4, "0")} 02 `, "g");
  return Deno.readTextFileSync("/proc/self/net/tcp").match(begun)?.length ?? 0;
}

Deno.test("what was sent to a server that does not read it is not kept once it is given up", async () => {
  const left = Promise.withResolvers<Socket>();
  await using server = await receiver((socket) => left.resolve(socket.pause()));
  await using fetch = guarded({ isReusing: true });
  const controller = new AbortController();
  const failed = assertRejects(() =>
    fetch(server.origin, { method: "POST", body: new Uint8Array(10_000_000), signal: controller.signal })
  );
  const socket = await left.promise;
  controller.abort();
  await failed;
  // It reads on, and finds a reset before the end of the request.
  let code: unknown;
  socket.on("error", (error) => code = "code" in error ? error.code : error);
  socket.resume();
  await until("the connection to be closed", () => server.open === 0);
  assertEquals(code, "ECONNRESET");
});

function silent(): void {}

/** Ways to answer with a text; each leaves the connection as another. */
const WAYS: readonly ((socket: Socket, text: string) => void)[] = [
  (socket, text) => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`),
  (socket, text) => {
    for (
      const letter of `HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n`
    ) {
      socket.write(letter);
    }
    setTimeout(() => socket.write(text), 1);
  },
  (socket, text) => {
    socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    for (const letter of text) socket.write(`1;a=b\r\n${letter}\r\n`);
    socket.write("0\r\nx-t: 1\r\n\r\n");
  },
  (socket, text) => socket.end(`HTTP/1.0 200 OK\r\n\r\n${text}`),
  (socket, text) => socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length + 1}\r\n\r\n${text}`),
  (socket, text) =>
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}HTTP/1.1 2`),
  (socket, text) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`);
    setTimeout(() => socket.resetAndDestroy(), 2);
  },
  (socket) => socket.resetAndDestroy(),
  silent,
];

Deno.test("among servers of every kind and requests given up at any moment no answer comes to another request", async () => {
  const random = seededRandom(11);
  const repeated = new Set<string>();
  const asked = new Set<string>();
  await using server = await receiver((socket, head) => {
    const path = /^POST \/(\S+) /.exec(head)?.[1] ?? "";
    if (asked.has(path)) repeated.add(path);
    asked.add(path);
    WAYS[Number(path.split("-")[1])]?.(socket, path);
  });
  const outcomes = { right: 0, failed: 0, wrong: [] as string[] };
  {
    await using fetch = guarded({ isReusing: true });
    const one = async (path: string, afterMs: number) => {
      const controller = new AbortController();
      const timer = setTimeout(() => controller.abort(), afterMs);
      try {
        const init = { method: "POST", body: "x", signal: controller.signal };
        const text = await (await fetch(`${server.origin}/${path}`, init)).text();
        if (text === path) outcomes.right++;
        else outcomes.wrong.push(`${path}: ${text}`);
      } catch {
        outcomes.failed++;
      } finally {
        clearTimeout(timer);
      }
    };
    for (let round = 0; round < 20; round++) {
      await Promise.all(Array.from({ length: 20 }, async (_, index) => {
        // The first three ways keep their connection.
        const way = Math.floor(random() * (random() < 0.6 ? 3 : WAYS.length));
        const lastMs = WAYS[way] === silent ? 20 : 60_000;
        await one(`${round}.${index}-${way}`, random() < 0.2 ? random() * 4 : lastMs);
      }));
    }
  }
  await until("all connections to be closed", () => server.open === 0);
  assertEquals([outcomes.wrong, [...repeated]], [[], []]);
  assertEquals(outcomes.right + outcomes.failed, 400);
  assert(outcomes.right > 200 && server.accepted < 400, Deno.inspect([outcomes, server.accepted]));
});
