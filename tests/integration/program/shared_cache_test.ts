import { assertEquals } from "#assert";
import { hit } from "../../contract/counter_cache_contract.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { openKvCache } from "../../harness/open_kv.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { startRedisSentinel } from "../../harness/redis_sentinel.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs, type Tool } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import type { KvCache } from "../../../src/cache/kv/cache.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";
import { takeCounts } from "../../harness/take.ts";

runWorkersInThread();

const RULES = {
  "shop.yaml": `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 400 }
`,
};

interface SharedCache extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
  /** The number of its counters. */
  size(): Promise<number>;
}

/** Caches by their program; a blank in a value is one of those bytes that memcached takes in no key. */
const CACHES: Readonly<Partial<Record<Tool, () => Promise<SharedCache>>>> = {
  async "redis-server"() {
    const redis = await startRedis();
    return {
      env: { BACKEND_TYPE: "kv", KV_URL: redis.url, KV_TIMEOUT: "1m" },
      size: async () => Number(await redis.command("DBSIZE")),
      [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
    };
  },
  async memcached() {
    const memcached = await startMemcached();
    const env = { BACKEND_TYPE: "mc", MC_HOST_PORT: memcached.url, MC_TIMEOUT: "1m" };
    return {
      env: { ...env, MC_KEY_DIGEST: "true", CACHE_KEY_PREFIX: "fleet:" },
      size: async () => Number(await memcached.stat("curr_items")),
      [Symbol.asyncDispose]: () => memcached[Symbol.asyncDispose](),
    };
  },
};

for (const [tool, start] of Object.entries(CACHES) as [Tool, () => Promise<SharedCache>][]) {
  Deno.test({
    ...needs([tool], `two services on one ${tool} let exactly the limit pass, for 1,000 parallel calls`),
    async fn() {
      await using cache = await start();
      await using first = await ServeFixture.start({ env: cache.env, rules: RULES });
      await using second = await ServeFixture.start({ env: cache.env, rules: RULES });
      using here = new GrpcClient(first.grpcAddress);
      using there = new GrpcClient(second.grpcAddress);
      const ask = (calls: number, user: string) =>
        Promise.all([here, there].flatMap((client) => {
          return Array.from({ length: calls }, () => decide(client, "shop", `user=${user}`));
        }));
      await until("both to have a connection", async () => {
        return (await ask(1, "warm-up")).every((answer) => "overallCode" in answer);
      });
      const answers = await ask(500, "Mozilla 5.0 (X11)");
      const codes = answers.map((answer) => "overallCode" in answer ? answer.overallCode : 0);
      const [ok, over] = [1, 2].map((code) => codes.filter((one) => one === code).length);
      assertEquals([ok, over, await cache.size()], [400, 600, 2]);
    },
  });
}

/** The results of the calls of a load. */
interface Load {
  answered: number;
  /** When calls failed, in milliseconds. */
  readonly failedAt: number[];
  stop(): Promise<void>;
}

/** Adds to one counter again and again, some calls at a time, until it is stopped. */
function startLoad(cache: KvCache, key: string): Load {
  let running = true;
  const one = hit({ key });
  const load: Load = {
    answered: 0,
    failedAt: [],
    async stop() {
      running = false;
      await Promise.all(workers);
    },
  };
  const work = async () => {
    while (running) {
      try {
        await takeCounts(cache, [one]);
        load.answered++;
      } catch {
        load.failedAt.push(performance.now());
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
  const workers = Array.from({ length: 8 }, work);
  return load;
}

Deno.test({
  ...needs(
    ["redis-server"],
    "roles swapped in agreement under load: errors only in between, and no answer is lost or counted twice",
  ),
  async fn() {
    await using first = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
    await using second = await startRedis({ args: ["--replicaof", "127.0.0.1", String(first.port)] });
    await using relay = await startTcpRelay(first.port);
    await using cache = openKvCache(relay.url, { timeoutMs: 10_000 });
    await cache.ready;
    await until("the replica to follow", async () => {
      return String(await first.command("INFO", "replication")).includes("state=online");
    });
    const load = startLoad(cache, "agreed");
    await until("a good number of calls", () => load.answered > 300);
    const swapBegins = performance.now();
    // The primary holds writes back until the replica has everything, and then changes places with it.
    await first.command("FAILOVER", "TO", "127.0.0.1", second.port);
    await until("the roles to be swapped", async () => {
      return String(await second.command("INFO", "replication")).includes("role:master");
    });
    relay.targetPort = second.port;
    const answered = load.answered;
    await until("calls to be answered again", () => load.answered > answered + 300);
    const swapEnds = load.failedAt.at(-1) ?? swapBegins;
    await load.stop();
    // A call that failed may have counted before its answer was lost.
    const unanswered = Number(await second.command("GET", "agreed")) - load.answered;
    assertEquals(unanswered >= 0 && unanswered <= load.failedAt.length, true, `${unanswered}`);
    const [earliest = swapBegins] = load.failedAt;
    assertEquals([earliest >= swapBegins, swapEnds - swapBegins < 30_000], [true, true]);
  },
});

Deno.test({
  ...needs(
    ["redis-server"],
    "a primary that dies under load: errors only until the sentinels have made another, and little is lost",
  ),
  async fn() {
    await using group = await startRedisSentinel({ replicas: 1 });
    await using cache = openKvCache(group.url, { type: "sentinel", timeoutMs: 10_000 });
    await cache.ready;
    const load = startLoad(cache, "killed");
    await until("a good number of calls", () => load.answered > 300);
    const [, replica] = group.servers;
    // The sentinels may have made it copy everything once more, and until then it has nothing.
    await until("the replica to follow", async () => Number(await replica?.command("GET", "killed")) > 300);
    const killed = performance.now();
    const answeredBefore = load.answered;
    await group.killPrimary();
    await until("calls to be answered again", () => load.answered > answeredBefore + 300);
    const failedBefore = load.failedAt.filter((at) => at < killed).length;
    const failures = load.failedAt.length;
    // By now nothing fails any more.
    const answered = load.answered;
    await until("more calls", () => load.answered > answered + 300);
    await load.stop();
    assertEquals([failedBefore, load.failedAt.length - failures], [0, 0]);
    const counted = Number(await replica?.command("GET", "killed"));
    // Lost can be what was answered and not yet copied; too much, what was counted without an answer.
    assertEquals(
      Math.abs(load.answered - counted) <= 16,
      true,
      `${load.answered} answered, ${counted} counted`,
    );
  },
});

Deno.test({
  ...needs(
    ["redis-server", "openssl"],
    "a cache that requires a client certificate refuses calls and ends nothing",
  ),
  async fn() {
    await using certificates = await makeCertificates();
    await using redis = await startRedis({ tls: certificates.redisTls() });
    const env = {
      BACKEND_TYPE: "kv",
      KV_URL: redis.tlsUrl,
      KV_TLS: "true",
      KV_TLS_CACERT: certificates.authority.certFile,
      CACHE_ON_FAILURE: "error",
    };
    await using weir = await ServeFixture.start({ env, rules: RULES });
    const client = new GrpcClient(weir.running.addresses.grpc);
    const cannotReach = () => weir.log.some((line) => line.includes("Cannot reach the key-value cache"));
    await until("the refusal to be logged", cannotReach);
    const codes: (number | string)[] = [];
    for (let call = 0; call < 5; call++) {
      const answer = await decide(client, "shop", "user=one");
      codes.push("code" in answer ? answer.code : "decided");
    }
    assertEquals([...new Set(codes)], [14]);
    assertEquals(await weir.page("/livez"), "OK");
    assertEquals(weir.log.filter((line) => /ncaught|unexpected error/.test(line)), []);
    client[Symbol.dispose]();
  },
});
