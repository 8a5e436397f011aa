import { assertEquals } from "@std/assert";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { GuardedClientOptions } from "../../../src/webhooks/outbound/client.ts";
import { createGuardedFetch } from "../../../src/webhooks/outbound/fetch.ts";
import { SendError } from "../../../src/webhooks/outbound/send_error.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { LOOPBACK, receiver } from "../../harness/sender_fixture.ts";

/** A fetch that keeps connections, and what comes of a request; no time passes for it. */
function opened(options: Partial<GuardedClientOptions> = {}) {
  const fetch = createGuardedFetch({
    ...{ allow: LOOPBACK, connectTimeoutMs: 2_000, clock: new FakeClock(), isReusing: true },
    ...options,
  });
  const post = async (origin: string, { body = "x", method = "POST" } = {}) => {
    let heard = "";
    try {
      const response = await fetch(origin, { method, body });
      heard = `${response.status} `;
      for await (const piece of response.body ?? []) heard += new TextDecoder().decode(piece);
    } catch (error) {
      heard += error instanceof SendError ? error.kind : String(error);
    }
    return heard;
  };
  return { fetch, post, [Symbol.asyncDispose]: () => fetch.close() };
}

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/** What a receiver does to the first request, and how many connections two requests take. */
const KEPT: Readonly<Record<string, readonly [act: (socket: Socket) => void, heard: string, made: number]>> =
  {
    "an answer with its length": [(socket) => socket.write(OK), "200 ok", 1],
    "chunks": [
      (socket) => socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
      "200 ok",
      1,
    ],
    "no body": [(socket) => socket.write("HTTP/1.1 204 No\r\n\r\n"), "204 ", 1],
    "no body, and a length of one": [
      (socket) => socket.write("HTTP/1.1 204 No\r\ncontent-length: 2\r\n\r\n"),
      "204 ",
      2,
    ],
    "its word that it closes": [
      (socket) => socket.write(OK.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")),
      "200 ok",
      2,
    ],
    "its word that it closes within a second": [
      (socket) => socket.write(OK.replace("\r\n\r\n", "\r\nkeep-alive: timeout=1, max=9\r\n\r\n")),
      "200 ok",
      2,
    ],
    "its word that it closes within five seconds": [
      (socket) => socket.write(OK.replace("\r\n\r\n", "\r\nkeep-alive: timeout=5, max=9\r\n\r\n")),
      "200 ok",
      1,
    ],
    "HTTP/1.0": [(socket) => socket.write(OK.replace("1.1", "1.0")), "200 ok", 2],
    "an end": [(socket) => socket.end(OK), "200 ok", 2],
    "an answer without a length": [(socket) => socket.end("HTTP/1.1 200 OK\r\n\r\nok"), "200 ok", 2],
    "more than its answer": [(socket) => socket.write(`${OK}HTTP/1.1 500`), "200 ok", 2],
    "a second answer": [
      (socket) => socket.write(OK, () => setTimeout(() => socket.write(OK), 5)),
      "200 ok",
      2,
    ],
    "a cut": [(socket) => socket.end(OK.slice(0, -1)), "200 oreset", 2],
    "a reset": [(socket) => socket.resetAndDestroy(), "reset", 2],
    "another protocol": [(socket) => socket.write("hello\r\n"), "protocol", 2],
    "no final answer": [(socket) => socket.write("HTTP/1.1 101 Go\r\n\r\n"), "status", 2],
  };

for (const [name, [act, heard, made]] of Object.entries(KEPT)) {
  Deno.test(`a connection is used again only where that is safe: ${name}`, async () => {
    let requests = 0;
    let isLate = false;
    await using server = await receiver((socket) => {
      if (++requests > 1) return void socket.write(OK);
      act(socket);
      setTimeout(() => isLate = true, 25);
    });
    await using opening = opened();
    assertEquals(await opening.post(server.origin), heard);
    // What comes late has come.
    await until("a moment to pass", () => isLate);
    if (made === 1) assertEquals(server.open, 1);
    else await until("the connection to be closed", () => server.open === 0);
    assertEquals(await opening.post(server.origin), "200 ok");
    assertEquals([requests, server.accepted], [2, made]);
  });
}

Deno.test("a request that breaks on a connection that was kept is not sent again", async () => {
  let requests = 0;
  await using server = await receiver((socket) => {
    if (++requests === 1) socket.write(OK);
    else socket.resetAndDestroy();
  });
  await using opening = opened();
  assertEquals(await opening.post(server.origin), "200 ok");
  assertEquals(await opening.post(server.origin), "reset");
  assertEquals([requests, server.accepted], [2, 1]);
});

Deno.test("an answer that comes before its request has left ends the connection", async () => {
  // It answers at the head and reads no further.
  await using server = await receiver((socket) => {
    socket.pause();
    socket.write("HTTP/1.1 413 Large\r\ncontent-length: 0\r\n\r\n");
  });
  await using opening = opened();
  const body = "x".repeat(20_000_000);
  assertEquals(await opening.post(server.origin, { body }), "413 ");
  assertEquals(await opening.post(server.origin, { body }), "413 ");
  assertEquals(server.accepted, 2);
});

Deno.test("many requests at once have a connection each, and all come to their own answer", async () => {
  await using server = await receiver((socket, head) => {
    const path = /^POST \/(\d+) /.exec(head)?.[1] ?? "";
    const text = `HTTP/1.1 200 OK\r\ncontent-length: ${path.length}\r\n\r\n${path}`;
    for (const letter of text) socket.write(letter);
  });
  await using opening = opened();
  for (let round = 0; round < 3; round++) {
    const paths = Array.from({ length: 40 }, (_, index) => `${round}${index}`);
    assertEquals(
      await Promise.all(paths.map((path) => opening.post(`${server.origin}/${path}`))),
      paths.map((path) => `200 ${path}`),
    );
  }
  assertEquals(server.accepted, 40);
});

Deno.test("nothing is sent once it is closed, and what is on its way ends", async () => {
  await using server = await receiver(() => {});
  const opening = opened();
  const sent = opening.post(server.origin);
  await until("it to arrive", () => server.open === 1);
  await opening.fetch.close();
  assertEquals([await sent, await opening.post(server.origin)], ["reset", "interrupted"]);
  await until("its connection to be closed", () => server.open === 0);
});

Deno.test({
  ...needs(["openssl"], "a connection with TLS is used again as well"),
  async fn() {
    await using certificates = await makeCertificates();
    const { server: pair, authority } = certificates;
    let made = 0;
    const server = createTlsServer({
      key: await Deno.readTextFile(pair.keyFile),
      cert: await Deno.readTextFile(pair.certFile),
    }, (request, response) => {
      let body = "";
      request.on("data", (piece) => body += piece);
      request.on("end", () => response.end(`${body.length} bytes`));
    });
    server.on("tlsClientError", () => {});
    server.on("secureConnection", () => made++);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    {
      await using opening = opened({ authorities: [await Deno.readTextFile(authority.certFile)] });
      for (const length of [1, 200_000, 2]) {
        const heard = await opening.post(`https://127.0.0.1:${port}/`, { body: "x".repeat(length) });
        assertEquals(heard, `200 ${length} bytes`);
      }
    }
    assertEquals(made, 1);
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  },
});
