import { assertEquals, assertMatch } from "#assert";
import { systemClock } from "../../../src/base/clock.ts";
import { parseKvAddress } from "../../../src/cache/kv/address.ts";
import type { KvConnection } from "../../../src/cache/kv/connection.ts";
import type { Pool } from "../../../src/net/pool.ts";
import { KvConnections, type KvConnectionsOptions } from "../../../src/cache/kv/connections.ts";
import type { TlsFiles } from "../../../src/cache/tls_files.ts";
import { type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { startScriptedKv } from "../../harness/scripted_cache.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { testRedis } from "../../harness/kv_bed.ts";
import { openKvPool } from "../../harness/open_kv.ts";
import { needs, type Tool } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

const TLS_TOOLS: readonly Tool[] = ["redis-server", "openssl"];

/** A connection, and what became of the attempts to make it. */
class Attempts implements AsyncDisposable {
  readonly errors: string[];
  readonly #pool: Pool<KvConnection>;

  constructor(options: Partial<KvConnectionsOptions> & Pick<KvConnectionsOptions, "address">) {
    const connections = new KvConnections({
      timeoutMs: 30_000,
      clock: systemClock,
      random: () => 0,
      ...options,
    });
    const { pool, errors } = openKvPool(connections, options);
    this.#pool = pool;
    this.errors = errors;
  }

  /** Waits until it can be used, and answers that it can. */
  async ready(): Promise<string> {
    const connection = await until("the connection to be usable", () => this.#pool.any());
    return String(await connection.command(["PING"]));
  }

  /** Waits until several attempts have failed, and answers why the last one did; `pass` lets time pass. */
  async refused(pass: () => void = () => {}): Promise<string> {
    const end = this.errors.length + 2;
    await until("several attempts to fail", () => {
      pass();
      return this.errors.length >= end;
    });
    assertEquals(this.#pool.connected, false);
    return this.errors.at(-1) ?? "";
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#pool.close();
    return Promise.resolve();
  }
}

function tlsFiles({ authority, client }: Certificates): TlsFiles {
  return { settings: "KV_TLS", authorityFile: authority.certFile, ...client };
}

Deno.test({
  ...needs(TLS_TOOLS, "kv over TLS: rediss:// is enough, and files without it are not"),
  async fn() {
    await using certificates = await makeCertificates();
    await using redis = await startRedis({ tls: certificates.redisTls() });
    const tls = tlsFiles(certificates);
    const address = parseKvAddress("single", `rediss://localhost:${redis.tlsPort}`);
    await using secure = new Attempts({ address, tls });
    await using plain = new Attempts({ address: parseKvAddress("single", redis.url), tls });
    assertEquals([await secure.ready(), await plain.ready()], ["PONG", "PONG"]);
  },
});

for (const overTls of [false, true]) {
  Deno.test({
    ...needs(
      TLS_TOOLS,
      `kv connection: a peer that says nothing is left in time${overTls ? ", over TLS" : ""}`,
    ),
    async fn() {
      await using certificates = await makeCertificates();
      await using redis = await startRedis({ tls: certificates.redisTls() });
      await using relay = await startTcpRelay(overTls ? redis.tlsPort : redis.port);
      relay.setMode("stall");
      const address = parseKvAddress("single", relay.url, { tls: overTls });
      const timeoutMs = 60_000;
      const clock = new FakeClock();
      let met = 0;
      // Once for each connection that was taken: before that the files are read, which has its time too.
      const pass = () => {
        clock.advance(relay.accepted > met ? timeoutMs : 10);
        met = relay.accepted;
      };
      await using attempts = new Attempts({ address, tls: tlsFiles(certificates), timeoutMs, clock });
      const wanted = overTls ? /^no connection within 60000 ms$/ : /^no answer within 60000 ms$/;
      assertMatch(await attempts.refused(pass), wanted);
      relay.setMode("garbage");
      await attempts.refused(pass);
      relay.setMode("refuse");
      await attempts.refused(pass);
      relay.setMode("relay");
      clock.advance(2_000);
      assertEquals(await attempts.ready(), "PONG");
    },
  });
}

testRedis("kv connection: a wrong password is reported without it", async (redis) => {
  const address = parseKvAddress("single", `redis://:in-url@${redis.url}`, { auth: "someone:wrong-word" });
  await using attempts = new Attempts({ address });
  assertMatch(await attempts.refused(), /^WRONGPASS/);
  assertEquals(attempts.errors.filter((text) => /wrong-word|in-url|someone/.test(text)), []);
}, { args: ["--requirepass", "right"] });

Deno.test("kv connection: a server that is loading is asked again on another connection", async () => {
  await using server = await startScriptedKv(() => "+PONG\r\n", () => {
    const text = `role:master\r\nloading:${server.accepted < 3 ? 1 : 0}\r\n`;
    return `$${text.length}\r\n${text}\r\n`;
  });
  await using attempts = new Attempts({ address: parseKvAddress("single", server.url) });
  assertEquals([await attempts.ready(), server.accepted], ["PONG", 3]);
  assertMatch(attempts.errors[0] ?? "", /loading/);
});

testRedis("kv connection: after the first one waits are short, and never given up", async (redis) => {
  const told: string[] = [];
  await using attempts = new Attempts({
    address: parseKvAddress("single", redis.url),
    startup: { initialMs: 60_000, maxMs: 60_000, maxElapsedMs: 1 },
    onGivenUp: (text) => told.push(text),
  });
  await attempts.ready();
  await redis.kill();
  await attempts.refused();
  await redis.restartOnSamePort();
  assertEquals([await attempts.ready(), told], ["PONG", []]);
});
