import { assertEquals, assertRejects } from "#assert";
import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import tls from "node:tls";
import type { WorkerNotice } from "../../../src/base/supervised_worker.ts";
import type { DecidingWorkerHandle, FromDecidingWorker } from "../../../src/serve/workers/message.ts";
import { HEALTH_CHECK_REQUEST, HEALTH_CHECK_RESPONSE, SERVING_STATUS } from "../../../src/wire/health.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { WatchedWorkers } from "../../harness/deciding_workers.ts";
import { freePort } from "../../harness/free_port.ts";
import { decide, GrpcClient, SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs, type Tool } from "../../harness/tools.ts";
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
const WORKERS = { WORKERS: "2" };
/** A worker applies rules this much later than the other one. */
const BLOCK_MS = 500;

interface Workers extends AsyncDisposable {
  readonly service: ServeFixture;
  readonly workers: WatchedWorkers;
}

async function startWorkers(env: Readonly<Record<string, string>> = {}, limit = 40): Promise<Workers> {
  const workers = new WatchedWorkers();
  const createDecidingWorker = workers.create;
  const service = await ServeFixture.start({
    env: { ...WORKERS, ...env },
    rules: rulesFor(limit),
    createDecidingWorker,
  });
  return { service, workers, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
}

async function countsExactly(env: Readonly<Record<string, string>>): Promise<void> {
  await using started = await startWorkers(env, 200);
  const { service, workers } = started;
  using clients = await workers.clients(service, workers.all, "user=warm-up");
  const codes = await clients.codes(500, "user=one");
  const [failed = 0, ok = 0, over = 0] = [0, 1, 2].map((code) =>
    codes.filter((seen) => seen === code).length
  );
  // A worker waits a second for the main thread, which a machine may let pass that stands still.
  assertEquals([ok + failed >= 200, ok <= 200, failed > 0 || over === 300], [true, true, true]);
  const stats = await service.stats();
  if (failed === 0) assertEquals(stats["ratelimit.service.rate_limit.shop.user.over_limit"], 300);
  assertEquals(workers.all.map(({ calls }) => calls > 0), [true, true]);
}

const BOUNDED = { KV_TIMEOUT: "1m", MC_TIMEOUT: "1m" };

interface Counted {
  readonly tools?: readonly Tool[];
  open(stack: AsyncDisposableStack): Promise<Readonly<Record<string, string>>>;
}

/** Where hits of several workers are counted. */
const COUNTED: Readonly<Record<string, Counted>> = {
  "in memory": { open: () => Promise.resolve({}) },
  "in memory, with stop increment and local cache": {
    open: () =>
      Promise.resolve({
        STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: "true",
        LOCAL_CACHE_SIZE_IN_BYTES: "10000",
      }),
  },
  "in a key-value cache": {
    tools: ["redis-server"],
    open: async (stack) => ({ BACKEND_TYPE: "kv", KV_URL: stack.use(await startRedis()).url }),
  },
  "in memcached": {
    tools: ["memcached"],
    open: async (stack) => ({ BACKEND_TYPE: "mc", MC_HOST_PORT: stack.use(await startMemcached()).url }),
  },
  "by the process while the cache fails": {
    open: () => Promise.resolve({ BACKEND_TYPE: "kv", KV_URL: "127.0.0.1:1", CACHE_ON_FAILURE: "local" }),
  },
};

for (const [where, { tools = [], open }] of Object.entries(COUNTED)) {
  Deno.test({
    ...needs(tools, `workers, counted ${where}: the limit is exact over both`),
    async fn() {
      await using stack = new AsyncDisposableStack();
      const env = await open(stack);
      await countsExactly(tools.length === 0 ? env : { ...BOUNDED, ...env });
    },
  });
}

Deno.test("workers, counters in memory: known requests are counted in each by itself, exactly to the limit", async () => {
  await using started = await startWorkers({}, 2_000);
  const { service, workers } = started;
  using clients = await workers.clients(service, workers.all, "user=warm-up");
  const codes: number[] = [];
  while (codes.length < 3_000) codes.push(...await clients.codes(100, "user=one"));
  assertEquals([1, 2].map((code) => codes.filter((seen) => seen === code).length), [2_000, 1_000]);
  const asked = workers.all.reduce((sum, worker) => sum + worker.asked, 0);
  // All that are over the limit, and some before the place of the counter is known.
  assertEquals(asked < 2_500, true, `${asked} hits were counted by the main thread`);
  const stats = await service.stats();
  assertEquals(stats["ratelimit.service.rate_limit.shop.user.over_limit"], 1_000);
  assertEquals(stats["ratelimit.service.rate_limit.shop.user.near_limit"], 400);
});

/** Statistics of decisions, without durations. */
function decisionStats(stats: Readonly<Record<string, number>>): Record<string, number> {
  const names = Object.keys(stats).filter((name) => {
    return /^ratelimit(\.service|_server)\./.test(name) && !name.endsWith(".sum_ms");
  });
  return Object.fromEntries(names.map((name) => [name, stats[name] ?? 0]));
}

Deno.test("workers: statistics are those of one thread after the same calls, and after all of them have ended", async () => {
  const seen: Record<string, number>[] = [];
  for (const env of [{}, WORKERS]) {
    await using service = await ServeFixture.start({ env, rules: rulesFor(4) });
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

Deno.test("workers: a reload is reported once every worker has the new rules", async () => {
  await using started = await startWorkers({ LOG_LEVEL: "info" });
  const { service, workers } = started;
  using clients = await workers.clients(service, workers.all, "user=warm-up");
  const loads = () => service.log.filter((line) => line.includes("Rules loaded")).length;
  for (const limit of [50, 60, 70]) {
    const [[name, text] = ["", ""]] = Object.entries(rulesFor(limit));
    await Deno.writeTextFile(join(service.rulesFolder, name), text);
    workers.all[1]?.tell({ type: "block", ms: BLOCK_MS });
    service.reload();
    // The file is watched too, so there may be more loads than limits; whichever was reported is in all of them.
    await until(`the limit ${limit} in every worker`, async () => {
      const reported = loads();
      assertEquals(workers.all.map(({ rules }) => rules >= reported), [true, true]);
      const limits = await Promise.all(clients.all.map(async (client) => {
        const answer = await decide(client, "shop", `user=${limit}`);
        return "statuses" in answer ? answer.statuses[0]?.currentLimit?.requestsPerUnit : answer;
      }));
      return reported > 1 && limits.every((seen) => seen === limit);
    });
  }
});

/** A thread that applies rules only after the answer of `beforeRules`, and notes what it was sent. */
function slowWorker(story: string[], beforeRules: () => Promise<string>): DecidingWorkerHandle {
  const say = (data: FromDecidingWorker | WorkerNotice) => {
    handle.onmessage?.(new MessageEvent("message", { data }));
  };
  const handle: DecidingWorkerHandle = {
    ...{ onmessage: null, onmessageerror: null, onerror: null, terminate: () => {} },
    async postMessage(message) {
      if (message.type === "start") queueMicrotask(() => say({ type: "opened" }));
      if (message.type === "stop") queueMicrotask(() => say({ type: "stopped" }));
      if (message.type === "listen") {
        story.push("listen");
        say({ type: "listening", address: "127.0.0.1:1", port: 1 });
      }
      if (message.type !== "apply") return;
      story.push(await beforeRules());
      say({ type: "applied", rules: message.rules });
    },
  };
  return handle;
}

Deno.test("workers: no port opens before they have the first rules", async () => {
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
  // Administration is loaded before the rules are applied.
  const env = { ...WORKERS, PORT: String(port), ADMIN_TOKEN: crypto.randomUUID() };
  await using _service = await ServeFixture.start({ env, rules: rulesFor(1), createDecidingWorker });
  assertEquals(story, ["closed", "closed", "listen", "listen"]);
});

Deno.test("workers: one that fails is replaced while the other decides; counters and statistics continue", async () => {
  await using started = await startWorkers();
  const { service, workers } = started;
  const [first, second] = workers.all;
  using clients = await workers.clients(service, workers.all, "user=one");
  const before = clients.all.length;
  first?.tell({ type: "throw" });
  await until("another worker", () => workers.all.length === 3);
  const [, , third] = workers.all;
  if (second === undefined || third === undefined) throw new Error("Cannot test without three workers");
  using others = await workers.clients(service, [second, third], "user=one");
  const calls = before + others.all.length;
  const codes = await others.codes(100, "user=one");
  const [allowed] = [1, 2].map((code) => codes.filter((seen) => seen === code).length);
  assertEquals(allowed, Math.max(0, 40 - calls));
  const stats = await service.stats();
  assertEquals(stats["ratelimit_server.ShouldRateLimit.total_requests"], calls + 100);
  assertEquals(stats["ratelimit.service.rate_limit.shop.user.total_hits"], calls + 100);
  assertEquals(service.log.filter((line) => line.includes("Worker 1 failed")).length, 1);
  assertEquals(await service.page("/healthcheck"), "OK");
});

Deno.test("workers: health fails while none is left", async () => {
  await using started = await startWorkers();
  const { service, workers } = started;
  workers.isBlocked = true;
  for (const worker of workers.all) worker.tell({ type: "throw" });
  const failing = await until("the health to fail", async () => {
    const text = await service.page("/healthcheck");
    return text.includes("no worker is ready") && text;
  });
  assertEquals(failing, "workers: no worker is ready to decide gRPC calls\n");
  workers.isBlocked = false;
  await until("the workers to be back", async () => await service.page("/healthcheck") === "OK");
  using client = new GrpcClient(service.grpcAddress);
  assertEquals("overallCode" in await decide(client, "shop", "user=one"), true);
});

Deno.test("workers: the health service of each changes when the process stops", async () => {
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

Deno.test("workers: a reset counter is counted again by each, in spite of its local cache", async () => {
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

Deno.test("workers: the service does not start when their port cannot be opened", async () => {
  const env = { ...WORKERS, GRPC_HOST: "203.0.113.1", GRPC_PORT: "8081" };
  const error = await assertRejects(() => ServeFixture.start({ env, rules: rulesFor(1) }));
  assertEquals(
    error.message.startsWith('Cannot listen for gRPC on "203.0.113.1:8081": '),
    true,
    error.message,
  );
});

Deno.test("workers: they share the port also where no other process may", async () => {
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
  ...needs(["openssl"], "workers, TLS: each takes over a new certificate"),
  async fn() {
    await using certificates = await makeCertificates();
    const { server } = certificates;
    const env = {
      GRPC_SERVER_USE_TLS: "true",
      GRPC_SERVER_TLS_CERT: server.certFile,
      GRPC_SERVER_TLS_KEY: server.keyFile,
    };
    await using started = await startWorkers(env);
    const { service, workers } = started;
    const current = async () => new X509Certificate(await Deno.readTextFile(server.certFile)).fingerprint256;
    const first = await current();
    assertEquals(await certificateOf(service.grpcAddress), first);
    await certificates.issue("server", { names: "DNS:localhost,IP:127.0.0.1" });
    const second = await current();
    assertEquals(first === second, false);
    await until("both workers to have it", () => workers.all.every(({ tlsReloads }) => tlsReloads > 0));
    await until("the new certificate alone", async () => {
      const seen = await Promise.all(Array.from({ length: 20 }, () => certificateOf(service.grpcAddress)));
      return seen.every((one) => one === second);
    });
    // Both have taken over the same files, which counts once.
    await eventually(0, async () => {
      const reloads = (await service.stats())["ratelimit.process.grpc_tls_reloaded"] ?? 0;
      return reloads - Math.max(...workers.all.map(({ tlsReloads }) => tlsReloads));
    });
  },
});
