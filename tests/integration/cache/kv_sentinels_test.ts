import { assertEquals, assertMatch } from "#assert";
import net from "node:net";
import { systemClock } from "../../../src/base/clock.ts";
import { type KvAddressOptions, parseKvAddress } from "../../../src/cache/kv/address.ts";
import type { KvConnection } from "../../../src/cache/kv/connection.ts";
import type { Pool } from "../../../src/net/pool.ts";
import { KvConnections } from "../../../src/cache/kv/connections.ts";
import { Credential } from "../../../src/net/credential.ts";
import { KvSentinels } from "../../../src/cache/kv/sentinel/sentinels.ts";
import type { TlsFiles } from "../../../src/cache/tls_files.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { type RedisSentinel, startRedisSentinel } from "../../harness/redis_sentinel.ts";
import { type RedisServer } from "../../harness/redis_server.ts";
import { type ScriptedCache, startScriptedKv } from "../../harness/scripted_cache.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { testRedis } from "../../harness/kv_bed.ts";
import { openKvPool } from "../../harness/open_kv.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

/** So long a sentinel that says nothing might be waited for. */
const TIMEOUT_MS = 60_000;

interface FollowerOptions extends KvAddressOptions {
  readonly files?: TlsFiles;
  readonly timeoutMs?: number;
}

/** Two connections that share what they know of the sentinels. */
class Followers implements AsyncDisposable {
  readonly errors: string[];
  readonly #pool: Pool<KvConnection>;

  constructor(url: string, { files, timeoutMs = 30_000, ...options }: FollowerOptions = {}) {
    const address = parseKvAddress("sentinel", url, options);
    const connections = new KvConnections({
      address,
      tls: files,
      timeoutMs,
      clock: systemClock,
      random: Math.random,
    });
    const { pool, errors } = openKvPool(connections, { size: 2 });
    this.#pool = pool;
    this.errors = errors;
  }

  /** Waits until all count on this server, which is in no other way. */
  async countOn(server: RedisServer): Promise<void> {
    await until("both connections to count on the primary", async () => {
      const connections = [this.#pool.take(), this.#pool.take()].filter((one) => one !== undefined);
      for (const connection of connections) this.#pool.give(connection);
      if (connections.length < 2) return false;
      const before = Number(await server.command("GET", "count"));
      for (const connection of connections) await connection.command(["INCR", "count"]);
      return Number(await server.command("GET", "count")) === before + 2;
    });
  }

  async refused(): Promise<string> {
    await until("an attempt to fail", () => this.errors.length > 0);
    assertEquals(this.#pool.connected, false);
    return this.errors[0] ?? "";
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#pool.close();
    return Promise.resolve();
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
    // The old primary goes on as if nothing had been, so that only the sentinels know.
    await group.failover((next) => followers.countOn(next));
    assertEquals(followers.errors.some((text) => text.includes("the primary is")), true);
    await followers.countOn(await group.killPrimary());
  },
});

Deno.test({
  ...needs(["redis-server", "openssl"], "kv sentinels: over TLS, those that were not named are learnt"),
  async fn() {
    await using certificates = await makeCertificates();
    await using group = await startRedisSentinel({ certificates });
    const { client, authority: { certFile: authorityFile } } = certificates;
    const files = { settings: "KV_TLS", authorityFile, ...client } as const;
    const [name, first] = group.url.split(",");
    await using followers = new Followers(`${name},${first}`, { tls: true, files });
    await followers.countOn(await primaryOf(group));
    await group.killSentinel(0);
    await followers.countOn(await group.killPrimary());
  },
});

Deno.test({
  ...needs(["redis-server"], "kv sentinels: one that is gone and one that is silent delay no call"),
  async fn() {
    await using group = await startRedisSentinel();
    await using relay = await startTcpRelay(group.sentinelPorts[0] ?? 0);
    relay.setMode("stall");
    const [name, ...sentinels] = group.url.split(",");
    const url = [name, `127.0.0.1:${freePort()}`, relay.url, ...sentinels].join(",");
    const primary = await primaryOf(group);
    const began = performance.now();
    await using followers = new Followers(url, { timeoutMs: TIMEOUT_MS });
    await followers.countOn(primary);
    assertEquals([followers.errors, performance.now() - began < TIMEOUT_MS / 2], [[], true]);
  },
});

Deno.test({
  ...needs(["redis-server"], "kv sentinels: a wrong password or name is reported, and no password with it"),
  async fn() {
    await using group = await startRedisSentinel({ sentinelPassword: "right" });
    const wrong = { sentinelAuth: "wrong-word" };
    {
      await using followers = new Followers(group.url, wrong);
      const text = await followers.refused();
      assertMatch(text, /^no sentinel knows the primary: 127\.0\.0\.1:\d+: WRONGPASS/);
      assertEquals(text.includes("wrong-word"), false);
    }
    const url = group.url.replace(/^[^,]+/, "unknown");
    await using followers = new Followers(url, { sentinelAuth: "right" });
    assertMatch(await followers.refused(), /: it knows no primary "unknown"; /);
  },
});

testRedis("kv sentinels: a replica that a sentinel calls the primary is not taken", async (replica) => {
  const port = String(replica.port);
  const address = `*2\r\n$9\r\n127.0.0.1\r\n$${port.length}\r\n${port}\r\n`;
  await using sentinel = await startScriptedKv(() => address);
  await using followers = new Followers(`main,${sentinel.url}`);
  assertEquals(await followers.refused(), "the server is no primary but a slave");
}, { args: ["--replicaof", "127.0.0.1", String(freePort())] });

/** The answers of a sentinel; a test may change them at any time. */
interface Saying {
  primary: string;
  /** It does not tell when absent. */
  epoch?: number;
  /** It answers nothing. */
  silent?: boolean;
  /** Answers that it owes. */
  readonly owed?: (() => void)[];
}

function startSaying(saying: Saying): Promise<ScriptedCache> {
  return startScriptedKv(([, subcommand = ""], socket) => {
    const { primary, epoch, silent = false, owed } = saying;
    const answers: Record<string, readonly string[]> = {
      "GET-MASTER-ADDR-BY-NAME": primary.split(":"),
      "MASTER": epoch === undefined ? [] : ["name", "main", "config-epoch", String(epoch)],
    };
    const list = answers[subcommand] ?? [];
    const text = `*${list.length}\r\n${list.map((one) => `$${one.length}\r\n${one}\r\n`).join("")}`;
    if (!silent) return text;
    owed?.push(() => void socket.write(text));
    return undefined;
  });
}

/** Sentinels that say so, in their order, and who asks them by a clock that stands still. */
class Asked implements AsyncDisposable {
  readonly servers: ScriptedCache[] = [];
  readonly clock = new FakeClock();
  readonly #streams: net.Socket[] = [];
  #sentinels: KvSentinels | undefined;

  static async open(sayings: readonly Saying[]): Promise<Asked> {
    const asked = new Asked();
    for (const saying of sayings) asked.servers.push(await startSaying(saying));
    const address = parseKvAddress("sentinel", ["main", ...asked.servers.map(({ url }) => url)].join(","));
    if (address.kind !== "sentinel") throw new Error("Cannot ask: it is no address of sentinels");
    asked.#sentinels = new KvSentinels({
      address,
      login: new Credential(address.sentinelLogin),
      tls: undefined,
      timeoutMs: TIMEOUT_MS,
      clock: asked.clock,
    });
    return asked;
  }

  /** Asks once, and answers which primary was found, and what makes a stream to it. */
  async locate(): Promise<{ primary: string; connect: () => net.Socket }> {
    const route = await this.#sentinels?.locate(new AbortController().signal);
    if (route === undefined || !("host" in route.target)) throw new Error("Cannot find a primary");
    const connect = () => {
      const stream = new net.Socket();
      stream.on("error", () => {});
      this.#streams.push(stream);
      route.onStream?.(stream);
      return stream;
    };
    return { primary: `${route.target.host}:${route.target.port}`, connect };
  }

  /** Lets time pass until something is there. */
  async inTime<T extends object>(coming: Promise<T>): Promise<T> {
    return await until("it to come", () => {
      this.clock.advance(100);
      return Promise.race([coming, Promise.resolve(undefined)]);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stream of this.#streams) stream.destroy();
    for (const server of this.servers) await server[Symbol.asyncDispose]();
    await until("the timers to end", () => this.clock.waiting === 0);
  }
}

const [OLD, NEW] = ["10.0.0.1:1", "10.0.0.2:2"];
const CONTRADICTIONS: readonly [name: string, sayings: readonly Saying[]][] = [
  ["one begins anew", [{ primary: OLD, epoch: 0 }, { primary: NEW, epoch: 5 }, { primary: NEW, epoch: 5 }]],
  ["one has missed a failover", [{ primary: OLD, epoch: 4 }, { primary: NEW, epoch: 5 }]],
  ["one does not tell its failovers", [{ primary: OLD }, { primary: OLD }, { primary: NEW, epoch: 0 }]],
  ["none tells, and most agree", [{ primary: OLD }, { primary: NEW }, { primary: NEW }]],
  ["as many failovers, and most agree", [
    { primary: OLD, epoch: 1 },
    { primary: NEW, epoch: 1 },
    { primary: NEW, epoch: 1 },
  ]],
];

for (const [name, sayings] of CONTRADICTIONS) {
  for (const ordered of [sayings, sayings.toReversed()]) {
    const order = ordered === sayings ? "first" : "last";
    Deno.test(`kv sentinels: ${name}, asked ${order}: the others are believed, again and again`, async () => {
      await using asked = await Asked.open(ordered);
      const { primary, connect } = await asked.locate();
      const stream = connect();
      const found = [primary];
      for (let look = 0; look < 3; look++) found.push((await asked.locate()).primary);
      assertEquals([[...new Set(found)], stream.destroyed], [[NEW], false]);
    });
  }
}

Deno.test("kv sentinels: a stream that is made after a failover, to where the primary was before, is dropped", async () => {
  const saying: Saying = { primary: OLD, epoch: 5 };
  // The second one misses the failover.
  await using asked = await Asked.open([saying, { primary: OLD, epoch: 5 }]);
  const before = await asked.locate();
  const stream = before.connect();
  Object.assign(saying, { primary: NEW, epoch: 6 });
  await asked.locate();
  const late = before.connect();
  assertEquals([stream.destroyed, late.destroyed], [true, false]);
  asked.clock.advance(500);
  await until("the next look", () => late.destroyed);
});

Deno.test("kv sentinels: a question of the watch ends with the last stream", async () => {
  const owed: (() => void)[] = [];
  const saying: Saying = { primary: OLD, epoch: 5, owed };
  await using asked = await Asked.open([saying]);
  const stream = (await asked.locate()).connect();
  saying.silent = true;
  asked.clock.advance(500);
  await until("it to be asked", () => owed.length === 3);
  stream.destroy();
  await until("the timers to end", () => asked.clock.waiting === 0);
});

Deno.test("kv sentinels: a server that only a sentinel which is gone called the primary is left", async () => {
  const sayings: Saying[] = [{ primary: OLD, epoch: 900 }, { primary: NEW, epoch: 5 }];
  await using asked = await Asked.open(sayings);
  const { connect } = await asked.locate();
  const stream = connect();
  await asked.locate();
  assertEquals(stream.destroyed, false);
  await asked.servers[0]?.[Symbol.asyncDispose]();
  assertEquals([(await asked.locate()).primary, stream.destroyed], [NEW, true]);
  asked.servers.shift();
});

Deno.test("kv sentinels: before a server is left without a failover, one that is slow is heard too", async () => {
  const owed: (() => void)[] = [];
  const slow: Saying = { primary: NEW, epoch: 5, owed };
  await using asked = await Asked.open([{ primary: OLD, epoch: 0 }, slow]);
  const { connect } = await asked.locate();
  const stream = connect();
  slow.silent = true;
  const next = asked.locate();
  await until("it to be asked", () => owed.length === 3);
  let passed = 0;
  await until("time to pass", () => {
    asked.clock.advance(100);
    return ++passed === 50;
  }, { intervalMs: 2 });
  assertEquals(stream.destroyed, false);
  for (const answer of owed) answer();
  assertEquals([(await next).primary, stream.destroyed], [NEW, false]);
});

Deno.test("kv sentinels: that two write the primary in two ways is no failover", async () => {
  const one: Saying = { primary: "127.0.0.1:3", epoch: 0, silent: true };
  await using asked = await Asked.open([one, { primary: "localhost:3", epoch: 0 }]);
  const locating = asked.locate();
  const { primary, connect } = await asked.inTime(locating);
  const stream = connect();
  one.silent = false;
  const found: string[] = [primary];
  await until("both to be heard", async () => {
    found.push((await asked.locate()).primary);
    return found.at(-1) === "127.0.0.1:3";
  });
  assertEquals([found[0], stream.destroyed], ["localhost:3", false]);
});

Deno.test("kv sentinels: one that stands still is waited for once, and not for the whole time-out", async () => {
  const good = { primary: NEW, epoch: 1 };
  await using asked = await Asked.open([{ primary: OLD, epoch: 0, silent: true }, good, good]);
  const began = asked.clock.now();
  const locating = asked.locate();
  const { connect } = await asked.inTime(locating);
  assertEquals(asked.clock.now() - began < TIMEOUT_MS / 2, true);
  connect();
  // The clock stands still: a wait for it never ends.
  for (let look = 0; look < 3; look++) assertEquals((await asked.locate()).primary, NEW);
});
