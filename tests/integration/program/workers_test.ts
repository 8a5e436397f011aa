import { assertEquals } from "#assert";
import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import tls from "node:tls";
import type { WorkerNotice } from "../../../src/threads/supervised_worker.ts";
import type { DecidingWorkerHandle, FromDecidingWorker } from "../../../src/serve/workers/message.ts";
import { HEALTH_CHECK_REQUEST, HEALTH_CHECK_RESPONSE, SERVING_STATUS } from "../../../src/wire/health.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { WatchedWorkers } from "../../harness/deciding_workers.ts";
import { EventReader } from "../../harness/event_reader.ts";
import { freePort } from "../../harness/free_port.ts";
import { decide, GrpcClient, SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { OtlpReceiver } from "../../harness/otlp_receiver.ts";
import { QuotaStreamClient } from "../../harness/quota_stream_client.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { sharedMemcached, sharedRedis, uniqueName } from "../../harness/shared_servers.ts";
import { needs } from "../../harness/tools.ts";
import { eventually, until } from "../../harness/until.ts";

const rulesFor = (limit: number) => ({
  "shop.yaml": `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: ${limit} }
  - key: each
    detailed_metric: true
    rate_limit: { unit: year, requests_per_unit: 3 }
`,
});
/** A worker applies rules this much later than the main thread. */
const BLOCK_MS = 500;
const REDIS = await sharedRedis();
const MEMCACHED = await sharedMemcached();

interface Workers extends AsyncDisposable {
  readonly service: ServeFixture;
  readonly workers: WatchedWorkers;
}

async function startWorkers(env: Readonly<Record<string, string>> = {}, limit = 40): Promise<Workers> {
  const stack = new AsyncDisposableStack();
  const workers = new WatchedWorkers();
  const database = env.BACKEND_TYPE === undefined ? stack.use(await REDIS.database()) : undefined;
  const counters = database === undefined ? {} : { BACKEND_TYPE: "kv", KV_URL: database.url };
  const service = stack.use(
    await ServeFixture.start({
      env: { WORKERS: "2", KV_TIMEOUT: "1m", ...counters, ...env },
      rules: rulesFor(limit),
      createDecidingWorker: workers.create,
    }),
  );
  return { service, workers, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** A test of workers whose counters are in redis. */
function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ ...needs(["redis-server"], `workers: ${name}`), fn });
}

const COUNTED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "a key-value cache": {},
  "a key-value cache, with stop increment and local cache": {
    STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: "true",
    LOCAL_CACHE_SIZE_IN_BYTES: "10000",
  },
  "memcached": {
    BACKEND_TYPE: "mc",
    MC_HOST_PORT: MEMCACHED.url,
    MC_TIMEOUT: "1m",
    CACHE_KEY_PREFIX: uniqueName(),
  },
};

for (const [where, env] of Object.entries(COUNTED)) {
  Deno.test({
    ...needs(
      [where === "memcached" ? "memcached" : "redis-server"],
      `workers, counted in ${where}: the limit is exact`,
    ),
    async fn() {
      await using started = await startWorkers(env, 200);
      const { service, workers } = started;
      using clients = await workers.clients(service, workers.all, "user=warm-up");
      const codes = await clients.codes(500, "user=one");
      assertEquals([0, 1, 2].map((code) => codes.filter((seen) => seen === code).length), [0, 200, 300]);
      const stats = await service.stats();
      assertEquals(stats["ratelimit.service.rate_limit.shop.user.over_limit"], 300);
      const live = await fetch(`http://${service.running.addresses.debug}/ui/live`);
      const reader = new EventReader(live);
      const { history } = Object(await reader.data());
      await reader.cancel();
      const refused: readonly number[] = history.overLimit;
      assertEquals(refused.reduce((all, count) => all + count, 0), 300);
    },
  });
}

test("each counts for itself while the cache fails; the health shows it", async () => {
  const env = { BACKEND_TYPE: "kv", KV_URL: "127.0.0.1:1", CACHE_ON_FAILURE: "local" };
  await using started = await startWorkers(env, 20);
  const { service, workers } = started;
  using clients = await workers.clients(service, workers.all, "user=warm-up");
  const codes = await clients.codes(clients.all.length * 40, "user=one");
  assertEquals(codes.filter((code) => code === 1).length, 40);
  await until("the cause of each thread", async () => {
    const text = await service.page("/healthcheck");
    return /^cache: /m.test(text) && /^worker 2: cache: /m.test(text) && /^decisions: /m.test(text);
  });
});

test("the buckets of quotas have the clients of all threads", async () => {
  await using started = await startWorkers();
  const { service, workers } = started;
  using clients = await workers.clients(service, workers.all, "user=warm-up");
  for (const client of clients.all) {
    new QuotaStreamClient(client).report("shop", { bucket: { user: "one" }, allowed: 1 });
  }
  await eventually([clients.all.length, undefined], async () => {
    const { quotas: [shown], why } = JSON.parse(await service.page("/quotas?bucket=user=one"));
    return [shown?.clientCount, why];
  });
});

/** Statistics of decisions, without durations. */
function decisionStats(stats: Readonly<Record<string, number>>): Record<string, number> {
  const names = Object.keys(stats).filter((name) => {
    return /^ratelimit(\.service|_server)\./.test(name) && !name.endsWith(".sum_ms");
  });
  return Object.fromEntries(names.map((name) => [name, stats[name] ?? 0]));
}

test("statistics are those of one thread after the same calls, and after all of them have ended", async () => {
  const seen: Record<string, number>[] = [];
  for (const WORKERS of ["1", "2"]) {
    await using started = await startWorkers({ WORKERS }, 4);
    const { service } = started;
    const clients = Array.from({ length: 8 }, () => {
      return new GrpcClient(service.grpcAddress, { "grpc.use_local_subchannel_pool": 1 });
    });
    for (const [index, client] of clients.entries()) {
      for (const text of ["user=1", "user=2", `each=${index % 3}`, "none=1"]) {
        await decide(client, "shop", text);
      }
      await decide(client, "unknown", "user=1");
      await decide(client, "", "user=1");
      await client.unary(SHOULD_RATE_LIMIT, Uint8Array.of(255));
      await client.unary("/grpc.health.v1.Health/Check", HEALTH_CHECK_REQUEST.encode({ service: "" }));
    }
    seen.push(decisionStats(await service.stats()));
    for (const client of clients) client[Symbol.dispose]();
  }
  const [one, several] = seen;
  assertEquals(one?.["ratelimit.service.rate_limit.shop.user.over_limit"], 8);
  assertEquals(several, one);
});

test("the spans of every thread are exported", async () => {
  await using collector = await OtlpReceiver.start({ protocol: "http" });
  const tracing = {
    TRACING_ENABLED: "true",
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_TIMEOUT: "60000",
  };
  await using started = await startWorkers(tracing, 200);
  const { service, workers } = started;
  using clients = await workers.clients(service, workers.all, "user=warm-up");
  await clients.codes(clients.all.length * 10, "user=one");
  // Not after the stop, which has a limit.
  await eventually(clients.all.length * 11, () => {
    return collector.spans.filter(({ name }) => name === SHOULD_RATE_LIMIT.slice(1)).length;
  });
});

test("a reload is reported once every thread has the new rules", async () => {
  await using started = await startWorkers({ LOG_LEVEL: "info" });
  const { service, workers } = started;
  using clients = await workers.clients(service, workers.all, "user=warm-up");
  const loads = () => service.log.filter((line) => line.includes("Rules loaded")).length;
  // One that came before a thread listened is in its first rules.
  const early = Math.max(0, ...workers.all.map(({ rules }) => loads() - rules));
  for (const limit of [50, 60, 70]) {
    const [[name, text] = ["", ""]] = Object.entries(rulesFor(limit));
    await Deno.writeTextFile(join(service.rulesFolder, name), text);
    workers.all[0]?.tell({ type: "block", ms: BLOCK_MS });
    service.reload();
    // The file is watched too, so there may be more loads than limits; whichever was reported is in all of them.
    await until(`the limit ${limit} in every thread`, async () => {
      const reported = loads() - early;
      assertEquals(workers.all.map(({ rules }) => rules >= reported), [true]);
      const limits = await Promise.all(clients.all.map(async (client) => {
        const answer = await decide(client, "shop", `user=${limit}`);
        return "statuses" in answer ? answer.statuses[0]?.currentLimit?.requestsPerUnit : answer;
      }));
      return loads() > 1 && limits.every((seen) => seen === limit);
    });
  }
});

/** A thread that applies rules only after the answer of `beforeRules`, and notes what it was sent. */
function slowWorker(story: string[], beforeRules: () => Promise<string>): DecidingWorkerHandle {
  const say = (data: FromDecidingWorker | WorkerNotice) => {
    handle.onmessage?.(new MessageEvent("message", { data }));
  };
  const handle: DecidingWorkerHandle = {
    onmessage: null,
    onmessageerror: null,
    onerror: null,
    terminate: () => {},
    async postMessage(message) {
      if (message.type === "stop") return queueMicrotask(() => say({ type: "stopped" }));
      if (message.type === "apply") story.push(await beforeRules());
      if (message.type === "listen") story.push("listen");
      queueMicrotask(() => say({ type: "done", id: message.id }));
    },
  };
  return handle;
}

test("no port opens before they have the first rules", async () => {
  const port = freePort();
  const story: string[] = [];
  const beforeRules = async () => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const connecting = Deno.connect({ hostname: "127.0.0.1", port });
    return await connecting.then((socket) => (socket.close(), "open"), () => "closed");
  };
  const createDecidingWorker = () => {
    // Meanwhile the rules are loaded in their thread.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCK_MS);
    return slowWorker(story, beforeRules);
  };
  await using database = await REDIS.database();
  const counters = { BACKEND_TYPE: "kv", KV_URL: database.url };
  // Administration is loaded before the rules are applied.
  const env = { WORKERS: "2", ...counters, PORT: String(port), ADMIN_TOKEN: crypto.randomUUID() };
  await using _service = await ServeFixture.start({ env, rules: rulesFor(1), createDecidingWorker });
  assertEquals(story, ["closed", "listen"]);
});

test("one that fails is replaced while the main thread decides; counters and statistics continue", async () => {
  await using started = await startWorkers();
  const { service, workers } = started;
  const [first] = workers.all;
  using clients = await workers.clients(service, workers.all, "user=one");
  const before = clients.all.length;
  workers.isBlocked = true;
  first?.tell({ type: "throw" });
  await until("the end of the worker", async () => {
    return (await service.page("/healthcheck")).includes("workers: 1 of 2 are ready");
  });
  using main = await workers.clients(service, [], "user=one");
  workers.isBlocked = false;
  await until("another worker", () => workers.all.length === 2);
  const [, second] = workers.all;
  if (second === undefined) throw new Error("Cannot test without another worker");
  using others = await workers.clients(service, [second], "user=one");
  const calls = before + main.all.length + others.all.length;
  const codes = await others.codes(100, "user=one");
  assertEquals(codes.filter((code) => code === 1).length, Math.max(0, 40 - calls));
  const stats = await service.stats();
  assertEquals(stats["ratelimit_server.ShouldRateLimit.total_requests"], calls + 100);
  assertEquals(stats["ratelimit.service.rate_limit.shop.user.total_hits"], calls + 100);
  assertEquals(service.log.some((line) => line.includes("Worker 2 failed")), true);
  assertEquals(await service.page("/healthcheck"), "OK");
});

test("the health service of each changes when the process stops", async () => {
  await using started = await startWorkers({ SHUTDOWN_DELAY: "100ms" });
  const { service, workers } = started;
  using clients = await workers.clients(service, workers.all, "user=warm-up");
  const request = HEALTH_CHECK_REQUEST.encode({ service: "" });
  const begun = clients.all.map(() => Promise.withResolvers<void>());
  const watches = clients.all.map(async (client, index) => {
    const answer = await client.serverStream("/grpc.health.v1.Health/Watch", request, (message, cancel) => {
      begun[index]?.resolve();
      if (HEALTH_CHECK_RESPONSE.decode(message).status !== SERVING_STATUS.SERVING) cancel();
    });
    return answer.messages.map((message) => HEALTH_CHECK_RESPONSE.decode(message).status);
  });
  await Promise.all(begun.map(({ promise }) => promise));
  service.beginStop();
  const { SERVING, NOT_SERVING } = SERVING_STATUS;
  assertEquals(await Promise.all(watches), clients.all.map(() => [SERVING, NOT_SERVING]));
});

test("a reset counter is counted again by each, in spite of its local cache", async () => {
  const token = crypto.randomUUID();
  await using started = await startWorkers({ LOCAL_CACHE_SIZE_IN_BYTES: "10000", ADMIN_TOKEN: token }, 1);
  const { service, workers } = started;
  using clients = await workers.clients(service, workers.all, "user=warm-up");
  const body = JSON.stringify({
    domain: "shop",
    descriptors: [{ entries: [{ key: "user", value: "one" }] }],
  });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const call = async (name: string) => {
    const url = `http://${service.httpAddress}/api/v1/counters/${name}`;
    const response = await fetch(url, { method: "POST", headers, body });
    return await response.json();
  };
  await clients.codes(clients.all.length * 3, "user=one");
  assertEquals((await call("peek")).descriptors[0].used > 1, true);
  await call("reset");
  assertEquals((await call("peek")).descriptors[0].used, 0);
  const codes = await clients.codes(clients.all.length, "user=one");
  assertEquals(codes.filter((code) => code === 1).length, 1);
});

test("they share the port also where no other process may", async () => {
  await using started = await startWorkers({ LISTEN_SHARED: "false" });
  const { service, workers } = started;
  using _clients = await workers.clients(service, workers.all, "user=warm-up");
});

/** The fingerprint of the certificate that a new connection gets. */
async function certificateOf(address: string): Promise<string> {
  const [host = "", port] = address.split(":");
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = tls.connect({ host, port: Number(port), rejectUnauthorized: false, ALPNProtocols: ["h2"] });
  socket.on("secureConnect", () => resolve(socket.getPeerCertificate().fingerprint256));
  socket.on("error", reject);
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}

Deno.test({
  ...needs(["openssl", "redis-server"], "workers, TLS: each takes over a new certificate, which counts once"),
  async fn() {
    await using certificates = await makeCertificates();
    const { server } = certificates;
    const env = {
      GRPC_SERVER_USE_TLS: "true",
      GRPC_SERVER_TLS_CERT: server.certFile,
      GRPC_SERVER_TLS_KEY: server.keyFile,
    };
    await using started = await startWorkers(env);
    const { service } = started;
    const current = async () => new X509Certificate(await Deno.readTextFile(server.certFile)).fingerprint256;
    const first = await current();
    assertEquals(await certificateOf(service.grpcAddress), first);
    await certificates.issue("server", { names: "DNS:localhost,IP:127.0.0.1" });
    const second = await current();
    assertEquals(first === second, false);
    await until("the new certificate alone", async () => {
      const seen = await Promise.all(Array.from({ length: 20 }, () => certificateOf(service.grpcAddress)));
      return seen.every((one) => one === second);
    });
    await eventually(1, async () => (await service.stats())["ratelimit.process.grpc_tls_reloaded"]);
  },
});
