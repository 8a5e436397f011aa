import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import net from "node:net";
import { systemClock } from "../../src/base/clock.ts";
import { McCache, type McCacheOptions } from "../../src/cache/mc_cache.ts";
import type { TlsFiles } from "../../src/cache/tls_files.ts";
import { hit } from "../contract/counter_cache_contract.ts";
import { type Certificates, makeCertificates } from "../support/certificates.ts";
import { type Memcached, startMemcached } from "../support/memcached.ts";
import { startTcpRelay } from "../support/tcp_relay.ts";
import { needs } from "../support/tools.ts";
import { until } from "../support/until.ts";

const TIMEOUT_MS = 300;
const TOLERANCE_MS = 50;

/** Answers the lines that one connection sends; what it answers to the greeting comes first. */
type Script = (line: string, socket: net.Socket) => void;

function greet(line: string, socket: net.Socket): boolean {
  if (line !== "version") return false;
  socket.write("VERSION 1.6.0\r\n");
  return true;
}

/** Runs with a server that does what a script says. */
async function withServer(script: Script, run: (port: number) => Promise<void>): Promise<void> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      for (const line of bytes.toString("latin1").split("\r\n").slice(0, -1)) script(line, socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  try {
    await run(typeof bound === "object" && bound !== null ? bound.port : 0);
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

function open(port: number, options: Partial<McCacheOptions> = {}): McCache {
  return new McCache({
    hosts: [{ host: "127.0.0.1", port }],
    maxIdleConnections: 1,
    timeoutMs: TIMEOUT_MS,
    clock: systemClock,
    random: Math.random,
    ...options,
  });
}

/** Runs with a cache over one node, which is closed whatever comes of it. */
async function withCache(
  port: number,
  options: Partial<McCacheOptions>,
  run: (cache: McCache) => Promise<void>,
): Promise<void> {
  const cache = open(port, options);
  try {
    await run(cache);
  } finally {
    await cache.close();
  }
}

/** What each call gets of a server like that, and how long the first one may take at most. */
interface BadServer {
  readonly name: string;
  readonly script: Script;
  readonly message: RegExp;
  /** It answers, so nobody has to wait for the deadline. */
  readonly atOnce?: boolean;
}

const BAD_SERVERS: readonly BadServer[] = [
  {
    name: "takes connections and never says a word",
    script: () => {},
    message: /: (?:no connection: )?no connection within 300 ms$/,
  },
  {
    name: "greets and never answers",
    script: greet,
    message: /: no answer within 300 ms$/,
  },
  {
    name: "speaks another protocol",
    script: (_, socket) => void socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"),
    message: /: (?:no connection: )?it sent "HTTP\/1.1 400 Bad Request", which is no answer$/,
    atOnce: true,
  },
  {
    name: "has too many connections",
    script: (_, socket) => void socket.end("ERROR Too many open connections\r\n"),
    message: /: (?:no connection: )?it greets with "ERROR Too many open connections"$/,
    atOnce: true,
  },
  {
    name: "greets and then answers garbage",
    script: (line, socket) => void (greet(line, socket) || socket.write("\x16\x03\x01\r\n")),
    message: /: it sent "\\u0016\\u0003\\u0001", which is no answer$/,
    atOnce: true,
  },
  {
    name: "closes in the middle of an answer",
    script: (line, socket) => void (greet(line, socket) || line === "0" || socket.end("NOT_STORED\r\n1")),
    message: /: it closed the connection$/,
    atOnce: true,
  },
  {
    name: "resets instead of answering",
    script: (line, socket) => void (greet(line, socket) || socket.resetAndDestroy()),
    message: /: (?:read ECONNRESET|it closed the connection)$/,
    atOnce: true,
  },
  {
    name: "stops in the middle of an answer",
    script: (line, socket) => void (greet(line, socket) || line === "0" || socket.write("1")),
    message: /: no answer within 300 ms$/,
  },
  {
    name: "answers what was not asked",
    script: (line, socket) => void (greet(line, socket) || socket.write("END\r\n")),
    message: /: it answers "END"$/,
    atOnce: true,
  },
  {
    name: "does not know the commands",
    script: (line, socket) => void (greet(line, socket) || socket.write("ERROR\r\n")),
    message: /: it answers "ERROR"$/,
    atOnce: true,
  },
];

for (const { name, script, message, atOnce = false } of BAD_SERVERS) {
  Deno.test(`mc node: a server that ${name} fails every call in time`, async () => {
    await withServer(script, async (port) => {
      await withCache(port, {}, async (cache) => {
        const longest: number[] = [];
        for (let round = 0; round < 8; round++) {
          const start = performance.now();
          const error = await assertRejects(() => cache.add([hit(), hit()]));
          longest.push(performance.now() - start);
          assertEquals([
            error.name,
            error.message.startsWith(`Cannot ask memcached-style cache "127.0.0.1:${port}"`),
          ], [
            "CacheError",
            true,
          ]);
          if (round === 0) assertMatch(error.message, message);
        }
        assertEquals(
          Math.max(...longest) < (atOnce ? TIMEOUT_MS - TOLERANCE_MS : TIMEOUT_MS + TOLERANCE_MS),
          true,
        );
      });
    });
  });
}

Deno.test("mc node: after failures in a row nothing is sent for a while, and then one attempt", async () => {
  let asked = 0;
  let isWell = false;
  const script: Script = (line, socket) => {
    if (greet(line, socket) || line === "0") return;
    asked++;
    if (isWell) socket.write(line.startsWith("add") ? "STORED\r\n" : "7\r\n");
  };
  await withServer(script, async (port) => {
    await withCache(port, { timeoutMs: 50, maxIdleConnections: 2 }, async (cache) => {
      await cache.ready;
      for (let call = 0; call < 5; call++) {
        await until("the connection", () => cache.connected, { intervalMs: 1 });
        await assertRejects(() => cache.add([hit()]));
      }
      const { gauges, counters } = cache.figures;
      assertEquals([gauges["breaker_open"]?.(), counters["breaker_opened"]?.(), counters["timeouts"]?.()], [
        1,
        1,
        5,
      ]);
      await until("the connection", () => cache.connected, { intervalMs: 1 });
      const before = asked;
      const start = performance.now();
      const error = await assertRejects(() => cache.add([hit()]));
      assertMatch(error.message, /: it failed again and again, last: no answer within 50 ms$/);
      assertEquals([asked - before, performance.now() - start < 20], [0, true]);
      isWell = true;
      await until("the attempt", async () => (await cache.add([hit()]))[0] === 7, { intervalMs: 5 });
      assertEquals([gauges["breaker_open"]?.(), await cache.add([hit()])], [0, [7]]);
    });
  });
});

Deno.test("mc node: answers that come too late are taken for nobody else's", async () => {
  let late: (() => void) | undefined;
  let value = 0;
  const script: Script = (line, socket) => {
    if (greet(line, socket) || line === "0") return;
    const answer = line.startsWith("add") ? "STORED\r\n" : `${++value}\r\n`;
    const before = late;
    if (value > 1 || before === undefined && value === 1) return void socket.write(answer);
    late = () => {
      before?.();
      socket.write(answer);
    };
  };
  await withServer(script, async (port) => {
    await withCache(port, { timeoutMs: 100 }, async (cache) => {
      await cache.ready;
      await assertRejects(() => cache.add([hit()]));
      late?.();
      late = undefined;
      await until("the new connection", () => cache.connected);
      assertEquals(await until("an answer", () => cache.add([hit()]).catch(() => undefined)), [2]);
    });
  });
});

Deno.test("mc node: closing ends calls, connections and timers", async () => {
  await withServer(greet, async (port) => {
    await withCache(port, {}, async (cache) => {
      await cache.ready;
      const ends = Promise.allSettled([cache.add([hit()]), cache.remove(["key"])]);
      await cache.close();
      const states = (await ends).map((end) => end.status === "rejected" ? end.reason.message : "answered");
      const text = `Cannot ask memcached-style cache "127.0.0.1:${port}": it is closed`;
      assertEquals([states, cache.connected], [[text, text], false]);
    });
  });
});

Deno.test({
  ...needs(["memcached"], "mc node: an address of IPv6 is dialled without brackets and told with them"),
  async fn() {
    const told: string[] = [];
    const cache = new McCache({
      hosts: [{ host: "::1", port: 1 }],
      maxIdleConnections: 1,
      clock: systemClock,
      random: Math.random,
      onConnection: (_, reason, node) => void told.push(`${node} ${reason}`),
    });
    await until("the refusal", () => told.length > 0);
    assertMatch(
      told[0] ?? "",
      /^\[::1\]:1 connect E\w+ ::1:1|^\[::1\]:1 .*(?:refused|ECONNREFUSED|EADDRNOTAVAIL)/,
    );
    await cache.close();
  },
});

Deno.test({
  ...needs(
    ["memcached"],
    "mc node: a line that is dropped again and again loses no hit that was answered",
  ),
  async fn() {
    await using memcached = await startMemcached();
    await using relay = await startTcpRelay(memcached.port);
    await withCache(relay.port, { maxIdleConnections: 2 }, async (cache) => {
      await cache.ready;
      const one = hit();
      let answered = 0;
      let lost = 0;
      const count = async () => {
        await cache.add([one]).then(() => answered++, () => lost++);
      };
      for (let turn = 0; turn < 12; turn++) {
        if (turn % 3 === 1) relay.dropAll({ reset: turn % 2 === 0 });
        await Promise.all(Array.from({ length: 20 }, count));
        await until("the connection", () => cache.connected);
      }
      const held = Number(await memcached.value(one.key));
      assertEquals([held >= answered, held <= answered + lost, answered > 100], [true, true, true]);
    });
  },
});

interface TlsCase {
  readonly name: string;
  readonly files: (certificates: Certificates) => Omit<TlsFiles, "settings">;
  readonly server?: "server" | "elsewhere";
  /** Why there is no connection; absent where there is one. */
  readonly refused?: RegExp;
}

const TLS_CASES: readonly TlsCase[] = [
  {
    name: "the right authority and certificate",
    files: ({ authority, client }) => ({ authorityFile: authority.certFile, ...client }),
  },
  {
    name: "an authority that did not sign the server's certificate",
    files: ({ otherAuthority, client }) => ({ authorityFile: otherAuthority.certFile, ...client }),
    refused: /certificate|issuer|authority/i,
  },
  {
    name: "only the system's authorities",
    files: ({ client }) => client,
    refused: /certificate|issuer|authority/i,
  },
  {
    name: "a name that is not the server's",
    server: "elsewhere",
    files: ({ authority, client }) => ({ authorityFile: authority.certFile, ...client }),
    refused: /altnames|name|certificate/i,
  },
  {
    name: "a name that is not the server's and is not looked at",
    server: "elsewhere",
    files: ({ authority, client }) => ({ authorityFile: authority.certFile, ...client, skipHostname: true }),
  },
  {
    name: "a name that is not looked at and a chain that is not the authority's",
    files: ({ otherAuthority, client }) => ({
      authorityFile: otherAuthority.certFile,
      ...client,
      skipHostname: true,
    }),
    refused: /certificate|issuer|authority/i,
  },
  {
    name: "no certificate of its own",
    files: ({ authority }) => ({ authorityFile: authority.certFile }),
    refused: /./,
  },
  {
    name: "a certificate that the server does not trust",
    files: ({ authority, otherClient }) => ({ authorityFile: authority.certFile, ...otherClient }),
    refused: /./,
  },
  {
    name: "an authority's file that is not there",
    files: ({ folder, client }) => ({ authorityFile: `${folder}/none.pem`, ...client }),
    refused: /^Cannot use MC_TLS_CACERT ".*none\.pem": /,
  },
];

async function withTls(
  server: "server" | "elsewhere",
  run: (memcached: Memcached, certificates: Certificates) => Promise<void>,
): Promise<void> {
  await using certificates = await makeCertificates();
  const tls = { ...certificates[server], authorityFile: certificates.authority.certFile };
  await using memcached = await startMemcached({ tls });
  await run(memcached, certificates);
}

for (const { name, files, server = "server", refused } of TLS_CASES) {
  Deno.test({
    ...needs(["memcached", "openssl"], `mc node: TLS with ${name}`),
    fn: () =>
      withTls(server, async ({ port }, certificates) => {
        const told: [boolean, string][] = [];
        await withCache(port, {
          timeoutMs: 2_000,
          tls: { settings: "MC_TLS", ...files(certificates) },
          onConnection: (connected, reason) => void told.push([connected, reason]),
        }, async (cache) => {
          await until("the first attempt", () => told.length > 0);
          const [connected, reason = ""] = told[0] ?? [];
          assertEquals([connected, reason], [refused === undefined, refused === undefined ? "" : reason]);
          if (refused === undefined) assertEquals(await cache.add([hit()]), [1]);
          else {
            assertMatch(reason, refused);
            await assertRejects(() => cache.add([hit()]));
          }
        });
      }),
  });
}

Deno.test({
  ...needs(["memcached", "openssl"], "mc node: TLS files are read anew at each connect"),
  fn: () =>
    withTls("server", async (memcached, certificates) => {
      const { folder, authority, client, otherClient } = certificates;
      const files = { certFile: `${folder}/now.pem`, keyFile: `${folder}/now.key` };
      const use = async (from: typeof client) => {
        await Deno.copyFile(from.certFile, files.certFile);
        await Deno.copyFile(from.keyFile, files.keyFile);
      };
      await use(otherClient);
      const told: boolean[] = [];
      await withCache(memcached.port, {
        timeoutMs: 2_000,
        tls: { settings: "MC_TLS", authorityFile: authority.certFile, ...files },
        onConnection: (connected) => void told.push(connected),
      }, async (cache) => {
        await until("the refusal", () => told.length > 0);
        await use(client);
        await until("the connection", () => cache.connected);
        assertEquals([told, await cache.add([hit()])], [[false, true], [1]]);
      });
    }),
});

Deno.test({
  ...needs(
    ["memcached"],
    "mc node: nodes are looked up, calls fail until they are known, and a new list takes over",
  ),
  async fn() {
    await using stack = new AsyncDisposableStack();
    const servers: Memcached[] = [];
    for (let count = 0; count < 3; count++) servers.push(stack.use(await startMemcached()));
    const target = "127.0.0.1";
    let answer: { target: string; port: number }[] | undefined;
    const told: string[] = [];
    const cache = open(0, {
      hosts: {
        name: "_mc._tcp.test",
        refreshMs: 30,
        resolveSrv: () =>
          answer === undefined ? Promise.reject(new Error("no record")) : Promise.resolve(answer),
      },
      onLookup: (found, reason) => void told.push(`${found} ${reason}`),
    });
    stack.defer(() => cache.close());
    await until("the failed look-up", () => told.length > 0);
    const unknown = await assertRejects(() => cache.add([hit()]));
    assertEquals(
      [unknown.name, unknown.message],
      [
        "CacheError",
        'Cannot ask memcached-style cache "_mc._tcp.test": its nodes are not known yet: no record',
      ],
    );
    const holders = async (key: string) => {
      const values = await Promise.all(servers.map((server) => server.value(key)));
      return values.flatMap((value, index) => value === undefined ? [] : [index]);
    };
    const [a, b, c] = servers.map(({ port }) => ({ target, port }));
    if (a === undefined || b === undefined || c === undefined) throw new Error("Cannot start three servers");
    answer = [a];
    await cache.ready;
    const all = Array.from({ length: 30 }, () => hit());
    await cache.add(all);
    assertEquals(await Promise.all(all.map(({ key }) => holders(key))), all.map(() => [0]));
    const connections = async () => await servers[0]?.stat("curr_connections") ?? 0;
    const before = await connections();
    answer = [c, b];
    await until("the node to be let go", async () => await connections() < before);
    const more = Array.from({ length: 30 }, () => hit());
    await until("counting on the new nodes", () => cache.add(more).catch(() => undefined));
    const held = (await Promise.all(more.map(({ key }) => holders(key)))).flat();
    assertEquals([...new Set(held)].sort(), [1, 2]);
    assertEquals([told, cache.figures.gauges["nodes"]?.()], [["false no record", "true "], 2]);
  },
});
