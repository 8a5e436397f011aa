import { assertEquals, assertRejects } from "#assert";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { connectUnix } from "../../../src/net/unix_socket.ts";

const CONNECTIONS = 1_000;

Deno.test("unix socket: its descriptor is closed once, and no file that another thread opens meanwhile", async () => {
  const path = join(await Deno.makeTempDir({ prefix: "weir_" }), "closing.sock");
  const listener = Deno.listen({ transport: "unix", path });
  const accepting = closeEach(listener);
  const writer = new Worker(new URL("./file_writer.ts", import.meta.url), { type: "module" });
  const errors: unknown[] = [];
  const isWriting = new Promise((resolve) => {
    writer.onmessage = ({ data }) => {
      if (data !== "") errors.push(data);
      resolve(undefined);
    };
  });
  await isWriting;
  for (let count = 0; count < CONNECTIONS && errors.length === 0; count++) {
    const stream = await connectUnix(path);
    const closed = new Promise<void>((resolve) => stream.once("close", () => resolve()));
    stream.destroy();
    await closed;
    await setImmediate();
  }
  writer.terminate();
  listener.close();
  await accepting;
  assertEquals(errors, []);
});

Deno.test("unix socket: the error of the system has its code, and an aborted attempt the reason", async () => {
  const error = await assertRejects(() => connectUnix("/does/not/exist.sock"));
  assertEquals([error.message, "code" in error && error.code], [
    "connect ENOENT /does/not/exist.sock",
    "ENOENT",
  ]);
  const reason = new Error("stopped");
  const stopped = await assertRejects(() => connectUnix("/does/not/exist.sock", AbortSignal.abort(reason)));
  assertEquals(stopped, reason);
});

async function closeEach(listener: Deno.UnixListener): Promise<void> {
  for (;;) {
    const connection = await listener.accept().catch(() => undefined);
    if (connection === undefined) return;
    connection.close();
  }
}
