import { assertEquals } from "#assert";
import type { Socket } from "node:net";
import type { GuardedClientOptions } from "../../../src/net/outbound/client.ts";
import { SendError } from "../../../src/net/outbound/send_error.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { needing } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { receiver } from "../../harness/sender_fixture.ts";
import { guarded, tlsReceiver } from "./guarded_fetch_fixture.ts";

/** A fetch that keeps connections, and what comes of a request. */
function opened(options: Partial<GuardedClientOptions> = {}) {
  const fetch = guarded({ isReusing: true, ...options });
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

const writes = (text: string) => (socket: Socket) => void socket.write(text);
const ends = (text: string) => (socket: Socket) => void socket.end(text);
const withHeader = (header: string) => writes(OK.replace("\r\n\r\n", `\r\n${header}\r\n\r\n`));

/** The reaction of a receiver to the first request, and the number of connections that two requests take. */
const KEPT: Readonly<Record<string, readonly [act: (socket: Socket) => void, heard: string, made: number]>> =
  {
    "an answer with its length": [writes(OK), "200 ok", 1],
    "chunks": [
      writes("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
      "200 ok",
      1,
    ],
    "no body": [writes("HTTP/1.1 204 No\r\n\r\n"), "204 ", 1],
    "no body, and a length of one": [writes("HTTP/1.1 204 No\r\ncontent-length: 2\r\n\r\n"), "204 ", 2],
    "its word that it closes": [withHeader("connection: close"), "200 ok", 2],
    "its word that it closes within a second": [withHeader("keep-alive: timeout=1, max=9"), "200 ok", 2],
    "its word that it closes within five seconds": [withHeader("keep-alive: timeout=5, max=9"), "200 ok", 1],
    "HTTP/1.0": [writes(OK.replace("1.1", "1.0")), "200 ok", 2],
    "an end": [ends(OK), "200 ok", 2],
    "an answer without a length": [ends("HTTP/1.1 200 OK\r\n\r\nok"), "200 ok", 2],
    "more than its answer": [writes(`${OK}HTTP/1.1 500`), "200 ok", 2],
    "a second answer": [
      (socket) => socket.write(OK, () => setTimeout(() => socket.write(OK), 5)),
      "200 ok",
      2,
    ],
    "a cut": [ends(OK.slice(0, -1)), "200 oreset", 2],
    "a reset": [(socket) => socket.resetAndDestroy(), "reset", 2],
    "another protocol": [writes("hello\r\n"), "protocol", 2],
    "no final answer": [writes("HTTP/1.1 101 Go\r\n\r\n"), "status", 2],
  };

for (const [name, [act, heard, made]] of Object.entries(KEPT)) {
  Deno.test(`a connection is used again only where that is safe: ${name}`, async () => {
    let requests = 0;
    await using server = await receiver((socket) => ++requests > 1 ? socket.write(OK) : act(socket));
    await using opening = opened();
    assertEquals(await opening.post(server.origin), heard);
    if (made > 1) await until("the connection to be closed", () => server.open === 0);
    assertEquals(await opening.post(server.origin), "200 ok");
    assertEquals([requests, server.accepted], [2, made]);
  });
}

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

Deno.test("many requests at the same time have a connection each, and all come to their own answer", async () => {
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

needing("openssl").test("a connection with TLS is used again as well", async () => {
  await using certificates = await makeCertificates();
  const { server: pair, authority } = certificates;
  await using server = await tlsReceiver(pair, (response, body) => response.end(`${body.length} bytes`));
  await using opening = opened({ authorities: [await Deno.readTextFile(authority.certFile)] });
  for (const length of [1, 200_000, 2]) {
    const heard = await opening.post(`https://127.0.0.1:${server.port}/`, { body: "x".repeat(length) });
    assertEquals(heard, `200 ${length} bytes`);
  }
  assertEquals(server.handshakes, 1);
});
