import { assertEquals, assertRejects } from "@std/assert";
import net from "node:net";
import type { KvNode } from "../../src/cache/kv_node.ts";
import { hit } from "../contract/counter_cache_contract.ts";
import { openKvNode, type OpenKvOptions } from "../support/open_kv.ts";
import { startRedis } from "../support/redis_server.ts";
import { startTcpRelay } from "../support/tcp_relay.ts";
import { needs } from "../support/tools.ts";
import { until } from "../support/until.ts";

function openNode(url: string, set: OpenKvOptions = {}): Promise<KvNode & AsyncDisposable> {
  return openKvNode(url, { poolSize: 1, ...set });
}

/** Keeps the one connection of a node busy for so long; whatever is sent on it is answered afterwards. */
function block(node: KvNode, seconds: number): Promise<unknown> {
  return node.command(["BLPOP", "nothing", String(seconds)]).catch(() => {});
}

/** How long a call takes until it fails, and with which text. */
async function failureOf(call: Promise<unknown>): Promise<{ message: string; ms: number }> {
  const before = performance.now();
  const { message } = await assertRejects(() => call);
  return { message, ms: performance.now() - before };
}

function figure(node: KvNode, name: string): number | undefined {
  const { counters, gauges } = node.figures;
  return (counters[name] ?? gauges[name])?.();
}

Deno.test({
  ...needs(["redis-server"], "kv node: with ERROR a call fails when no connection was free for the wait"),
  async fn() {
    await using redis = await startRedis();
    await using node = await openNode(redis.url, { onEmpty: "ERROR", onEmptyWaitMs: 100 });
    const blocked = block(node, 0.5);
    const first = node.ask([hit()]);
    const { message, ms } = await failureOf(
      new Promise((_, reject) => {
        // The first call has to be written before the second one asks for a connection.
        queueMicrotask(() => queueMicrotask(() => node.ask([hit()]).catch(reject)));
      }),
    );
    assertEquals(
      [message, Math.abs(ms - 100) <= 20],
      ["no connection was free within 100 ms", true],
      `${ms}`,
    );
    assertEquals([await first, figure(node, "exhausted")], [[1], 1]);
    await blocked;
  },
});

Deno.test({
  ...needs(
    ["redis-server"],
    "kv node: with CREATE one more connection is made, and closed when nobody needs it",
  ),
  async fn() {
    await using redis = await startRedis();
    const connections = async () =>
      String(await redis.command("CLIENT", "LIST", "TYPE", "normal")).split("\n")
        .filter((line) => line.includes("addr=") && !line.includes("cmd=client")).length;
    await using node = await openNode(redis.url, { onEmpty: "CREATE", onEmptyWaitMs: 30 });
    assertEquals(await connections(), 1);
    const blocked = block(node, 0.6);
    const first = node.ask([hit()]);
    await Promise.resolve();
    let most = 0;
    const second = node.ask([hit({ addend: 7 })]);
    const watched = until(
      "a second connection",
      async () => (most = Math.max(most, await connections())) === 2,
      {
        intervalMs: 1,
      },
    );
    assertEquals(await second, [7]);
    await watched;
    await until("it to be closed", async () => await connections() === 1);
    assertEquals([await first, figure(node, "cx_total"), figure(node, "cx_active")], [[1], 2, 1]);
    await blocked;
  },
});

Deno.test({
  ...needs(["redis-server"], "kv node: with WAIT a call ends at the time-out of the cache"),
  async fn() {
    await using redis = await startRedis();
    await using node = await openNode(redis.url, { onEmpty: "WAIT", onEmptyWaitMs: 10, timeoutMs: 300 });
    const blocked = block(node, 2);
    const first = failureOf(node.ask([hit()]));
    await Promise.resolve();
    const second = failureOf(node.ask([hit()]));
    for (const { ms } of [await first, await second]) assertEquals(ms > 280 && ms < 350, true, `${ms}`);
    await until("counting to go on", async () => (await node.ask([hit()]))[0] === 1);
    await blocked;
  },
});

Deno.test({
  ...needs(
    ["redis-server"],
    "kv node: hits of a caller that is gone before they are written are not counted",
  ),
  async fn() {
    await using redis = await startRedis();
    await using node = await openNode(redis.url);
    const blocked = block(node, 0.2);
    const first = node.ask([hit()]);
    await Promise.resolve();
    const caller = { gone: false };
    const [left, stayed] = [hit({ addend: 5 }), hit({ addend: 6 })];
    const refused = failureOf(node.ask([left], { caller }));
    const answered = node.ask([stayed]);
    caller.gone = true;
    assertEquals([await first, await answered, (await refused).message], [[1], [6], "its caller is gone"]);
    assertEquals([await redis.command("EXISTS", left.key), await redis.command("GET", stayed.key)], [0, "6"]);
    await blocked;
  },
});

Deno.test({
  ...needs(["redis-server"], "kv node: what gathers within the window is one command"),
  async fn() {
    await using redis = await startRedis();
    for (const [windowMs, turns, commands] of [[0, 0, 1], [0, 1, 3], [0.15, 0, 1], [200, 1, 1]] as const) {
      await using node = await openNode(redis.url, { windowMs, poolSize: 3 });
      await until("every connection", () => figure(node, "cx_active") === 3);
      await redis.command("CONFIG", "RESETSTAT");
      const one = hit();
      const asked: Promise<number[]>[] = [];
      for (let call = 0; call < 3; call++) {
        asked.push(node.ask([one]));
        for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      }
      assertEquals((await Promise.all(asked)).flat(), [1, 2, 3]);
      const stats = String(await redis.command("INFO", "commandstats"));
      assertEquals(/cmdstat_incrby:calls=(\d+)/.exec(stats)?.[1], String(commands), `window ${windowMs}`);
    }
  },
});

Deno.test({
  ...needs(["redis-server"], "kv node: a demoted primary behind one address is left by itself"),
  async fn() {
    await using first = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
    await using second = await startRedis({ args: ["--replicaof", `127.0.0.1 ${first.port}`] });
    await using relay = await startTcpRelay(first.port);
    await using node = await openNode(relay.url, { poolSize: 3 });
    const one = hit();
    assertEquals(await node.ask([one]), [1]);
    await until("the replica to follow", async () => await second.command("GET", one.key) === "1");
    await second.command("REPLICAOF", "NO", "ONE");
    await first.command("REPLICAOF", "127.0.0.1", second.port);
    relay.targetPort = second.port;
    const { message } = await failureOf(node.ask([one]));
    assertEquals(message.startsWith("READONLY "), true, message);
    assertEquals(await until("the new primary", () => node.ask([one])), [2]);
    assertEquals(await second.command("GET", one.key), "2");
    await until("all connections", () => relay.open === 3 && figure(node, "cx_active") === 3);
  },
});

Deno.test({
  ...needs(["redis-server"], "kv node: a server that takes connections and never answers holds no call up"),
  async fn() {
    await using redis = await startRedis();
    await using relay = await startTcpRelay(redis.port);
    await using node = await openNode(relay.url, { poolSize: 2, timeoutMs: 150 });
    relay.setMode("stall");
    const waits: number[] = [];
    for (let call = 0; call < 8; call++) waits.push((await failureOf(node.ask([hit()]))).ms);
    assertEquals(waits.every((ms) => ms < 250), true, waits.join(" "));
    assertEquals((figure(node, "timeouts") ?? 0) > 0, true);
    relay.setMode("relay");
    await until("counting to go on", async () => (await node.ask([hit()]))[0] === 1);
  },
});

Deno.test({
  ...needs(["redis-server"], "kv node: a server that answers garbage fails calls and nothing else"),
  async fn() {
    await using redis = await startRedis();
    await using relay = await startTcpRelay(redis.port);
    await using node = await openNode(relay.url, { poolSize: 2, timeoutMs: 300 });
    relay.setMode("garbage");
    relay.dropAll({ reset: true });
    for (let call = 0; call < 20; call++) {
      assertEquals((await failureOf(node.ask([hit()]))).ms < 400, true);
    }
    relay.setMode("relay");
    relay.dropAll();
    await until("counting to go on", async () => (await node.ask([hit()]))[0] === 1);
  },
});

Deno.test("kv node: error replies of the wrong server open the breaker, and it closes when they end", async () => {
  let refusing = true;
  let asked = 0;
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (bytes) => {
      const text = bytes.toString("latin1").toLowerCase();
      if (text.includes("info")) return void socket.write("$17\r\nredis_version:7.0\r\n");
      asked++;
      socket.write(refusing ? "-LOADING the data\r\n-LOADING the data\r\n" : ":1\r\n:1\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  await using node = await openNode(`127.0.0.1:${typeof bound === "object" ? bound?.port : 0}`);
  await until("the breaker to open", async () => {
    await node.ask([hit()]).catch(() => {});
    return figure(node, "breaker_open") === 1;
  }, { intervalMs: 1 });
  const before = asked;
  await until("the connection to be back", () => node.connected, { intervalMs: 1 });
  const { message, ms } = await failureOf(node.ask([hit()]));
  assertEquals(
    [message.includes("LOADING the data"), ms < 20, asked - before <= 1],
    [true, true, true],
    message,
  );
  refusing = false;
  await until("the breaker to close", async () => (await node.ask([hit()]))[0] === 1);
  assertEquals([figure(node, "breaker_open"), figure(node, "breaker_opened")], [0, 1]);
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});
