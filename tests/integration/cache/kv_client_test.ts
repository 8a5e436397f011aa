import { assertEquals, assertRejects } from "#assert";
import type net from "node:net";
import { systemClock } from "../../../src/base/clock.ts";
import { respCommand } from "../../../src/cache/kv/resp.ts";
import { KvClient } from "../../../src/cache/kv/client.ts";
import { startScriptedKv } from "../../harness/scripted_cache.ts";
import { until } from "../../harness/until.ts";

// What the client relies on of ioredis, by its public interface.

/** A client of a server at this port, and what it reports. */
class Bed implements Disposable {
  readonly streams: net.Socket[] = [];
  readonly closed: string[] = [];
  readonly client: KvClient;
  connected = 0;

  constructor(url: string) {
    const target = { host: "127.0.0.1", port: Number(url.split(":")[1]) };
    const onStream = (stream: net.Socket) => void this.streams.push(stream);
    this.client = new KvClient({
      connector: {
        locate: () => Promise.resolve({ target, onStream }),
        tls: undefined,
        timeoutMs: 30_000,
        clock: systemClock,
      },
      retryDelayMs: () => 10,
      onConnected: () => void this.connected++,
      onClosed: (reason) => void this.closed.push(reason),
    });
  }

  async connections(count: number): Promise<void> {
    await until(`connection ${count}`, () => this.connected === count && this.client.isConnected);
  }

  [Symbol.dispose](): void {
    this.client.close();
  }
}

async function reasonOf(call: Promise<unknown>): Promise<string> {
  return (await assertRejects(() => call)).message;
}

Deno.test("kv client: ioredis sends nothing by itself, and leaves every reply to the client", async () => {
  const commands: string[] = [];
  await using server = await startScriptedKv(([name = ""]) => {
    commands.push(name);
    return name === "FAIL" ? "-ERR no\r\n" : ":1\r\n";
  });
  using bed = new Bed(server.url);
  await bed.connections(1);
  const failed = reasonOf(bed.client.command(["FAIL"]));
  assertEquals(await Promise.all([bed.client.command(["ONE"]), bed.client.command(["TWO"])]), [1, 1]);
  assertEquals(await failed, "ERR no");
  assertEquals([commands, bed.streams[0]?.listenerCount("data"), bed.closed], [
    ["FAIL", "ONE", "TWO"],
    1,
    [],
  ]);
});

Deno.test("kv client: ioredis connects again after each loss, and what was written is answered", async () => {
  await using server = await startScriptedKv(([name], socket) => {
    if (name === "HALF") socket.end(":1\r\n");
    return name === "SILENCE" || name === "HALF" ? undefined : ":1\r\n";
  });
  using bed = new Bed(server.url);
  await bed.connections(1);
  const answered = Promise.withResolvers<readonly unknown[]>();
  bed.client.write({ data: respCommand("HALF"), replies: 2 }, answered.resolve);
  const [first, second] = await answered.promise;
  assertEquals([first, second instanceof Error ? second.message : second], [1, "the connection was closed"]);
  await bed.connections(2);
  const silent = reasonOf(bed.client.command(["SILENCE"]));
  bed.client.drop("it was dropped");
  assertEquals(await silent, "it was dropped");
  await bed.connections(3);
  assertEquals([await bed.client.command(["PING"]), bed.closed], [
    1,
    ["the connection was closed", "it was dropped"],
  ]);
});

Deno.test("kv client: the data of each write is given back once, also when the connection is dropped", async () => {
  await using server = await startScriptedKv(() => ":1\r\n");
  using bed = new Bed(server.url);
  await bed.connections(1);
  const given: Uint8Array[] = [];
  const write = () => {
    const data = respCommand("ONE");
    bed.client.write({ data, replies: 1, written: (bytes) => void given.push(bytes) }, () => {});
    return data;
  };
  const first = write();
  await until("the data of a write", () => given.length === 1);
  const second = write();
  bed.client.drop("it was dropped");
  await until("the data of a dropped write", () => given.length === 2);
  assertEquals([given[0] === first, given[1] === second], [true, true]);
});

Deno.test("kv client: a socket that fails twice throws nothing outside every handler", async () => {
  await using server = await startScriptedKv(() => ":1\r\n");
  using bed = new Bed(server.url);
  await bed.connections(1);
  const error = Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
  const [stream] = bed.streams;
  assertEquals([stream?.emit("error", error), stream?.emit("error", error)], [true, true]);
  await bed.connections(2);
  assertEquals(bed.closed, ["write EPIPE"]);
});

Deno.test("kv client: a closed client fails what waits, and does not connect again", async () => {
  await using server = await startScriptedKv(() => undefined);
  using bed = new Bed(server.url);
  await bed.connections(1);
  const silent = reasonOf(bed.client.command(["SILENCE"]));
  bed.client.close();
  assertEquals(await silent, "the connection was closed");
  assertEquals([bed.client.isConnected, server.accepted], [false, 1]);
});
