import { assertEquals, assertRejects } from "#assert";
import type { Duplex } from "node:stream";
import { systemClock } from "../../../src/base/clock.ts";
import type { KvConnection } from "../../../src/cache/kv/connection.ts";
import { openKvSession } from "../../../src/cache/kv/greeting.ts";
import { Credential } from "../../../src/net/credential.ts";
import { respCommand } from "../../../src/cache/kv/resp.ts";
import { startScriptedKv } from "../../harness/scripted_cache.ts";
import { eventually, until } from "../../harness/until.ts";

/** An open connection, its stream, and why it was lost. */
interface Bed {
  readonly connection: KvConnection;
  readonly stream: Duplex | undefined;
  readonly lost: string[];
}

async function open(port: number): Promise<Bed> {
  const lost: string[] = [];
  let stream: Duplex | undefined;
  const connection = await openKvSession(
    {
      locate: () =>
        Promise.resolve({
          target: { host: "127.0.0.1", port },
          onStream: (opened) => void (stream = opened),
        }),
      tls: undefined,
      timeoutMs: 30_000,
      clock: systemClock,
      login: new Credential({ username: undefined, password: undefined }),
    },
    (reason) => void lost.push(reason),
    new AbortController().signal,
  );
  return { connection, stream, lost };
}

async function reasonOf(call: Promise<unknown>): Promise<string> {
  return (await assertRejects(() => call)).message;
}

Deno.test("kv connection: every reply goes to its command, and nothing is sent besides", async () => {
  const commands: string[] = [];
  await using server = await startScriptedKv(([name = ""]) => {
    commands.push(name);
    return name === "FAIL" ? "-ERR no\r\n" : ":1\r\n";
  });
  const { connection, lost } = await open(server.port);
  const failed = reasonOf(connection.command(["FAIL"]));
  assertEquals(await Promise.all([connection.command(["ONE"]), connection.command(["TWO"])]), [1, 1]);
  assertEquals([await failed, commands, lost], ["ERR no", ["FAIL", "ONE", "TWO"], []]);
  connection.close("it is closed");
});

Deno.test("kv connection: what was written before the connection ended is answered", async () => {
  await using server = await startScriptedKv((_, socket) => void socket.end(":1\r\n"));
  const { connection, lost } = await open(server.port);
  const answered = Promise.withResolvers<readonly unknown[]>();
  connection.write({ data: respCommand("HALF"), replies: 2 }, answered.resolve);
  const [first, second] = await answered.promise;
  assertEquals([first, second instanceof Error ? second.message : second], [1, "the connection was closed"]);
  await eventually(["the connection was closed"], () => lost);
  assertEquals(await reasonOf(connection.command(["LATER"])), "the connection was closed");
});

Deno.test("kv connection: a close fails what waits with its reason", async () => {
  await using server = await startScriptedKv(() => undefined);
  const { connection } = await open(server.port);
  const silent = reasonOf(connection.command(["SILENCE"]));
  connection.close("it was dropped");
  assertEquals([await silent, connection.isUsable], ["it was dropped", false]);
});

Deno.test("kv connection: the data of each write is given back once, also when it is closed", async () => {
  await using server = await startScriptedKv(() => ":1\r\n");
  const { connection } = await open(server.port);
  const given: Uint8Array[] = [];
  const write = () => {
    const data = respCommand("ONE");
    connection.write({ data, replies: 1, written: (bytes) => void given.push(bytes) }, () => {});
    return data;
  };
  const first = write();
  await until("the data of a write", () => given.length === 1);
  const second = write();
  connection.close("it was dropped");
  await until("the data of a dropped write", () => given.length === 2);
  assertEquals([given[0] === first, given[1] === second], [true, true]);
});

Deno.test("kv connection: a socket that fails twice throws nothing outside every handler", async () => {
  await using server = await startScriptedKv(() => ":1\r\n");
  const { stream, lost } = await open(server.port);
  const error = Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
  assertEquals([stream?.emit("error", error), stream?.emit("error", error)], [true, true]);
  assertEquals(lost, ["write EPIPE"]);
});
