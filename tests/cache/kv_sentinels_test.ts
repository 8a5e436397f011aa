import { assertEquals, assertMatch } from "@std/assert";
import net from "node:net";
import { systemClock } from "../../src/base/clock.ts";
import { type KvAddressOptions, parseKvAddress } from "../../src/cache/kv_address.ts";
import { KvClients } from "../../src/cache/kv_connect.ts";
import type { TlsFiles } from "../../src/cache/tls_files.ts";
import { makeCertificates } from "../support/certificates.ts";
import { freePort } from "../support/free_port.ts";
import { type RedisSentinel, startRedisSentinel } from "../support/redis_sentinel.ts";
import { type RedisServer, startRedis } from "../support/redis_server.ts";
import { startTcpRelay } from "../support/tcp_relay.ts";
import { needs } from "../support/tools.ts";
import { until } from "../support/until.ts";

interface FollowerOptions extends KvAddressOptions {
  readonly files?: TlsFiles;
  readonly timeoutMs?: number;
}

/** Two clients that share what they know of the sentinels. */
class Followers implements AsyncDisposable {
  readonly errors: string[] = [];
  readonly #clients: readonly ReturnType<KvClients["create"]>[];

  constructor(url: string, { files, timeoutMs = 3_000, ...options }: FollowerOptions = {}) {
    const address = parseKvAddress("sentinel", url, options);
    const clients = new KvClients({
      address,
      tls: files,
      timeoutMs,
      clock: systemClock,
      random: Math.random,
    });
    this.#clients = [clients.create(), clients.create()];
    for (const client of this.#clients) {
      client.on("error", (error: Error) => this.errors.push(error.message));
      client.connect().catch(() => {});
    }
  }

  /** Waits until all count on this server, which stands in no other way. */
  async countOn(server: RedisServer): Promise<void> {
    for (const client of this.#clients) {
      await until("the client to count on the primary", async () => {
        if (client.status !== "ready") return false;
        const before = Number(await server.command("GET", "count"));
        await client.incr("count");
        return Number(await server.command("GET", "count")) === before + 1;
      }, { deadlineMs: 20_000 });
    }
  }

  async refused(): Promise<string> {
    await until("an attempt to fail", () => this.errors.length > 0);
    assertEquals(this.#clients.map(({ status }) => status === "ready"), [false, false]);
    return this.errors[0] ?? "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const streams = this.#clients.map((client) => client as unknown as { stream: net.Socket | undefined });
    for (const client of this.#clients) client.disconnect();
    await until("the sockets to be closed", () => streams.every(({ stream }) => stream?.destroyed !== false));
  }
}

async function primaryOf(group: RedisSentinel): Promise<RedisServer> {
  return await until("a primary", () => group.primary());
}

Deno.test({
  ...needs(
    ["redis-server"],
    "kv sentinels: with passwords, the primary is found, also after it has changed twice",
  ),
  async fn() {
    await using group = await startRedisSentinel({ replicas: 2, password: "pw", sentinelPassword: "spw" });
    await using followers = new Followers(group.url, { auth: "pw", sentinelAuth: "spw" });
    await followers.countOn(await primaryOf(group));
    // The old primary goes on for a while as if nothing had been, so that only the sentinels know.
    await followers.countOn(await group.failover());
    assertEquals(followers.errors.some((text) => text.includes("the primary is")), true);
    await followers.countOn(await group.killPrimary());
  },
});

Deno.test({
  ...needs(["redis-server", "openssl"], "kv sentinels: over TLS, those that were not named are learnt"),
  async fn() {
    await using certificates = await makeCertificates();
    await using group = await startRedisSentinel({ certificates });
    const files = {
      settings: "KV_TLS",
      authorityFile: certificates.authority.certFile,
      ...certificates.client,
    } as const;
    const [name, first] = group.url.split(",");
    await using followers = new Followers(`${name},${first}`, { tls: true, files });
    await followers.countOn(await primaryOf(group));
    await group.killSentinel(0);
    await followers.countOn(await group.killPrimary());
  },
});

Deno.test({
  ...needs(["redis-server"], "kv sentinels: one that is gone and one that says nothing keep nobody waiting"),
  async fn() {
    await using group = await startRedisSentinel();
    await using relay = await startTcpRelay(group.sentinelPorts[0] ?? 0);
    relay.setMode("stall");
    const [name, ...sentinels] = group.url.split(",");
    const url = [name, `127.0.0.1:${freePort()}`, relay.url, ...sentinels].join(",");
    await using followers = new Followers(url, { timeoutMs: 1_500 });
    await followers.countOn(await primaryOf(group));
    assertEquals(followers.errors, []);
  },
});

Deno.test({
  ...needs(["redis-server"], "kv sentinels: a wrong password or name is told, and no password with it"),
  async fn() {
    await using group = await startRedisSentinel({ sentinelPassword: "right" });
    const wrong = { sentinelAuth: "wrong-word" };
    {
      await using followers = new Followers(group.url, wrong);
      const text = await followers.refused();
      assertMatch(text, /^no sentinel knows the primary: 127\.0\.0\.1:\d+: (?:WRONGPASS|NOAUTH)/);
      assertEquals(text.includes("wrong-word"), false);
    }
    const url = group.url.replace(/^[^,]+/, "nobody");
    await using followers = new Followers(url, { sentinelAuth: "right" });
    assertMatch(await followers.refused(), /: it knows no primary "nobody"; /);
  },
});

Deno.test({
  ...needs(["redis-server"], "kv sentinels: a replica that a sentinel calls the primary is not taken"),
  async fn() {
    await using replica = await startRedis({ args: ["--replicaof", "127.0.0.1", String(freePort())] });
    const sockets = new Set<net.Socket>();
    const sentinel = net.createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      const port = String(replica.port);
      const address = `*2\r\n$9\r\n127.0.0.1\r\n$${port.length}\r\n${port}\r\n`;
      socket.on("data", (bytes) => {
        const commands = bytes.toString("latin1").match(/\*3\r\n/g) ?? [];
        for (const _ of commands) socket.write(address);
      });
    });
    await new Promise<void>((resolve) => sentinel.listen(0, "127.0.0.1", resolve));
    const bound = sentinel.address();
    const port = typeof bound === "object" && bound !== null ? bound.port : 0;
    {
      await using followers = new Followers(`main,127.0.0.1:${port}`);
      assertEquals(await followers.refused(), "the server is no primary but a slave");
    }
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => sentinel.close(resolve));
  },
});
