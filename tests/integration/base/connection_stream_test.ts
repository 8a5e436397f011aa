import { assertEquals } from "#assert";
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { join } from "node:path";
import { streamsOf } from "../../../src/net/acceptor.ts";
import { ConnectionStream } from "../../../src/net/connection_stream.ts";

/** A stream and the connection that its peer has. */
async function connected(
  run: (stream: ConnectionStream, peer: Deno.UnixConn) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  try {
    const path = join(folder, "a.sock");
    using listener = Deno.listen({ transport: "unix", path });
    const [accepted, peer] = await Promise.all([
      listener.accept(),
      Deno.connect({ transport: "unix", path }),
    ]);
    await run(new ConnectionStream(accepted), peer);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** All that comes until the end. */
async function readAll(peer: Deno.UnixConn): Promise<Uint8Array> {
  return new Uint8Array(await new Response(peer.readable).arrayBuffer());
}

const BYTES = new Uint8Array(3_000_000).map((_, index) => (index * 31) % 251);

Deno.test("connection stream: what is written comes whole and in order, however much waits", () =>
  connected(async (stream, peer) => {
    for (let from = 0; from < BYTES.length; from += 70_001) {
      stream.write(BYTES.subarray(from, from + 70_001));
    }
    stream.end();
    stream.resume();
    assertEquals(Buffer.compare(await readAll(peer), BYTES), 0);
    if (!stream.closed) await once(stream, "close");
  }));

Deno.test("connection stream: what comes is read whole and in order, with pauses in between", () =>
  connected(async (stream, peer) => {
    const parts: Uint8Array[] = [];
    stream.on("data", (part: Uint8Array) => {
      parts.push(part);
      stream.pause();
      setImmediate(() => stream.resume());
    });
    const closed = once(stream, "close");
    await new Response(BYTES).body?.pipeTo(peer.writable);
    await closed;
    assertEquals(Buffer.compare(Buffer.concat(parts), BYTES), 0);
  }));

Deno.test("connection stream: one that is closed while it reads is closed for its peer, without an error", () =>
  connected(async (stream, peer) => {
    const errors: unknown[] = [];
    stream.on("error", (error) => errors.push(error));
    stream.on("data", () => {});
    const closed = once(stream, "close");
    await peer.write(new Uint8Array(1));
    await once(stream, "data");
    stream.destroy();
    stream.destroy();
    await closed;
    assertEquals([errors, (await readAll(peer)).length], [[], 0]);
  }));

Deno.test("connection stream: what is written to a peer that is gone is an error, and closes", () =>
  connected(async (stream, peer) => {
    const closed = new Promise<void>((resolve) => stream.on("close", resolve));
    const failed = once(stream, "error");
    peer.close();
    // Nothing is read, so only writing tells.
    stream.write(BYTES);
    const [error] = await failed;
    assertEquals(error instanceof Deno.errors.BrokenPipe, true, String(error));
    await closed;
  }));

Deno.test("streams of a listener: a peer that is gone before it is accepted is passed over", async () => {
  using real = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const peer = await Deno.connect({ hostname: "127.0.0.1", port: real.addr.port });
  const fails = [new Deno.errors.NotConnected("gone"), new Deno.errors.ConnectionReset("gone")];
  const listener = {
    accept: () => {
      const error = fails.shift();
      return error === undefined ? real.accept() : Promise.reject(error);
    },
    close: () => {},
  } as unknown as Deno.TcpListener;
  const stream = await streamsOf(listener).accept();
  assertEquals([stream.destroyed, fails.length], [false, 0]);
  stream.destroy();
  peer.close();
});
